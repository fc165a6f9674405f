"""ONNX's own test models, read, taken apart, put together again and run: `benchmarks/coverage.py` says how."""

from __future__ import annotations

import onnx
import pytest

from benchmarks.coverage import KINDS, carried, cases
from tests.versions import since

LEAST = {"node": 1800 if since(onnx, 1, 23) else 1600, "simple": 20, "pytorch-converted": 80, "pytorch-operator": 30}
"""How many models of a kind there are, or more."""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the models overflow and divide by zero on purpose
@pytest.mark.parametrize("frozen", [False, True], ids=["as they are", "frozen"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_model_computes_the_same_after_it_was_written_anew(kind: str, frozen: bool) -> None:
    outcomes = {case.name: carried(case) for case in cases(frozen, (kind,))}
    assert {name: o.failure for name, o in outcomes.items() if o.failure} == {}
    assert len(outcomes) >= LEAST[kind]
    compared = [o for o in outcomes.values() if o.run_by != "nothing"]
    assert len(compared) > 0.9 * len(outcomes)  # training and image formats have no runtime here
    assert any(not reason for o in compared for _, reason in o.nodes)
