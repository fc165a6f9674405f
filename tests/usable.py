"""What this machine has: which runtimes (tests of those that it lacks are skipped, and say why), which instructions."""

from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest
from onnx import parser

from superopt.cost.runtimes import RUNTIMES, runtime_named
from superopt.errors import RuntimeFailed, UsageError
from superopt.processor import flags


@cache
def why_not(name: str) -> str:
    """Why a runtime cannot be used here; empty where it can."""
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[4] x) => (float[4] y) { y = Relu(x) }'
    try:
        runtime_named(name, 1).session(parser.parse_model(text).SerializeToString())
    except (UsageError, RuntimeFailed) as error:
        return str(error)
    return ""


def where_usable(names: Iterable[str] = RUNTIMES) -> list[Any]:
    """Runtimes by name, to be tested with."""
    return [pytest.param(n, marks=[pytest.mark.skip(reason=why_not(n))] if why_not(n) else [], id=n) for n in names]


@cache
def has_avx512() -> bool:
    """Whether the processor is known to have the instructions for which onnxruntime has other kernels."""
    return "avx512f" in flags()
