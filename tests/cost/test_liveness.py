"""The most memory that activations take at a time, counted and as the system sees it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from superopt.cost import peak
from superopt.cost.child import Child
from superopt.cost.inputs import Draw
from superopt.cost.liveness import Execution, PeakCost, activations, peak_bytes
from superopt.cost.ort import OnnxRuntime
from superopt.cost.peak import peak_of_runs
from superopt.errors import RuntimeFailed
from superopt.onnx_io import load, understand
from superopt.operators.layout import Concat, Reshape
from superopt.operators.pointwise import Add, Relu
from superopt.operators.reduce import MaxPool
from superopt.term import Graph, Term, variable
from tests.models import model

X = variable("x", (1, 4, 8, 8), "float32")
BYTES = 4 * 4 * 8 * 8


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[Execution[int]], dict[int, int], set[int]]:
    """Values 0 and 1 are given; each execution makes the next one of what is there; some values are kept."""
    sizes = st.integers(1, 9)
    executions = []
    for made in range(2, draw(st.integers(3, 9))):
        reads = draw(st.lists(st.integers(0, made - 1), min_size=1, max_size=3))
        executions.append(Execution(reads, {made: draw(sizes)}))
    kept = draw(st.sets(st.integers(2, 1 + len(executions)), min_size=1))
    return executions, {0: draw(sizes), 1: draw(sizes)}, kept


@given(programs())
def test_a_value_is_alive_from_when_it_is_made_until_it_was_last_read(
    program: tuple[list[Execution[int]], dict[int, int], set[int]],
) -> None:
    executions, held, kept = program
    size = held | {made: count for done in executions for made, count in done.makes.items()}
    readers = {v: [t for t, done in enumerate(executions) if v in done.reads] for v in size}
    made_at = dict.fromkeys(held, -1) | {v: t for t, done in enumerate(executions) for v in done.makes}
    unread = dict.fromkeys(held, -2) | {v: made_at[v] for v in size if v not in held}
    end = {v: len(executions) if v in kept else max(readers[v], default=unread[v]) for v in size}
    alive = [sum(size[v] for v in size if made_at[v] <= t <= end[v]) for t in range(-1, len(executions))]
    assert peak_bytes(executions, held, kept) == max(alive)


def peak_of(*outputs: Term) -> float:
    return PeakCost().cost(Graph((X,), outputs)) / BYTES


def test_what_is_done_to_each_element_is_written_over_what_nothing_else_reads() -> None:
    assert peak_of(Relu()(X)) == 1
    assert peak_of(Relu()(X), X) == 2


def test_another_shape_takes_no_memory_and_keeps_that_of_what_it_shows() -> None:
    flat = Reshape((4, 64))(X)
    assert peak_of(flat) == 1
    assert peak_of(Concat(0)(flat, flat), flat) == 3


def test_a_branch_that_waits_for_another_is_alive_meanwhile() -> None:
    pooled = MaxPool((1, 1))(X)
    assert peak_of(pooled) == 2
    assert peak_of(Add()(MaxPool((1, 1))(pooled), pooled)) == 2
    assert peak_of(Concat(1)(MaxPool((1, 1))(pooled), pooled)) == 4


def widened(channels: int, side: int) -> onnx.ModelProto:
    """An image of one channel made wide, and one again."""
    nodes = [
        helper.make_node("Concat", ["x"] * channels, ["wide"], axis=1),
        helper.make_node("ReduceSum", ["wide", "axes"], ["y"]),
    ]
    ends = [(name, TensorProto.FLOAT, [1, 1, "side", side]) for name in "xy"]
    return model(nodes, ends[:1], ends[1:], {"axes": np.array([1])})


def test_the_activations_of_a_model_are_counted_at_the_sizes_given() -> None:
    program = understand(load(widened(8, 100)))
    assert activations(program, {"side": 50}) == 4 * 9 * 50 * 100


def test_the_runtime_takes_what_liveness_counts_and_not_much_more(tmp_path: Path) -> None:
    onnx.save(widened(8, 1000), tmp_path / "m.onnx")
    counted = activations(understand(load(tmp_path / "m.onnx")), {"side": 1000})
    assert counted is not None
    child = Child()
    taken = child.call(60, peak_of_runs, OnnxRuntime(), tmp_path / "m.onnx", Draw(size=1000))
    child.close()
    assert 0.9 * counted <= taken <= 2.5 * counted


def test_a_system_that_does_not_tell_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx.save(widened(2, 4), tmp_path / "m.onnx")
    monkeypatch.setattr(peak, "_CLEAR", tmp_path / "none" / "here")
    with pytest.raises(RuntimeFailed, match="the peak of memory is not known here: No such file"):
        peak_of_runs(OnnxRuntime(), tmp_path / "m.onnx", Draw())
