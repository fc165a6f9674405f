"""What is the same at many places is computed at one, and what comes out is the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

from superopt.arithmetic.floats import FLOAT
from superopt.cost.analytic import AnalyticCost
from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.activations import Gelu
from superopt.operators.conv import Conv
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.nodes import concrete
from superopt.operators.normalize import Gemm, Softmax
from superopt.operators.norms import LayerNorm
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.rules.format import load_rules
from superopt.rules.otherwise import otherwise
from superopt.search.rewriting.finders.repeated import Repeating
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import rewrites_of
from superopt.search.strategies.backtrack import backtrack
from superopt.search.strategies.found import Limits
from superopt.shipped import shipped_rules
from superopt.term import Graph, Term, running, variable, variables

POINTS, WIDTH = 7, 6


def weight(label: str, *shape: Dim) -> Term:
    return variable(label, shape, constant=True)


def points(term: Term, count: Dim = POINTS) -> Term:
    """One row, for each of so many points."""
    return Expand((0, 2), (1, count, WIDTH))(term)


def single(padded: int = 0, step: int = 1, kernel: int = 1) -> tuple[Conv, Term]:
    """A convolution over a line, and its weights."""
    return Conv((step,), (padded, padded), (1,), 1), weight("k", 4, WIDTH, kernel)


ROW, OTHER = variable("x", (1, WIDTH)), variable("z", (1, WIDTH))
LINE = Expand((0, 1), (1, WIDTH, POINTS))(variable("x", (1, WIDTH)))
STACK = Expand((1, 2), (1, WIDTH, 4))(weight("w", WIDTH, 4))

TAKEN = {
    "relu": Relu()(points(ROW)),
    "gelu": Gelu()(points(ROW)),
    "of two": Mul()(points(ROW), points(OTHER)),
    "product of rows": MatMul()(points(ROW), STACK),
    "gemm": Gemm()(
        Expand((1,), (POINTS, WIDTH))(variable("r", (WIDTH,))),
        weight("w", WIDTH, 4),
        Expand((1,), (POINTS, 4))(weight("b", 4)),
    ),
    "softmax along another axis": Softmax(2)(points(ROW)),
    "layer norm": LayerNorm(2)(points(ROW), weight("s", WIDTH), weight("o", WIDTH)),
    "transpose": Transpose((2, 1, 0))(points(ROW)),
    "slice of another axis": Slice(2, 1, 3)(points(ROW)),
    "concat along another axis": Concat(2)(points(ROW), points(OTHER)),
    "convolution of single places": single()[0](LINE, single()[1]),
}
LEFT = {
    "one is not repeated": Add()(points(ROW), variable("y", (1, POINTS, WIDTH))),
    "softmax along that axis": Softmax(1)(points(ROW)),
    "concat along that axis": Concat(1)(points(ROW), points(OTHER)),
    "convolution of three places": single(padded=1, kernel=3)[0](LINE, single(kernel=3)[1]),
    "convolution with padding": single(padded=1)[0](LINE, single()[1]),
    "convolution of every other place": single(step=2)[0](LINE, single()[1]),
    "what is repeated once": Relu()(Expand((0, 2), (1, 1, WIDTH))(ROW)),
}  # fmt: skip


def most_computed(term: Term) -> int:
    """The elements of the largest value that is computed, not only repeated."""
    return max(
        math.prod(concrete(t.shape, "a value")) for t in running(term) if not isinstance(t.operator, Expand | Reshape)
    )


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_the_same_at_all_places_is_computed_at_one(name: str) -> None:
    term = TAKEN[name]
    made = Repeating().of(term)
    assert made is not None
    assert isinstance(made.operator, Expand)
    assert made.type == term.type
    assert most_computed(made) * POINTS == most_computed(term)
    values = sample((term,), FLOAT, 0)
    np.testing.assert_allclose(evaluate(made, FLOAT, values), evaluate(term, FLOAT, values), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", LEFT)
def test_what_may_differ_stays(name: str) -> None:
    assert Repeating().of(LEFT[name]) is None


def test_so_it_is_for_a_number_of_places_that_is_a_symbol() -> None:
    n = symbol("n")
    with assuming():
        term = MatMul()(points(ROW, n), STACK)
    made = Repeating().of(term)
    assert made is not None
    assert (made.type, made.inputs[0].type.rank) == (term.type, 2)
    assert {str(d) for t in running(made) if not isinstance(t.operator, Expand) for d in t.shape} <= {
        "1",
        "4",
        str(WIDTH),
    }


THINGS = 3


def beside(name: str, repeated: int, width: int = WIDTH) -> Term:
    """Each of several things beside each of some points, below each other: repeated along one of the two axes."""
    count = POINTS if repeated == 0 else THINGS
    x = variable(name, (count, width))
    return Reshape((THINGS * POINTS, width))(Expand((1 - repeated, 2), (THINGS, POINTS, width))(x))


def gemm(x: Term) -> Term:
    return Gemm()(x, weight("w", WIDTH, 4), Expand((1,), (THINGS * POINTS, 4))(weight("b", 4)))


MERGED = {
    "relu, repeated last": (Relu()(beside("x", 1)), POINTS),
    "relu, repeated first": (Relu()(beside("x", 0)), THINGS),
    "of two": (Mul()(beside("x", 1), beside("y", 1)), POINTS),
    "product": (MatMul()(beside("x", 1), weight("w", WIDTH, 4)), POINTS),
    "gemm": (gemm(beside("x", 1)), POINTS),
    "sum with a row": (Add()(beside("x", 0), Expand((1,), (THINGS * POINTS, WIDTH))(weight("b", WIDTH))), THINGS),
    "softmax along another axis": (Softmax(1)(beside("x", 1)), POINTS),
    "transpose": (Transpose((1, 0))(beside("x", 0)), THINGS),
}


@pytest.mark.parametrize("name", MERGED)
def test_what_is_repeated_along_a_part_of_an_axis_is_computed_once(name: str) -> None:
    term, times = MERGED[name]
    made = Repeating().of(term)
    assert made is not None
    assert made.type == term.type
    assert most_computed(made) * times == most_computed(term)
    values = sample((term,), FLOAT, 0)
    np.testing.assert_allclose(evaluate(made, FLOAT, values), evaluate(term, FLOAT, values), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "term",
    [
        Mul()(beside("x", 0), beside("y", 1)),
        Mul()(beside("x", 0), variable("y", (THINGS * POINTS, WIDTH))),
        Mul()(beside("x", 1), Reshape((21, WIDTH))(Expand((0, 2), (POINTS, 3, WIDTH))(variable("y", (7, WIDTH))))),
        Softmax(0)(beside("x", 1)),
    ],
    ids=["another part", "one is not repeated", "parts of other sizes", "softmax along that axis"],
)
def test_what_may_differ_along_a_part_of_an_axis_stays(term: Term) -> None:
    assert Repeating().of(term) is None


def test_layers_follow_each_other_before_what_is_merged_is_repeated() -> None:
    made = Repeating()
    once = made.of(gemm(beside("x", 1)))
    assert once is not None
    twice = made.of(Relu()(once))
    assert twice is not None
    assert most_computed(twice) == THINGS * 4


def test_parts_of_an_axis_may_be_of_sizes_that_are_symbols() -> None:
    n, m = symbol("n"), symbol("m")
    with assuming():
        x = Expand((0, 2), (n, m, WIDTH))(variable("x", (n, WIDTH)))
        term = Relu()(Reshape((n * m, WIDTH))(x))
    made = Repeating().of(term)
    assert made is not None
    assert made.type == term.type
    assert [t.shape for t in running(made) if isinstance(t.operator, Relu)] == [(n, WIDTH)]


def layer(form: str) -> Term:
    """As PointNet's segmentation has it (Qi et al. 2017): 1,024 features of a cloud beside 64 of each of its points."""
    whole = variable("cloud", (1, 1024))
    if form == "rows":
        both = Concat(2)(variable("point", (1, 2048, 64)), Expand((0, 2), (1, 2048, 1024))(whole))
        return Relu()(MatMul()(both, Expand((1, 2), (1, 1088, 512))(weight("w", 1088, 512))))
    beside, cloud = variable("point", (1, 64, 32, 64)), Expand((0, 1), (1, 1024, 32, 64))(whole)
    both = Concat(1)(*((cloud, beside) if form == "ahead" else (beside, cloud)))
    return Relu()(Conv((1, 1), (0,) * 4, (1, 1), 1)(both, weight("k", 512, 1088, 1, 1)))


@pytest.mark.parametrize("form", ["rows", "behind", "ahead"])
def test_a_feature_of_all_beside_each_point_is_multiplied_once(form: str) -> None:
    start = layer(form)
    rules = [rule for path in shipped_rules() for rule in load_rules(path).rules]
    graph = Graph(tuple(variables(start)), (start,))
    found = backtrack(
        graph, Matching(rewrites_of([*rules, *otherwise(rules)], ["gemm"])), AnalyticCost(), Limits(expanded=20)
    ).best[0]
    assert products(found.graph) < 0.1 * products(graph) == 0.1 * 2 * 2048 * 1088 * 512


def products(graph: Graph) -> int:
    """The operations of all matrix products and convolutions."""
    operations = 0
    for term in graph.runs:
        if isinstance(term.operator, Conv | MatMul):
            count = term.operator.flops(term.shape, *(i.shape for i in term.inputs))
            assert isinstance(count, int)
            operations += count
    return operations
