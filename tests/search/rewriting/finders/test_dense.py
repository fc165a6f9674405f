"""Steps that are linear in one value are one matrix, exactly."""

from __future__ import annotations

from functools import reduce
from random import Random

import numpy as np
import pytest

from superopt.arithmetic.field import FIELD
from superopt.arithmetic.floats import FLOAT
from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.conv import Conv
from superopt.operators.definitions.sums import MOST_ROWS
from superopt.operators.differences import Neg, Sub
from superopt.operators.fourier import Dft
from superopt.operators.layout import Concat, Expand, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Gemm
from superopt.operators.padding import Pad
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.operators.reduce import AvgPool
from superopt.operators.reductions import Mean, Sum
from superopt.search.rewriting.finders.at_once import FEWEST_COLUMNS
from superopt.search.rewriting.finders.dense import LARGEST, Densing
from superopt.search.rewriting.finders.items import Item, MixedError, regrouped
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import Term, running, variable

BATCH, SEEDS = 3, 200
X, NODES = variable("x", (BATCH, 16)), variable("x", (4, BATCH))
GRAPHS = variable("x", (2, 4, BATCH))


def weight(name: str, *shape: Dim) -> Term:
    return variable(name, shape, constant=True)


def rows(x: Term, name: str, results: int) -> Term:
    """A product with one matrix."""
    w, last = weight(name, x.shape[-1], results), x.type.rank - 1
    return MatMul()(x, w if last == 1 else Expand((last - 1, last), (*x.shape[:-2], *w.shape))(w))


def step(x: Term, name: str = "a") -> Term:
    """A product with the matrix of a graph, of its nodes."""
    a, rank = weight(name, 4, 4), x.type.rank
    return MatMul()(a if rank == 2 else Expand((1, 2), (*x.shape[:-2], 4, 4))(a), x)


def train(x: Term, rank: int = 4) -> Term:
    """A layer of two cores, each of which takes one of two axes of four places, which its result is put behind."""
    batch = x.shape[0]
    y = reshaped(Transpose((0, 2, 1))(reshaped(x, (batch, 4, 4))), (batch * 4, 4))
    z = reshaped(rows(y, "a", rank * 4), (batch, 4, rank, 4))
    last = reshaped(Transpose((0, 3, 2, 1))(z), (batch * 4, rank * 4))
    return reshaped(Transpose((0, 2, 1))(reshaped(rows(last, "b", 4), (batch, 4, 4))), (batch, 16))


def blocks(x: Term, name: str) -> Term:
    """A product of each four places with a matrix of their own, which are interleaved after that."""
    by_block = Transpose((1, 0, 2))(reshaped(x, (BATCH, 4, 4)))
    y = Transpose((1, 2, 0))(MatMul()(by_block, weight(name, 4, 4, 4)))
    return reshaped(y, (BATCH, 16))


def scaled(x: Term, name: str) -> Term:
    return Mul()(x, Expand((), x.shape)(weight(name)))


def teleported(x: Term, start: Term, times: int) -> Term:
    """Steps on a graph, each mixed with the start."""
    return reduce(lambda z, _: Add()(scaled(step(z), "s"), scaled(start, "t")), range(times), x)


def butterfly(x: Term) -> Term:
    """Sums and differences of halves."""
    one, other = Slice(1, 0, 8)(x), Slice(1, 8, 16)(x)
    return Concat(1)(Add()(one, other), Sub()(one, other))


def chebyshev(x: Term) -> Term:
    """2·A·(A·x) − x."""
    return Sub()(scaled(step(step(x)), "s"), x)


def decomposed(count: int) -> Term:
    """What a series goes on as, by layers of its trend and of what is left of it (DLinear, Zeng et al. 2023): the means
    of windows, for which its ends are repeated.
    """
    x = variable("x", (count, 12, 3))

    def repeated(at: int) -> Term:
        axes, ends = ((0, 2), (count, 3)) if count > 1 else ((2,), (3,))
        return Expand(axes, (count, 2, 3))(reshaped(Slice(1, at, at + 1)(x), ends))

    turn, longer = Transpose((0, 2, 1)), Concat(1)(Concat(1)(repeated(0), x), repeated(11))
    windows = AvgPool((1, 5), (1, 1), (0, 0, 0, 0))(reshaped(turn(longer), (count, 3, 1, 16)))
    trend = reshaped(windows, (count, 3, 12))
    return turn(Add()(rows(turn(Sub()(x, turn(trend))), "a", 6), rows(trend, "b", 6)))


def convolved(x: Term, name: str, results: int, stride: int, group: int = 1) -> Term:
    """A convolution of a window of three."""
    return Conv((stride,), (1, 0), (2,), group)(x, weight(name, results, x.shape[1] // group, 3))


def phases(count: int) -> Term:
    """What a series goes on as, by one layer for each of its phases, of it and of what is near (SparseTSF, Lin et al.
    2024): less its mean, which is added again in the end.
    """
    x = variable("x", (count, 12, 3))
    mean = Expand((0, 2), x.shape)(Mean((1,))(x))
    series = Transpose((0, 2, 1))(Sub()(x, mean))
    near = Conv((1,), (2, 2), (1,))(reshaped(series, (count * 3, 1, 12)), weight("k", 1, 1, 5))
    by_phase = Transpose((0, 2, 1))(reshaped(Add()(reshaped(near, (count, 3, 12)), series), (count * 3, 3, 4)))
    ahead = reshaped(Transpose((0, 2, 1))(rows(by_phase, "w", 2)), (count, 3, 8))
    return Add()(Transpose((0, 2, 1))(ahead), Expand((0, 2), (count, 8, 3))(Mean((1,))(x)))


BIASED = Gemm(0.5, 2.0, 0, 1)(X, weight("w", 12, 16), Expand((1,), (BATCH, 12))(weight("c", 12)))

STEPS = {
    "cores of a tensor train": train(X),
    "two layers": rows(rows(X, "a", 15), "b", 7),
    "three, with scales and signs between": rows(Neg()(scaled(rows(rows(X, "a", 15), "b", 14), "s")), "c", 7),
    "blocks on the diagonal": blocks(blocks(X, "a"), "b"),
    "a butterfly": rows(butterfly(rows(X, "a", 16)), "b", 16),
    "layers with something added": rows(BIASED, "b", 5),
    "something taken from a constant": rows(
        Sub()(Expand((1,), (BATCH, 15))(weight("c", 15)), rows(X, "a", 15)), "b", 7
    ),
    "a sum of results": Sum((1,))(reshaped(rows(rows(X, "a", 15), "b", 8), (BATCH, 2, 4))),
    "heads": Transpose((1, 0, 2))(
        MatMul()(Expand((1, 2), (2, BATCH, 12))(rows(X, "a", 12)), weight("b", 2, 12, 5)),
    ),
    "two steps on a graph": step(step(NODES)),
    "of several graphs": step(step(GRAPHS)),
    "steps that begin anew": teleported(NODES, NODES, 3),
    "of two values": teleported(NODES, variable("h", (4, BATCH)), 3),
    "less the start": chebyshev(NODES),
    "a series and its trend": decomposed(1),
    "several series and their trends": decomposed(BATCH),
    "phases of a series": phases(1),
    "phases of several series": phases(BATCH),
    "zeros around": rows(Pad((0, 1, 0, 2))(rows(X, "a", 12)), "b", 9),
    "two convolutions": convolved(convolved(variable("x", (BATCH, 2, 9)), "a", 4, 1), "b", 3, 2),
    "a single row": rows(rows(variable("x", (1, 16)), "a", 15), "b", 7),
}


@pytest.mark.parametrize("term", STEPS.values(), ids=STEPS)
def test_linear_steps_are_one_product_of_each_value_that_they_begin_with(term: Term) -> None:
    made = Densing().of(term)
    assert made is not None
    assert made.type == term.type
    products = [t for t in running(made) if isinstance(t.operator, MatMul)]
    assert len(products) == len([v for v in ("x", "h") if f"?{v}" in repr(term)])
    env = sample((term, made), FIELD, 1)
    assert (evaluate(made, FIELD, env) == evaluate(term, FIELD, env)).all()


@pytest.mark.parametrize(("channels", "stays"), [(FEWEST_COLUMNS - 1, False), (FEWEST_COLUMNS, True)])
def test_columns_that_are_many_are_multiplied_as_they_stand(channels: int, stays: bool) -> None:
    x = variable("x", (BATCH, 12, channels))
    made = Densing().of(Transpose((0, 2, 1))(rows(rows(Transpose((0, 2, 1))(x), "a", 11), "b", 9)))
    assert made is not None
    (one,) = [t for t in running(made) if isinstance(t.operator, MatMul)]
    assert (one.inputs[1] is x) == stays


def frequencies(x: Term, sides: int) -> Term:
    """What a series goes on as by its low frequencies (FITS, Xu et al. 2024): a layer of the real parts, and zeros."""
    batch, length = x.shape
    waves = Dft(1, 0, sides)(reshaped(x, (batch, length, 1)))
    real = reshaped(Slice(2, 0, 1)(Slice(1, 0, 3)(waves)), (batch, 3))
    return rows(Pad((0, 0, 0, 2))(rows(real, "a", 4)), "b", 16)


@pytest.mark.parametrize("sides", [0, 1])
def test_a_transform_is_a_linear_step(sides: int) -> None:
    term = frequencies(X, sides)
    made = Densing().of(term)
    assert made is not None
    assert [t.inputs[0] for t in running(made) if isinstance(t.operator, MatMul)] == [X]
    env = sample((term, made), FLOAT, 1)
    assert np.allclose(evaluate(made, FLOAT, env), evaluate(term, FLOAT, env), rtol=1e-9)


def test_a_transform_of_more_waves_than_are_kept_stays() -> None:
    made = Densing().of(frequencies(variable("x", (1, 3000)), 0))
    assert made is not None, "of what is behind it"
    assert any(isinstance(t.operator, Dft) for t in running(made))


def test_a_batch_may_be_of_a_size_that_a_symbol_stands_for() -> None:
    with assuming():
        term = train(variable("x", (symbol("n"), 16)))
        made = Densing().of(term)
    assert made is not None
    assert made.type == term.type


LEFT = {
    "a single product": rows(X, "a", 15),
    "zeros in front of a batch": Pad((1, 0, 0, 0))(rows(rows(X, "a", 15), "b", 7)),
    "few channels between": rows(rows(X, "a", 2), "b", 16),
    "what is not linear between": rows(Relu()(rows(X, "a", 15)), "b", 7),
    "a factor of each row": rows(Mul()(rows(X, "a", 15), weight("f", BATCH, 15)), "b", 7),
    "a product of what is computed": MatMul()(rows(X, "a", 16), Transpose((1, 0))(rows(X, "b", 16))),
    "nodes and features": step(rows(NODES, "w", 4)),
    "more rows than an identity may have": rows(rows(variable("x", (1, MOST_ROWS + 1)), "a", 64), "b", 4),
    "a matrix that is too large": rows(rows(variable("x", (1, LARGEST)), "a", LARGEST), "b", 4),
}


@pytest.mark.parametrize("term", LEFT.values(), ids=LEFT)
def test_what_is_no_less_as_one_matrix_is_left(term: Term) -> None:
    assert Densing().of(term) is None


def random_steps(seed: int) -> Term:
    """Some linear steps in any order, of a value of three axes."""
    rng = Random(seed)
    x = variable("x", [rng.choice((1, 2, 3, 4)) for _ in range(3)])
    starts = [x]
    for n in range(9):
        x = rng.choice([x, x, *starts]) if n == 5 else x
        shape, axis = x.shape, rng.randrange(x.type.rank)
        c = weight(f"c{n}", *(shape[axis:] if rng.random() < 0.5 else shape[axis : axis + 1]))
        axes = tuple(range(axis, axis + c.type.rank))
        halves = (*shape[:axis], 2, shape[axis] // 2, *shape[axis + 1 :])
        match rng.randrange(12):
            case 0 | 1:
                x = rows(x, f"w{n}", rng.choice((2, 3, 4)))
            case 2:
                x = Transpose(tuple(rng.sample(range(len(shape)), len(shape))))(x)
            case 3 if axis:
                x = reshaped(x, (*shape[: axis - 1], shape[axis - 1] * shape[axis], *shape[axis + 1 :]))
            case 4 if shape[axis] % 2 == 0:
                x = reshaped(x, halves)
            case 5:
                x = Add()(x, Expand(axes, shape)(c))
            case 6:
                x = Mul()(x, Expand(axes, shape)(c))
            case 7 if shape[axis] > 1:
                x = Concat(axis)(Slice(axis, 1, shape[axis])(x), x)
            case 8:
                x = Sub()(x, Neg()(x))
            case 9 if len(shape) < 4:
                x = Expand(tuple(a + (a >= axis) for a in range(len(shape))), (*shape[:axis], 2, *shape[axis:]))(x)
            case 11:
                x = Pad(tuple(rng.choice((0, 1)) if n == axis else 0 for n in (*range(len(shape)),) * 2))(x)
            case 10 if len(shape) == 3 and shape[2] > 3:
                group = 2 if shape[1] % 2 == 0 and rng.random() < 0.5 else 1
                x = convolved(x, f"k{n}", rng.choice((2, 4)), rng.choice((1, 2)), group)
        if x.type.rank < 2:
            x = reshaped(x, (1, *x.shape))
    return x


def test_a_number_of_what_has_a_batch_is_left() -> None:
    x = variable("x", (1, 64))
    assert Densing().of(reshaped(rows(rows(x, "a", 64), "b", 1), ())) is None
    with pytest.raises(MixedError):
        regrouped(((Item(1),),), ())


def test_random_steps_keep_their_values() -> None:
    seen = 0
    for seed in range(SEEDS):
        term = random_steps(seed)
        made = Densing().of(term)
        if made is not None:
            seen += 1
            assert made.type == term.type, term
            env = sample((term, made), FIELD, seed)
            assert (evaluate(made, FIELD, env) == evaluate(term, FIELD, env)).all(), term
    assert seen > SEEDS // 10


def test_searches_look_for_it() -> None:
    assert Less(Densing) in rewrites_of([], ["gemm"])
