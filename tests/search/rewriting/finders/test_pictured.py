"""Layers of functions of elements of layers are convolutions at once, exactly."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.arithmetic.field import FIELD
from superopt.dim import symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.conv import Conv
from superopt.operators.differences import Neg
from superopt.operators.layout import Expand, Reshape, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Gemm
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.search.rewriting.finders.pictured import Picturing
from superopt.term import Term, subterms, variable

NARROW, WIDE = 16, 32
ROW = variable("x", (1, 1, NARROW))


def weights(name: str, *shape: int) -> Term:
    return variable(name, shape, constant=True)


def layer(x: Term, wide: int, name: str) -> Term:
    """Rows times a matrix."""
    w, rank = weights(name, x.shape[-1], wide), x.type.rank
    return MatMul()(x, w if rank == 2 else Expand((rank - 2, rank - 1), (*x.shape[:-2], *w.shape))(w))


def biased(x: Term, name: str) -> Term:
    return Add()(x, Expand((x.type.rank - 1,), x.shape)(weights(name, x.shape[-1])))


def gated(x: Term) -> Term:
    """The block of a Llama, with another function of its gate."""
    return layer(Mul()(Relu()(layer(x, WIDE, "gate")), layer(x, WIDE, "up")), NARROW, "down")


def gemm(x: Term, wide: int, name: str) -> Term:
    w, c = weights(name, wide, NARROW), Expand((1,), (x.shape[0], wide))(weights(f"{name} bias", wide))
    return Gemm(trans_b=True)(x, w, c)


ROWS = variable("x", (5, NARROW))
MADE = {
    "a gated block of one row": gated(ROW),
    "of several rows": gated(variable("x", (2, 3, NARROW))),
    "with biases": biased(layer(Relu()(biased(layer(ROW, WIDE, "a"), "b")), NARROW, "c"), "d"),
    "as a Gemm": layer(Relu()(gemm(ROWS, WIDE, "a")), NARROW, "b"),
    "scaled by constants": layer(Mul()(layer(ROW, WIDE, "a"), Expand((), (1, 1, WIDE))(weights("s"))), NARROW, "b"),
    "rows that are shown otherwise": layer(
        Reshape((6, WIDE))(Neg()(layer(variable("x", (2, 3, NARROW)), WIDE, "a"))), 16, "b"
    ),
}

LEFT = {
    "so many rows as there will be": gated(variable("x", (symbol("n"), NARROW))),
    "many rows": gated(variable("x", (2, 8, NARROW))),
    "one layer": layer(ROW, WIDE, "a"),
    "a layer of a layer, which is one": layer(layer(ROW, WIDE, "a"), NARROW, "b"),
    "what is computed of an input beside a layer": layer(
        Mul()(layer(ROW, WIDE, "a"), variable("y", (1, 1, WIDE))), 16, "b"
    ),
    "few channels": layer(Relu()(layer(ROW, 3, "a")), NARROW, "b"),
    "channels that are moved": layer(
        Relu()(Transpose((1, 0))(layer(variable("x", (16, NARROW)), WIDE, "a"))), NARROW, "b"
    ),
    "weights that are computed": MatMul()(Relu()(layer(ROWS, WIDE, "a")), variable("w", (WIDE, NARROW))),
}


@pytest.mark.parametrize("term", MADE.values(), ids=MADE)
def test_as_convolutions_it_is_exactly_the_same(term: Term) -> None:
    made = Picturing().of(term)
    assert made is not None
    assert made.type == term.type
    values = sample((term, made), FIELD, 1)
    np.testing.assert_array_equal(evaluate(made, FIELD, values), evaluate(term, FIELD, values))


@pytest.mark.parametrize("term", LEFT.values(), ids=LEFT)
def test_else_it_is_left(term: Term) -> None:
    assert Picturing().of(term) is None


def test_between_the_layers_nothing_is_moved() -> None:
    made = Picturing().of(gated(variable("x", (2, 3, NARROW))))
    assert made is not None
    moved = [t for t in subterms(made) if isinstance(t.operator, Transpose) and not t.constant]
    assert [t.shape for t in moved] == [(1, NARROW, 1, 6), (1, 1, 6, NARROW)]
    assert sum(isinstance(t.operator, Conv) for t in subterms(made)) == 3
