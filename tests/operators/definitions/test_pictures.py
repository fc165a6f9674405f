"""Linear layers are convolutions of pictures, of which rows are the places: exactly; and what was one stays one."""

from __future__ import annotations

from functools import cache

import pytest

from superopt.arithmetic.field import FIELD
from superopt.arithmetic.floats import FLOAT
from superopt.demands import assuming
from superopt.dim import symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.activations import Gelu
from superopt.operators.comparisons import Less
from superopt.operators.constant import filled
from superopt.operators.conv import Conv
from superopt.operators.declared import Declared
from superopt.operators.definitions.pictures import CHANNELS_FIRST, CHANNELS_LAST
from superopt.operators.functions import Pow, Sigmoid, Tanh
from superopt.operators.layout import Expand, Reshape, Transpose
from superopt.operators.logic import Where
from superopt.operators.matmul import MatMul
from superopt.operators.meanings import FURTHER_DEFINITIONS
from superopt.operators.normalize import Gemm
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.search.rewriting import rewrites
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import rewrites_of
from superopt.term import Term, subterms, variable

ROWS: list[tuple[int, ...]] = [(1,), (5,), (2, 3), (2, 1, 3)]
AS_CONVOLUTIONS = [name for name in FURTHER_DEFINITIONS if name.endswith("as a convolution")]
BACK = FURTHER_DEFINITIONS["transpose of what stays a picture"].term_of


@cache
def matching() -> Matching:
    """What a search finds by these definitions alone."""
    found = rewrites_of([], [*AS_CONVOLUTIONS, "transpose of what stays a picture"])
    return Matching([rewrite for rewrite in found if not isinstance(rewrite, rewrites.Less)])


def given(name: str, *shape: int) -> Term:
    return variable(name, shape, "float32")


def weights(name: str, *shape: int) -> Term:
    return variable(name, shape, "float32", constant=True)


def product(x: Term, w: Term) -> Term:
    repeated = Expand((x.type.rank - 2, x.type.rank - 1), (*x.shape[:-2], *w.shape))
    return MatMul()(x, w if x.type.rank == 2 else repeated(w))


def biased(y: Term, b: Term) -> Term:
    return Add()(y, Expand((y.type.rank - 1,), y.shape)(b))


def layers(rows: tuple[int, ...]) -> dict[str, Term]:
    """What of rows a convolution computes, by the operator whose definition says so."""
    x = given("x", *rows, 8)
    plain = product(x, weights("w", 8, 12))
    found = {"matmul": plain, "add": biased(plain, weights("b", 12))}
    if x.type.rank == 2:
        row = Expand((1,), (x.shape[0], 12))(weights("b", 12))
        found["gemm"] = Gemm()(x, weights("w", 8, 12), row)
        found["gemm, weights transposed"] = Gemm(trans_b=1)(x, weights("w", 12, 8), row)
    return found


LAYERS = {f"{name} of {rows}": term for rows in ROWS for name, term in layers(rows).items()}


def as_convolution(term: Term) -> Term | None:
    return FURTHER_DEFINITIONS[f"{term.operator.name} as a convolution"].term_of(term.operator, *term.inputs)


@pytest.mark.parametrize("name", LAYERS)
def test_a_linear_layer_is_a_convolution_of_one_picture(name: str) -> None:
    """Of random elements of a prime field: two that differ agree once in 2³⁰ times."""
    term = LAYERS[name]
    made = as_convolution(term)
    assert made is not None
    assert made.type == term.type
    running = [t.operator for t in subterms(made) if not t.constant]
    (conv,) = (t for t in subterms(made) if isinstance(t.operator, Conv))
    assert not any(isinstance(op, MatMul | Gemm) for op in running)
    assert conv.shape[0] == 1, "all rows are places of one picture"
    values = sample((term,), FIELD, 0)
    assert (evaluate(made, FIELD, values) == evaluate(term, FIELD, values)).all()


@pytest.mark.parametrize("turned", [False, True], ids=["second", "first"])
def test_a_layers_bias_is_one_of_channels(turned: bool) -> None:
    term = LAYERS["add of (2, 3)"]
    made = as_convolution(Add()(*term.inputs[:: -1 if turned else 1]))
    assert made is not None
    (add,) = (t for t in subterms(made) if isinstance(t.operator, Add))
    assert isinstance(add.inputs[0].operator, Conv)
    assert add.inputs[1].operator == Expand((1,), add.shape)


X = given("x", 6, 8)
ROW = Expand((1,), (6, 12))(weights("b", 12))
LEFT = {
    "weights that are computed": product(X, given("w", 8, 12)),
    "doubles": product(variable("d", (6, 8), "float64"), variable("e", (8, 12), "float64", constant=True)),
    "very many weights": product(given("m", 6, 4096), weights("n", 4096, 4096)),
    "rows that are constant": product(weights("c", 6, 8), weights("w", 8, 12)),
    "channels that are no whole blocks": product(given("y", 6, 7), weights("v", 7, 12)),
    "channels given that are no whole blocks": product(X, weights("w", 8, 13)),
    "other weights for each matrix": MatMul()(given("y", 2, 6, 8), weights("w", 2, 8, 12)),
    "a bias that is computed": Add()(product(X, weights("w", 8, 12)), Expand((1,), (6, 12))(given("b", 12))),
    "a bias for each row": Add()(product(X, weights("w", 8, 12)), Expand((0,), (6, 12))(weights("b", 6))),
    "a sum with rows": Add()(product(X, weights("w", 8, 12)), given("z", 6, 12)),
    "a sum of no product": Add()(Relu()(given("z", 6, 12)), ROW),
    "a product that is scaled": Gemm(alpha=0.5)(X, weights("w", 8, 12), ROW),
    "a bias that is scaled": Gemm(beta=2.0)(X, weights("w", 8, 12), ROW),
    "rows that stand as columns": Gemm(trans_a=1)(given("y", 8, 6), weights("w", 8, 12), ROW),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_no_linear_layer_of_whole_blocks_is_left(name: str) -> None:
    assert as_convolution(LEFT[name]) is None


def test_rows_of_several_symbols_are_pictures_of_the_first() -> None:
    """ONNX copies one size, and computes another of what remains: no product of the two."""
    batch, length = symbol("batch"), symbol("length")
    with assuming():
        term = product(variable("x", (batch, length, 8), "float32"), weights("w", 8, 12))
        made = as_convolution(term)
    assert made is not None
    assert made.type == term.type
    assert [t.shape for t in subterms(made) if isinstance(t.operator, Conv)] == [(batch, 12, 1, length)]


def test_a_layer_is_a_convolution_where_a_search_looks() -> None:
    """Of a stack the weights are three operators below a sum, and repeated."""
    layers = [term for name, term in LAYERS.items() if "1, 3" in name or name.startswith("gemm")]
    found = [a.template.rewrite.name for term in layers for a in matching().at(term)]
    assert {name.removeprefix("definition of ") for name in found} == set(AS_CONVOLUTIONS)


P, Q = given("p", 1, 8, 1, 6), given("q", 1, 8, 1, 6)
"""Pictures of six places."""


def rows(picture: Term) -> Term:
    """The rows of a picture, below each other."""
    return Reshape((6, 8))(Transpose(CHANNELS_LAST)(picture))


def picture(of: Term) -> Term:
    return Transpose(CHANNELS_FIRST)(Reshape((1, 1, 6, 8))(of))


def gelu_by_tanh(x: Term) -> Term:
    """As GPT-2 has it, with a power."""
    half, one, root, share, three = (filled(number, x.shape) for number in (0.5, 1.0, 0.79788456, 0.044715, 3.0))
    inner = Mul()(root, Add()(x, Mul()(share, Pow()(x, three))))
    return Mul()(Mul()(half, x), Add()(one, Tanh()(inner)))


def defined(op: Declared, *inputs: Term) -> Term:
    meaning = op.definition(*inputs)
    assert meaning is not None
    return meaning


STAYING = {
    "a function": Gelu()(rows(P)),
    "a gate": Mul()(Mul()(rows(P), Sigmoid()(rows(P))), rows(Q)),
    "a bias": biased(rows(P), weights("b", 8)),
    "a factor": Mul()(rows(P), Expand((), (6, 8))(weights("a"))),
    "what is chosen by elements": Where()(Less()(rows(P), rows(Q)), rows(P), rows(Q)),
    "a gelu by its tanh, written out": gelu_by_tanh(rows(P)),
    "a gelu by its tanh, as it is defined": defined(Gelu(1), rows(P)),
    "a stack": Reshape((6, 8))(Gelu()(Reshape((2, 3, 8))(rows(P)))),
}


@pytest.mark.parametrize("name", STAYING)
def test_what_is_computed_of_pictures_element_by_element_stays_one(name: str) -> None:
    term = picture(STAYING[name])
    made = BACK(term.operator, *term.inputs)
    assert made is not None
    assert made.type == term.type
    assert not any(isinstance(t.operator, Transpose | Reshape) for t in subterms(made))
    values = sample((term,), FLOAT, 0)
    assert (evaluate(made, FLOAT, values) == evaluate(term, FLOAT, values)).all()
    assert [a.new[term] for a in matching().at(term)] == [made], "a search finds it, however deep it is"


def test_pictures_of_symbolic_sizes_stay_such() -> None:
    length = symbol("length")
    with assuming():
        was = variable("p", (1, 8, 1, length), "float32")
        term = Transpose(CHANNELS_FIRST)(
            Reshape((1, 1, length, 8))(Gelu()(Reshape((1, length, 8))(Transpose(CHANNELS_LAST)(was))))
        )
        assert BACK(term.operator, *term.inputs) is Gelu()(was)


MOVED = {
    "rows that were no picture": Gelu()(given("x", 6, 8)),
    "rows beside those of a picture": Add()(rows(P), given("x", 6, 8)),
    "rows taken apart": Reshape((6, 8))(Gelu()(Reshape((12, 4))(rows(P)))),
    "one number": Reshape((6, 8))(Expand((), (48,))(given("n"))),
    "another picture's rows": Gelu()(rows(given("p", 2, 8, 1, 3))),
    "a number for each row": Add()(rows(P), Expand((0,), (6, 8))(weights("b", 6))),
    "what is no function of elements": MatMul()(rows(P), weights("w", 8, 8)),
    "rows that were moved otherwise": Gelu()(Reshape((6, 8))(Transpose((0, 3, 2, 1))(given("p", 1, 8, 1, 6)))),
}


@pytest.mark.parametrize("name", MOVED)
def test_what_was_no_picture_throughout_is_left(name: str) -> None:
    term = picture(MOVED[name])
    assert BACK(term.operator, *term.inputs) is None


def test_a_number_that_becomes_a_picture_is_left() -> None:
    term = Transpose(CHANNELS_FIRST)(Reshape((1, 1, 1, 1))(given("x")))
    assert BACK(term.operator, *term.inputs) is None


def test_a_transpose_otherwise_is_left() -> None:
    term = Transpose((0, 2, 1, 3))(Gelu()(Transpose(CHANNELS_LAST)(P)))
    assert BACK(term.operator, *term.inputs) is None
