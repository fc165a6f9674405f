"""The runtimes by name; those that are not installed are refused with what installs them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from superopt.cost.runtime import Runtime
from superopt.errors import RuntimeFailed, UsageError


class Entry(NamedTuple):
    """Where a runtime stands here, what it imports, and what installs that."""

    module: str
    made: str
    imported: str
    install: str


_GPU = "pip install 'onnxruntime-gpu[cuda,cudnn]' in place of onnxruntime"
# No extra of superopt: both packages are the module `onnxruntime`, and superopt needs one of them in any case.

RUNTIMES = {
    "onnxruntime": Entry("superopt.cost.ort", "OnnxRuntime", "onnxruntime", "pip install superopt"),
    "onnxruntime-cuda": Entry("superopt.cost.ort_gpu", "OnnxCuda", "onnxruntime", _GPU),
    "onnxruntime-tensorrt": Entry("superopt.cost.ort_gpu", "OnnxTensorRt", "onnxruntime", f"{_GPU}, and TensorRT"),
    "openvino": Entry("superopt.cost.openvino", "OpenVino", "openvino", "pip install 'superopt[openvino]'"),
}
"""A runtime's module is imported where it is asked for."""


def runtime_named(name: str, threads: int) -> Runtime:
    """A runtime with a number of threads.

    Raises `UsageError` for one that is not known, not installed, or has no device here.
    """
    if name not in RUNTIMES:
        raise UsageError(f"runtime is {' or '.join(RUNTIMES)}; got {name}")
    module, made, imported, install = RUNTIMES[name]
    found: Runtime | None = getattr(import_module(module), made)(threads) if find_spec(imported) else None
    if found is None or not found.installed:
        raise UsageError(f"runtime {name} is not installed; install it with: {install}")
    try:
        _ = found.key
    except RuntimeFailed as error:
        raise UsageError(f"runtime {name} cannot be used here: {error}") from None
    return found
