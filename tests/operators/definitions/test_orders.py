"""Places in another order: carried past what acts on each element, and taken in by weights."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.onnx_io import load, understand
from superopt.operators.casts import Cast
from superopt.operators.conv import Conv
from superopt.operators.definitions.orders import (
    MOST_JOINED,
    cast_of_another_order,
    conv_of_another_order,
    matmul_of_another_order,
    of_another_order,
    of_places_of_one,
    take_of_what_is_taken,
    transpose_of_another_order,
)
from superopt.operators.differences import Sub
from superopt.operators.layout import Concat, Expand, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.picks import MOST_PLACES, Slice, Take
from superopt.operators.pointwise import Add, Div, Mul
from superopt.term import Term, variable
from tests.models import assert_same, model, weight
from tests.operators.definitions.equality import assert_equal

ORDERS = [(2, 1, 0), (1, 2, 0)]
"""One is its own inverse, the other is not."""

each_order = pytest.mark.parametrize("order", ORDERS, ids=str)
IMAGE = (1, 3, 4, 5)
x = variable("x", IMAGE)
BGR = Take(1, (2, 1, 0))(x)
SQUARE = variable("square", (3, 3))
KERNEL = variable("k", (2, 3, 3, 3), constant=True)


@each_order
def test_axes_move_before_places(order: tuple[int, ...]) -> None:
    op, taken = Transpose((0, 3, 1, 2)), Take(3, order)(variable("x", (1, 4, 5, 3)))
    found = assert_equal(transpose_of_another_order(op, taken), op(taken))
    assert found.operator == Take(1, order)


@pytest.mark.parametrize("inner", [Take(2, (3, 0, 3, 2)), Slice(2, 1, 4)], ids=lambda op: op.name)
@pytest.mark.parametrize("indices", [(2, 0), (1, 1), (0, 1, 2), (0,)], ids=str)
def test_places_of_places_are_taken_at_once(inner: Take | Slice, indices: tuple[int, ...]) -> None:
    term = Take(2, indices)(inner(x))
    found = assert_equal(take_of_what_is_taken(Take(2, indices), inner(x)), term)
    assert found.inputs == (x,)


def test_places_along_another_axis_are_not() -> None:
    assert take_of_what_is_taken(Take(2, (0, 1)), BGR) is None


@each_order
def test_elements_are_cast_before_places_move(order: tuple[int, ...]) -> None:
    op, taken = Cast("int32"), Take(1, order)(x)
    assert_equal(cast_of_another_order(op, taken), op(taken))


@each_order
@pytest.mark.parametrize("op", [Add(), Sub(), Mul(), Div()], ids=lambda op: op.name)
@pytest.mark.parametrize("axes", [(), (1,), (3,), (1, 2), None], ids=str)
@pytest.mark.parametrize("turned", [False, True], ids=["constant last", "constant first"])
def test_constants_stand_in_the_order_that_was_before(
    op: Add, order: tuple[int, ...], axes: tuple[int, ...] | None, turned: bool
) -> None:
    sizes = IMAGE if axes is None else tuple(IMAGE[a] for a in axes)
    c = variable("c", sizes, constant=True)
    inputs = (Take(1, order)(x), c if axes is None else Expand(axes, IMAGE)(c))
    inputs = inputs[::-1] if turned else inputs
    found = assert_equal(of_another_order(op, *inputs), op(*inputs))
    assert found.operator == Take(1, order)


@each_order
def test_kernels_take_the_order_of_channels_in(order: tuple[int, ...]) -> None:
    op = Conv((1, 1), (1, 1, 1, 1))
    found = assert_equal(conv_of_another_order(op, Take(1, order)(x), KERNEL), op(Take(1, order)(x), KERNEL))
    assert found.inputs[0] is x


@each_order
@pytest.mark.parametrize("stacks", [(), (2,)], ids=["one matrix", "a stack"])
def test_rows_of_matrices_take_the_order_of_columns_in(order: tuple[int, ...], stacks: tuple[int, ...]) -> None:
    rows, w = variable("x", (*stacks, 4, 3)), variable("w", (*stacks, 3, 5), constant=True)
    taken = Take(len(stacks) + 1, order)(rows)
    found = assert_equal(matmul_of_another_order(MatMul(), taken, w), MatMul()(taken, w))
    assert found.inputs[0] is rows


@pytest.mark.parametrize(
    "found",
    [
        conv_of_another_order(Conv((1, 1), (0, 0, 0, 0)), Take(1, (0, 0, 1))(x), KERNEL),
        conv_of_another_order(Conv((1, 1), (0, 0, 0, 0)), Take(2, (0, 2, 1, 3))(x), KERNEL),
        conv_of_another_order(Conv((1, 1), (0, 0, 0, 0), group=3), BGR, variable("k", (3, 1, 3, 3), constant=True)),
        conv_of_another_order(Conv((1, 1), (0, 0, 0, 0)), BGR, variable("k", (2, 3, 3, 3))),
        of_another_order(Add(), Take(1, (1, 0))(x), variable("c", (1, 2, 4, 5), constant=True)),
        of_another_order(Add(), BGR, x),
        matmul_of_another_order(MatMul(), Take(0, (1, 0, 2))(SQUARE), variable("w", (3, 3), constant=True)),
    ],
    ids=["twice the same", "of places", "groups", "a kernel that is computed", "not all", "no constant", "rows"],
)  # fmt: skip
def test_else_nothing_takes_an_order_in(found: Term | None) -> None:
    assert found is None


def test_places_that_are_cut_and_joined_are_taken() -> None:
    last, middle, first = (Slice(1, i, i + 1)(x) for i in (2, 1, 0))
    two = assert_equal(of_places_of_one(Concat(1), last, middle), Concat(1)(last, middle))
    assert assert_equal(of_places_of_one(Concat(1), two, first), Concat(1)(two, first)) is BGR


def test_many_places_are_joined_as_they_are_cut() -> None:
    many = variable("many", (MOST_JOINED + 1,))
    assert of_places_of_one(Concat(0), Slice(0, 1, MOST_JOINED + 1)(many), Slice(0, 0, 1)(many)) is None


def test_places_of_two_tensors_are_not_taken_of_one() -> None:
    other = variable("y", IMAGE)
    assert of_places_of_one(Concat(1), Slice(1, 0, 1)(x), Slice(1, 1, 2)(other)) is None


def backwards(shape: list[int], **bounds: int) -> onnx.ModelProto:
    given = {"start": -1, "end": -(2**63), "axis": 1, "step": -1} | bounds
    nodes = [helper.make_node("Slice", ["x", *given], ["y"])]
    inits = {name: np.array([value], np.int64) for name, value in given.items()}
    return model(nodes, [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, ["a", "b"])], inits)


@pytest.mark.parametrize(
    ("bounds", "places"),
    [
        ({}, (4, 3, 2, 1, 0)),
        ({"end": 0}, (4, 3, 2, 1)),
        ({"start": 99, "step": -2}, (4, 2, 0)),
        ({"start": -2, "end": -5}, (3, 2, 1)),
    ],
    ids=str,
)
def test_slices_backwards_are_takes(bounds: dict[str, int], places: tuple[int, ...]) -> None:
    (step,) = understand(load(backwards([2, 5], **bounds))).steps
    assert [term.operator for term in step.terms] == [Take(1, places)]


@pytest.mark.parametrize("shape", [[2, MOST_PLACES + 1], [2, "n"]], ids=["many", "how many is not known"])
def test_slices_backwards_of_so_many_places_stay_as_they_are(shape: list[int]) -> None:
    (step,) = understand(load(backwards(shape))).steps
    assert step.terms == ()


PICKED = {
    "Slice": [helper.make_node("Slice", ["x", "last", "end", "last", "last"], ["f"])],
    "Gather": [helper.make_node("Gather", ["x", "order"], ["f"], axis=3)],
    "Concat": [
        helper.make_node("Split", ["x"], ["r", "g", "b"], axis=3),
        helper.make_node("Concat", ["b", "g", "r"], ["f"], axis=3),
    ],
}
"""How exporters turn three channels around that stand last."""


@pytest.mark.parametrize("picked", PICKED)
def test_networks_take_images_in_the_order_of_their_channels(picked: str, options: Options) -> None:
    weights = {
        "k": weight(16, 3, 3, 3),
        "mean": np.array([103.9, 116.8, 123.7], np.float32),
        "last": np.array([-1]),
        "end": np.array([-(2**63)]),
        "order": np.array([2, 1, 0]),
    }
    nodes = [
        *PICKED[picked],
        helper.make_node("Sub", ["f", "mean"], ["s"]),
        helper.make_node("Transpose", ["s"], ["t"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["t", "k"], ["y"], strides=[2, 2], pads=[1, 1, 1, 1]),
    ]
    image = ("x", TensorProto.FLOAT, [1, 224, 224, 3])
    source = model(nodes, [image], [("y", TensorProto.FLOAT, [1, 16, 112, 112])], weights)
    result = superopt.optimize(source, options)
    assert result.report.outcome == "faster"
    assert_same(result.proto(), source)
    assert not {node.op_type for node in result.proto().graph.node} & {"Gather", "Concat", "Split"}
