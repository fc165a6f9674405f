"""Models of 16-bit floats are optimized in 32 bits where the runtime computes so, and compared before rounding."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

import superopt
from benchmarks.halves import half
from superopt.api import Options, replay
from superopt.cost.measured import MeasuredCost
from superopt.cost.ort import OnnxRuntime
from superopt.errors import OutOfTime, VerificationFailed
from superopt.onnx_io import load, save, understand, widened
from superopt.search.accepting.compared import compared
from superopt.search.accepting.fed import DRAWS
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.objectives.by_name import OBJECTIVES
from superopt.search.optimize import attempt
from superopt.search.replay import Placement
from superopt.search.strategies.backtrack import backtrack
from superopt.search.widening import attempted
from tests.models import normalized
from tests.onnx_io.models import model
from tests.onnx_io.networks import run
from tests.onnx_io.test_carried import assert_same_interface

NOTHING, RUNTIME = Placement({}, {}), OnnxRuntime()


def trial(given: onnx.ModelProto, cost: MeasuredCost, folder: Path, objective: str = "latency") -> Trial:
    path = folder / "original.onnx"
    onnx.save(given, path)
    program = understand(load(given))
    return Trial(program, path, path, folder, OBJECTIVES[objective](cost), 20, 0, [], lambda stage, done: None)


def seen(given: Trial) -> list[Trial]:
    """What is optimized for a model, one after the other, where nothing is found."""
    found = list[Trial]()

    def solve(own: Trial, share: float) -> Attempt:
        found.append(own)
        return Attempt([])

    attempted(given, solve)
    return found


def test_a_model_of_16_bits_gains_what_one_of_32_does(options: Options) -> None:
    given = half(normalized())
    result = superopt.optimize(given, options)
    made = result.proto()
    onnx.checker.check_model(made, full_check=True)
    assert result.report.outcome == "faster"
    assert result.report.compared is not None
    (told,) = result.report.compared.outputs
    assert told.optimized_error is not None
    assert told.optimized_error < 1e-4 < told.error < told.bound < 1e-2
    assert "LRN" not in {n.op_type for n in made.graph.node}
    assert_same_interface(made, given)
    image = np.random.default_rng(0).standard_normal((1, 3, 28, 28)).astype(np.float16)
    np.testing.assert_allclose(run(made, {"image": image})[0], run(given, {"image": image})[0], rtol=0.01, atol=0.01)


def test_weights_that_nothing_rewrote_stay_in_16_bits(options: Options) -> None:
    made = superopt.optimize(half(normalized()), options).proto()
    stored = {t.name: t.data_type for t in made.graph.initializer}
    assert [stored[name] for name in ("k", "b")] == [TensorProto.FLOAT16] * 2


def test_what_was_found_in_32_bits_is_replayed(options: Options) -> None:
    given = half(normalized())
    first = superopt.optimize(given, options)
    again = replay(first.report, given, options)
    assert again.report.outcome == "faster"
    assert "LRN" not in {n.op_type for n in again.proto().graph.node}


def test_the_casts_alone_are_tried_where_nothing_is_rewritten(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has 16 bits onnxruntime does not fuse as well as what has 32."""
    monkeypatch.setattr(OnnxRuntime, "widens_half", True)

    def solve(own: Trial, share: float) -> Attempt:
        return attempt(own, list, backtrack, alpha=1.05)

    told, tried = attempted(trial(half(normalized()), cost, tmp_path), solve)
    assert told.wide is not None
    assert not any(s.gain > 1.0 for s in tried.cover)
    assert tried.agreement is not None
    assert (tried.agreement.agrees, len(tried.pairs)) == (True, 1)


@pytest.mark.parametrize("objective", ["memory", "size"])
def test_where_bytes_are_to_be_less_16_bits_stay_so(objective: str, cost: MeasuredCost, tmp_path: Path) -> None:
    given = trial(half(normalized()), cost, tmp_path, objective)
    assert seen(given) == [given]


def test_where_a_runtime_computes_in_16_bits_they_stay_so(
    cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OnnxRuntime, "widens_half", False)
    given = trial(half(normalized()), cost, tmp_path)
    assert seen(given) == [given]


def test_a_model_of_32_bits_is_optimized_as_it_stands(cost: MeasuredCost, tmp_path: Path) -> None:
    given = trial(normalized(), cost, tmp_path)
    assert seen(given) == [given]


@pytest.mark.parametrize("error", [VerificationFailed("it differs"), OutOfTime("it is late")])
def test_what_is_not_the_same_in_32_bits_is_optimized_as_it_stands(
    error: Exception, cost: MeasuredCost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OnnxRuntime, "widens_half", True)
    given = trial(half(normalized()), cost, tmp_path)

    def solve(own: Trial, share: float) -> Attempt:
        if own.wide is not None:
            raise error
        return Attempt([], reason="nothing was found")

    told, tried = attempted(given, solve)
    assert told is given
    assert tried.reason == f"nothing was found; and in 32 bits {error}"


def wide(given: onnx.ModelProto, cost: MeasuredCost, folder: Path) -> Trial:
    """The trial of a model in 32 bits, which lies in the folder."""
    own, made, path = trial(given, cost, folder), widened(load(given)), folder / "wide.onnx"
    assert made is not None
    save(made, path)
    return replace(own, program=understand(made), wide=path)


@pytest.mark.parametrize(("factor", "agrees"), [(1.0, True), (1.0003, False)])
def test_a_weight_that_is_wrong_by_less_than_16_bits_show_does_not_agree(
    factor: float, agrees: bool, cost: MeasuredCost, tmp_path: Path
) -> None:
    own = wide(half(normalized()), cost, tmp_path)
    assert own.wide is not None
    candidate = onnx.load(own.wide)
    (last,) = (t for t in candidate.graph.initializer if t.name == "last")
    (cast,) = (n for n in candidate.graph.node if "last" in n.input)
    values = numpy_helper.to_array(last).astype(np.float32) * np.float32(factor)
    last.CopyFrom(numpy_helper.from_array(values, "last"))
    cast.op_type = "Identity"
    del cast.attribute[:]
    onnx.save(candidate, tmp_path / "candidate.onnx")
    found = compared(own, tmp_path / "candidate.onnx", NOTHING, 0, DRAWS)
    assert (found.agrees, found.examined, found.differs) == (agrees, True, not agrees)


def test_where_16_bits_overflow_and_32_do_not_the_original_tells_nothing(cost: MeasuredCost, tmp_path: Path) -> None:
    """Inputs of 0 to 255 overflow in the product, of which onnxruntime moves 16 bits; others do not."""
    given = model("""g (float16[1, 64] x) => (float16[1, 64] y) {
        a = Mul(x, big) b = Transpose(a) c = Transpose(b) y = Mul(c, small) }""")
    weights = {"big": np.float16([1000.0]), "small": np.float16([0.001])}
    given.graph.initializer.extend(numpy_helper.from_array(w, name) for name, w in weights.items())
    own = wide(given, cost, tmp_path)
    assert own.wide is not None
    feeds = {"x": np.random.default_rng(0).uniform(100, 255, (1, 64)).astype(np.float16)}
    for path, finite in ((own.original, False), (own.wide, True)):
        (y,) = RUNTIME.run(RUNTIME.session(path, optimize=False), feeds)
        assert np.isfinite(y).any() == np.isfinite(y).all() == finite
    found = compared(own, own.wide, NOTHING, 0, DRAWS)
    assert (found.agrees, found.examined) == (True, True)
