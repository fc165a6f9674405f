"""ReduceProd along few places is read as their products, and placed in a search place by place."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from superopt.arithmetic.field import FIELD
from superopt.evaluate import evaluate, sample
from superopt.onnx_io import load, understand
from superopt.operators.layout import Concat, Reshape
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Mul
from superopt.operators.products import multiplied
from superopt.search.rewriting.finders.placewise import Placewise
from superopt.term import Term, subterms, variable
from tests.models import model, weight
from tests.onnx_io.networks import run
from tests.onnx_io.test_catalogue import read_back
from tests.onnx_io.test_understanding import opaque

X = variable("x", (3, 2))
FIRST, SECOND = (Reshape((3,))(Slice(1, i, i + 1)(X)) for i in range(2))


def product(shape: tuple[int | str, ...], axes: list[int] | None, opset: int = 18, **given: int) -> onnx.ModelProto:
    """A ReduceProd, whose axes are an input from opset 18 on."""
    named = {"axes": axes} if axes is not None and opset < 18 else {}
    inputs = ["x", "axes"] if axes is not None and opset >= 18 else ["x"]
    node = helper.make_node("ReduceProd", inputs, ["y"], **named, **given)
    weights = {"axes": np.array(axes)} if len(inputs) > 1 else {}
    return model([node], [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, None)], weights, opset=opset)


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("axes", [[-1], [0], [0, 2], [1, -1], None], ids=str)
def test_it_multiplies_all_places_along_its_axes(axes: list[int] | None, opset: int, keepdims: int) -> None:
    made = product((2, 3, 2), axes, opset, keepdims=keepdims)
    feed = {"x": weight(2, 3, 2)}
    np.testing.assert_allclose(read_back(made, feed), run(made, feed)[0], rtol=1e-6)


def test_with_no_axes_it_may_be_what_it_reads() -> None:
    made = product((2, 3), None, noop_with_empty_axes=1)
    feed = {"x": weight(2, 3)}
    np.testing.assert_array_equal(read_back(made, feed), feed["x"])


@pytest.mark.parametrize(
    ("made", "why"),
    [(product((2, 17), [1]), "more than 16"), (product((2, "n"), [1]), "concrete sizes")],
    ids=["many places", "of an open number"],
)
def test_of_many_places_it_stays_opaque(made: onnx.ModelProto, why: str) -> None:
    assert why in opaque(understand(load(made)))


def test_a_product_is_known_again_by_its_places() -> None:
    assert multiplied(Mul()(FIRST, SECOND)) == (X, 1)


@pytest.mark.parametrize(
    "other",
    [Mul()(SECOND, FIRST), Mul()(FIRST, FIRST), Mul()(FIRST, variable("y", (3,))), FIRST],
    ids=["another order", "twice the same", "another value", "one place"],
)
def test_other_products_are_not_taken_for_one(other: Term) -> None:
    assert multiplied(other) is None


def test_a_product_of_what_is_stacked_joins_nothing() -> None:
    stack = Concat(1)(Concat(1)(variable("a", (3, 1)), variable("b", (3, 1))), variable("c", (3, 1)))
    places = [Reshape((3,))(Slice(1, i, i + 1)(stack)) for i in range(3)]
    term = Mul()(Mul()(places[0], places[1]), places[2])
    made = Placewise().of(term)
    assert made is not None
    assert not any(isinstance(t.operator, Concat | Slice) for t in subterms(made))
    values = sample((made, term), FIELD, 0)
    np.testing.assert_array_equal(evaluate(made, FIELD, values), evaluate(term, FIELD, values))
