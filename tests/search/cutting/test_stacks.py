"""What is stacked to be reduced is in one piece with the reduction."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from benchmarks.sketch import Sketch
from superopt.onnx_io import load, understand
from superopt.operators.layout import Concat
from superopt.operators.reductions import Sum
from superopt.search.cutting.pieces import cut_into_pieces
from superopt.search.cutting.stacks import stacks
from superopt.term import subterms

ROWS, WIDTH, LAYERS = 4, 8, 3


def branches(s: Sketch, along: int = -1, weighted: bool = True) -> onnx.ModelProto:
    """Layers of one value, bent, stacked, weighted by shares and added up; and other steps before and after."""
    x = s.input("x", ROWS, WIDTH)
    last, place = s.weight(np.array([-1])), s.weight(np.array([1]))
    shares = s("Unsqueeze", s("Softmax", s.linear(s("Sigmoid", x), WIDTH, LAYERS)), place)
    parts = [s("Unsqueeze", s("Elu", s("Sigmoid", s.linear(x, WIDTH, WIDTH))), last) for _ in range(LAYERS)]
    stack = s("Concat", *parts, axis=-1)
    total = s("ReduceSum", s("Mul", stack, shares) if weighted else stack, s.weight(np.array([along])), keepdims=0)
    for step in ("Sigmoid", "Elu", "Tanh") * 4:
        total = s(step, total)
    return s.model(total)


@pytest.mark.parametrize("weighted", [True, False])
def test_no_cut_parts_a_stack_from_its_sum(weighted: bool) -> None:
    program = understand(load(branches(Sketch(), weighted=weighted)))
    (total,) = (t for p in cut_into_pieces(program) for t in subterms(*p.graph.outputs) if isinstance(t.operator, Sum))
    assert any(isinstance(t.operator, Concat) for t in subterms(total))


def test_a_stack_counts_as_its_parts_and_so_does_what_is_computed_of_it() -> None:
    program = understand(load(branches(Sketch())))
    assert list(stacks(program, range(len(program.steps))).values()) == [LAYERS, LAYERS]


def test_a_stack_that_is_reduced_along_another_axis_counts_once() -> None:
    program = understand(load(branches(Sketch(), along=1)))
    assert not stacks(program, range(len(program.steps)))


def test_a_stack_that_is_multiplied_counts_as_its_parts() -> None:
    s = Sketch()
    x, last = s.input("x", ROWS, WIDTH), s.weight(np.array([-1]))
    stack = s("Concat", *(s("Unsqueeze", s(step, x), last) for step in ("Elu", "Tanh", "Relu")), axis=-1)
    program = understand(load(s.model(s("ReduceProd", stack, axes=[-1], keepdims=0))))
    assert list(stacks(program, range(len(program.steps))).values()) == [LAYERS]


@pytest.mark.parametrize(("windows", "steps"), [([[0, 1, 2], [1, 2, 3]], 4), ([[0, 1], [2, 3]], 0)])
def test_windows_that_meet_count_twice_until_they_are_reduced(windows: list[list[int]], steps: int) -> None:
    s = Sketch()
    taken = s("Gather", s("Relu", s.input("x", ROWS, WIDTH)), s.weight(np.array(windows)), axis=1)
    moved = s("Elu", s("Transpose", s("Add", taken, s.weight(np.ones(len(windows[0]), np.float32))), perm=[0, 2, 1]))
    program = understand(load(s.model(s("Tanh", s("ReduceMax", moved, axes=[1], keepdims=0)))))
    assert list(stacks(program, range(len(program.steps))).values()) == [2] * steps
