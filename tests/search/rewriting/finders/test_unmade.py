"""What few queries or keys meet is not made by a layer: its weights are multiplied by them first, exactly."""

from __future__ import annotations

import pytest

from superopt.arithmetic.field import FIELD
from superopt.dim import Dim
from superopt.evaluate import evaluate, sample
from superopt.operators.layout import Expand, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Gemm
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Mul
from superopt.search.rewriting.finders.unmade import Unmaking
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import Term, running, variable

HEADS, WIDTH, CHANNELS, ROWS, FEW = 3, 8, 20, 40, 2
ALL = HEADS * WIDTH


def layer(*front: Dim, bias: bool = True, width: int = ALL) -> Term:
    """What is made of rows of each of a batch."""
    x, w = variable("x", (*front, ROWS, CHANNELS)), variable("w", (CHANNELS, width), constant=True)
    rank = x.type.rank
    repeated = Expand((rank - 2, rank - 1), (*front, *w.shape))(w) if front else w
    made = MatMul()(x, repeated)
    return Add()(made, Expand((rank - 1,), made.shape)(variable("b", (width,), constant=True))) if bias else made


def shifted(x: Term) -> Term:
    """What has another row added."""
    return Add()(x, Expand((x.type.rank - 1,), x.shape)(variable("c", x.shape[-1:], constant=True)))


def heads(x: Term, turned: bool) -> Term:
    """Rows of each head, (heads, rows, width), or as columns, behind the axes of batches."""
    front = x.shape[:-2]
    n = len(front)
    perm = (n + 1, n + 2, n) if turned else (n + 1, n, n + 2)
    return Transpose((*range(n), *perm))(reshaped(x, (*front, ROWS, HEADS, WIDTH)))


def scaled(x: Term) -> Term:
    return Mul()(x, Expand((), x.shape)(variable("s", (), constant=True)))


def few(*front: Dim, columns: int, rows: int = FEW) -> Term:
    return variable("q", (*front, HEADS, rows, columns))


def gemm() -> Term:
    bias = Expand((1,), (ROWS, ALL))(variable("b", (ALL,), constant=True))
    return Gemm(1.0, 1.0, 0, 1)(variable("x", (ROWS, CHANNELS)), variable("w", (ALL, CHANNELS), constant=True), bias)


def of_keys(x: Term) -> Term:
    keys = heads(x, turned=True)
    return MatMul()(few(*keys.shape[:-3], columns=WIDTH), keys)


def of_values(x: Term) -> Term:
    values = heads(x, turned=False)
    return MatMul()(few(*values.shape[:-3], columns=ROWS), values)


def of_queries(x: Term) -> Term:
    queries = heads(x, turned=False)
    return MatMul()(queries, few(*queries.shape[:-3], columns=FEW, rows=WIDTH))


def parts(x: Term) -> Term:
    """The second third of what is made at once."""
    return Slice(x.type.rank - 1, ALL, 2 * ALL)(x)


def of_each(batch: int) -> Term:
    """Keys of rows that lie before batches, as stacks of the heads of all."""
    x, w = variable("x", (ROWS, batch, CHANNELS)), variable("w", (CHANNELS, ALL), constant=True)
    made = MatMul()(x, Expand((1, 2), (ROWS, CHANNELS, ALL))(w))
    stacks = reshaped(made, (ROWS, batch * HEADS, WIDTH))
    return MatMul()(variable("q", (batch * HEADS, FEW, WIDTH)), Transpose((1, 2, 0))(stacks))


def one_of_both(batch: int) -> Term:
    """Values that are made beside keys, which stand apart, as torch writes it."""
    x, w = variable("x", (batch, ROWS, CHANNELS)), variable("w", (CHANNELS, 2 * ALL), constant=True)
    made = MatMul()(x, Expand((1, 2), (batch, CHANNELS, 2 * ALL))(w))
    apart = Transpose((2, 0, 1, 3))(reshaped(made, (batch, ROWS, 2, ALL)))
    values = heads(reshaped(Slice(0, 1, 2)(apart), (batch, ROWS, ALL)), turned=False)
    return MatMul()(few(batch, columns=ROWS), values)


def of_few_numbers() -> Term:
    """Values of one number for each head, with a bias, of rows of two."""
    x, w = variable("x", (ROWS, 2)), variable("w", (2, HEADS), constant=True)
    bias = Expand((1,), (ROWS, HEADS))(variable("b", (HEADS,), constant=True))
    values = reshaped(Transpose((1, 0))(Add()(MatMul()(x, w), bias)), (HEADS, ROWS, 1))
    return MatMul()(few(columns=ROWS, rows=1), values)


ALONE = MatMul()(variable("q", (FEW, WIDTH)), Transpose((1, 0))(layer(width=WIDTH)))
PRODUCTS = {
    f"{kind.__name__} {name}": kind(x)
    for kind in (of_keys, of_values, of_queries)
    for name, x in (
        ("of a layer", layer()),
        ("without a bias", layer(bias=False)),
        ("of one in a batch", layer(1)),
        ("of several", layer(4)),
        ("as torch writes a layer", gemm()),
        ("of two biases", shifted(layer())),
        ("as torch writes a layer, with a bias more", shifted(gemm())),
        ("of a part", parts(layer(4, width=3 * ALL))),
    )
} | {
    "scaled keys": MatMul()(few(columns=WIDTH), scaled(heads(layer(), turned=True))),
    "one head": ALONE,
    "rows before a batch": of_each(1),
    "rows before several": of_each(4),
    "values beside keys": one_of_both(4),
    "one number for each head": of_few_numbers(),
    "stacks of all heads": MatMul()(
        variable("q", (HEADS, FEW, WIDTH)),
        Transpose((0, 2, 1))(reshaped(heads(layer(1), turned=False), (HEADS, ROWS, WIDTH))),
    ),
}


@pytest.mark.parametrize("term", PRODUCTS.values(), ids=PRODUCTS)
def test_a_layer_is_not_made_of_what_few_meet(term: Term) -> None:
    made = Unmaking().of(term)
    assert made is not None
    assert made.type == term.type
    sizes = [set(t.shape[-2:]) for t in running(made) if isinstance(t.operator, MatMul)]
    assert not any(ROWS in s and s & {WIDTH, ALL} for s in sizes)
    env = sample((term, made), FIELD, 1)
    assert (evaluate(made, FIELD, env) == evaluate(term, FIELD, env)).all()


LEFT = {
    "many queries": MatMul()(few(columns=WIDTH, rows=WIDTH + 1), heads(layer(), turned=True)),
    "weights that are computed": MatMul()(
        few(columns=ALL), MatMul()(variable("v", (HEADS, ALL, CHANNELS)), variable("x", (HEADS, CHANNELS, ROWS)))
    ),
    "rows among channels": MatMul()(
        variable("q", (HEADS, FEW, 2 * WIDTH)), reshaped(layer(), (HEADS, 2 * WIDTH, ROWS // 2))
    ),
    "what is scaled for each row": MatMul()(
        few(columns=WIDTH),
        heads(Mul()(layer(), Expand((0,), (ROWS, ALL))(variable("s", (ROWS,), constant=True))), turned=True),
    ),
}


@pytest.mark.parametrize("term", LEFT.values(), ids=LEFT)
def test_what_is_no_less_or_no_view_of_a_layer_is_left(term: Term) -> None:
    assert Unmaking().of(term) is None


def test_searches_look_for_it() -> None:
    assert Less(Unmaking) in rewrites_of((), ["gemm"])
