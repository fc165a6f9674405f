"""Nodes are written otherwise in those ways alone that are no slower on a runtime for which they were not chosen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from superopt.cost.bench import Bench
from superopt.cost.measured import MeasuredCost
from superopt.cost.ort import OnnxRuntime
from superopt.cost.runtime import Runtime
from superopt.cost.runtimes import runtime_named
from superopt.cost.table import Table
from superopt.errors import OutOfTime, RuntimeFailed
from superopt.onnx_io import Program, load, understand
from superopt.search import suited as seen
from superopt.search import variants
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.objectives.latency import Latency
from superopt.search.solving.remembered import Memory
from superopt.search.suited import suited
from tests.onnx_io.models import model
from tests.onnx_io.otherwise.maps.test_attended import attention
from tests.usable import where_usable

BOTH = model(
    """g (float[N, 16] x, float[128, 128] z) => (float[N, 16] y, int64[128] n)
    <float t = {20}, float half = {0.5}, int64[1] last = {1}> {
        s = Softplus(x) c = Greater(x, t) y = Where(c, x, s)
        d = Less(z, half) i = Cast<to = 7>(d) n = ReduceSum<keepdims = 0>(i, last)
    }"""
)
WAYS = {"guarded", "truths"}


class Other(OnnxRuntime):
    """Another runtime than that for which the ways were chosen."""

    @property
    def standard(self) -> Runtime:
        return OnnxRuntime(self.threads)


def trial(given: onnx.ModelProto, runtime: Runtime, folder: Path) -> Trial:
    """A trial of a model on a runtime."""
    path = folder / "given.onnx"
    onnx.save(given, path)
    cost = MeasuredCost(Bench(runtime, Table(folder / "timings.sqlite"), 17))
    return Trial(understand(load(path)), path, path, folder, Latency(cost), 60.0, 0, [], lambda stage, done: None)


@pytest.fixture
def both(tmp_path: Path) -> Trial:
    """A trial of a model in which two ways write nodes otherwise."""
    made = trial(BOTH, Other(1), tmp_path)
    assert made.program.ways == WAYS
    return made


def show(monkeypatch: pytest.MonkeyPatch, ratios: dict[frozenset[str], float | Exception]) -> None:
    """Have programs seem so many times faster by the ways in which they are written, or fail."""

    def at_first_sight(own: Trial, found: Program) -> float:
        ratio = ratios[found.ways]
        if isinstance(ratio, Exception):
            raise ratio
        return ratio

    monkeypatch.setattr(seen, "at_first_sight", at_first_sight)


ALL, GUARDED, TRUTHS = frozenset(WAYS), frozenset({"guarded"}), frozenset({"truths"})


def test_on_the_runtime_that_ways_were_chosen_for_all_are_taken_unseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    show(monkeypatch, {})
    own = trial(BOTH, OnnxRuntime(1), tmp_path)
    assert suited(own) is own


@pytest.mark.parametrize("ratio", [1.5, 0.99, OutOfTime("measuring takes too long")])
def test_all_are_taken_where_they_are_no_slower_or_cannot_be_seen(
    both: Trial, monkeypatch: pytest.MonkeyPatch, ratio: float | Exception
) -> None:
    show(monkeypatch, {ALL: ratio})
    assert suited(both) is both


@pytest.mark.parametrize("ratio", [0.9, RuntimeFailed("it has no such operator")])
def test_of_those_that_are_slower_or_refused_each_is_taken_that_is_neither_by_itself(
    both: Trial, monkeypatch: pytest.MonkeyPatch, ratio: float | Exception
) -> None:
    show(monkeypatch, {ALL: ratio, GUARDED: 1.1, TRUTHS: ratio})
    found = suited(both).program
    assert found.ways == GUARDED
    kinds = [node.op_type for node in found.model.graph]
    assert ("Where" in kinds, kinds.count("Cast")) == (False, 1), "numbers that are counted would be cast back"


def test_where_none_is_left_the_model_is_read_as_it_is(both: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    show(monkeypatch, {ALL: 0.5, GUARDED: 0.5, TRUTHS: 0.5})
    found = suited(both).program
    assert (found.ways, found.plain, found.otherwise) == (frozenset(), None, False)


def test_what_was_seen_is_remembered(both: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory(both.bench.table, both.bench.runtime.key, "some search", 60.0)
    show(monkeypatch, {ALL: 0.9, GUARDED: 1.1, TRUTHS: 0.9})
    assert suited(both, memory).program.ways == GUARDED
    show(monkeypatch, {})
    assert suited(both, memory).program.ways == GUARDED
    show(monkeypatch, {ALL: 1.1})
    assert suited(both, replace(memory, search_digest="another")).program.ways == ALL


def test_what_is_searched_is_written_as_it_suits(both: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    show(monkeypatch, {ALL: 0.9, GUARDED: 1.1, TRUTHS: 0.9})
    tried = list[frozenset[str]]()

    def solve(own: Trial, _: float) -> Attempt:
        tried.append(own.program.ways)
        return Attempt([], accepted=True)

    variants.attempted(both, solve)
    assert tried == [GUARDED]


@pytest.mark.parametrize("name", where_usable(["openvino"]))
def test_lookups_that_a_runtime_computes_faster_stay_lookups_there(name: str, tmp_path: Path) -> None:
    own = trial(attention(queries=200), runtime_named(name, 1), tmp_path)
    assert "attended" in own.program.ways
    assert "attended" not in suited(own).program.ways
