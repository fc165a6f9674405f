"""Transposes in moves of one axis each."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.arithmetic.floats import FLOAT
from superopt.demands import assuming
from superopt.dim import symbol
from superopt.evaluate import evaluate
from superopt.operators.definitions.moves import MOST, Rows, in_moves
from superopt.operators.layout import Reshape, Transpose
from superopt.term import Term, subterms, variable
from tests.models import assert_same, model

SIZES = (2, 3, 4, 5, 6, 7)
PERMUTATIONS = [p for rank in range(1, 6) for p in itertools.permutations(range(rank))]
PATCHES = (0, 2, 4, 3, 5, 1)


def transposes(term: Term) -> list[tuple[int, ...]]:
    return [t.operator.perm for t in subterms(term) if isinstance(t.operator, Transpose)]


def moves_one_axis(perm: tuple[int, ...]) -> bool:
    rest = range(len(perm))
    return any(sorted(q := [a for a in perm if a != axis]) == q for axis in rest)


def test_every_transpose_in_moves_is_that_transpose_and_each_move_is_of_one_axis() -> None:
    seen = 0
    for perm in PERMUTATIONS:
        x = variable("x", SIZES[: len(perm)])
        found = in_moves(Transpose(perm), x)
        if found is None:
            continue
        given = np.arange(np.prod(SIZES[: len(perm)]), dtype=np.float64).reshape(SIZES[: len(perm)])
        np.testing.assert_array_equal(evaluate(found, FLOAT, {x: given}), given.transpose(perm))
        moves = transposes(found)
        assert 2 <= len(moves) <= MOST
        assert all(map(moves_one_axis, moves))
        assert sum(isinstance(t.operator, Rows) for t in subterms(found)) == len(moves) - 1
        seen += 1
    assert seen > len(PERMUTATIONS) / 3


@pytest.mark.parametrize(
    ("shape", "perm"),
    [
        ((4, 5, 6), (0, 2, 1)),
        ((4, 5, 6, 7), (0, 2, 3, 1)),
        ((4, 5, 6, 7), (2, 3, 0, 1)),
        ((4, 1, 6, 7), (0, 3, 1, 2)),
        ((4, 5, 6, 7), (2, 1, 0, 3)),
        ((1, 1), (1, 0)),
        ((1, 4), (1, 0)),
    ],
    ids=[
        "one move",
        "of one axis",
        "of two that stay together",
        "through one place",
        "the last axis stays",
        "one place",
        "a row",
    ],
)
def test_what_runtimes_do_by_blocks_already_is_left(shape: tuple[int, ...], perm: tuple[int, ...]) -> None:
    assert in_moves(Transpose(perm), variable("x", shape)) is None


@pytest.mark.parametrize(
    ("shape", "perm", "wanted"),
    [
        ((4, 5, 1, 6), (0, 3, 2, 1), (0, 2, 1)),
        ((1, 5, 6, 7), (0, 2, 1, 3), (1, 0, 2)),
        ((1, 5, 6, 7), (2, 0, 3, 1), (1, 0)),
        ((1, 5, 6, 7), (3, 1, 0, 2), (1, 0)),
    ],
    ids=["beside what moves", "before heads", "moved", "moved back"],
)
def test_what_axes_of_one_place_hide_is_one_move_without_them(
    shape: tuple[int, ...], perm: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    found = in_moves(Transpose(perm), x := variable("x", shape))
    assert found is not None
    assert transposes(found) == [wanted]
    given = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    np.testing.assert_array_equal(evaluate(found, FLOAT, {x: given}), given.transpose(perm))


def test_axes_of_one_place_and_axes_that_stay_together_are_moved_as_one() -> None:
    found = in_moves(Transpose((0, 4, 3, 2, 1)), variable("x", (1, 8, 3, 4, 5)))
    assert found is not None
    assert all(len(perm) <= 4 for perm in transposes(found))


def test_a_move_of_large_blocks_comes_before_one_of_small_blocks() -> None:
    """Of three channels and patches of 16 by 16 those channels go last first: blocks are of 48 then, and not of 16."""
    found = in_moves(Transpose(PATCHES), variable("x", (1, 3, 14, 16, 14, 16)))
    assert found is not None
    reshapes = [t.operator.to for t in subterms(found) if isinstance(t.operator, Reshape)]
    assert (14, 16, 14, 48) in reshapes


def test_sizes_may_be_symbolic() -> None:
    n, h = symbol("n"), symbol("h")
    x = variable("x", (n, 3, h, 4))
    with assuming():
        found = in_moves(Transpose((0, 3, 2, 1)), x)
    assert found is not None
    assert found.shape == (n, 4, h, 3)


def test_rows_are_at_an_axis_that_there_is() -> None:
    x = variable("x", (2, 3, 4))
    assert Rows(1)(x).shape == (2, 12)
    with pytest.raises(superopt.SuperoptError, match="no axis 4"):
        Rows(4)(x)


@pytest.mark.parametrize("opset", [8, 17])
def test_patches_of_an_image_are_made_faster_and_are_the_same(opset: int, options: Options) -> None:
    """As einops write `b c (h p) (w q) -> b (h w) (p q c)`."""
    nodes = [
        helper.make_node("Reshape", ["x", "parts"], ["a"]),
        helper.make_node("Transpose", ["a"], ["b"], perm=PATCHES),
        helper.make_node("Reshape", ["b", "rows"], ["y"]),
    ]
    ends = [("x", TensorProto.FLOAT, [1, 3, 224, 224]), ("y", TensorProto.FLOAT, [1, 196, 768])]
    sizes = {"parts": np.array([1, 3, 14, 16, 14, 16]), "rows": np.array([1, 196, 768])}
    given = model(nodes, ends[:1], ends[1:], sizes, opset=opset)
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert_same(result.proto(), given)
