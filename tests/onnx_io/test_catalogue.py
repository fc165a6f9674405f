"""Every declared operator, in every range of opsets: written, run, and read back."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from superopt.arithmetic.carrier import Array
from superopt.arithmetic.floats import FLOAT
from superopt.evaluate import evaluate
from superopt.onnx_io import check, load, random_weights, standalone, understand
from superopt.operators import CATALOGUE, Declared, NotUnderstood
from superopt.operators.activations import (
    Celu,
    Elu,
    Gelu,
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    Mish,
    PRelu,
    Reciprocal,
    Selu,
    Softsign,
    Swish,
    plus,
)
from superopt.operators.argmax import ArgMax
from superopt.operators.attention.dot_product import Attention, MaskedAttention
from superopt.operators.attention.flat_heads import AttentionOfFlatRows, MaskedAttentionOfFlatRows
from superopt.operators.attention.grouped import GroupedAttention, MaskedGroupedAttention
from superopt.operators.attention.heads import AttentionOfRows, MaskedAttentionOfRows
from superopt.operators.attention.rotary import Rotary
from superopt.operators.casts import Cast
from superopt.operators.clip import Clip
from superopt.operators.columns import Columns, Elements
from superopt.operators.comparisons import Equal, IsNan, Less, LessOrEqual
from superopt.operators.constant import Band, Count, Scalar, filled, matrix
from superopt.operators.conv import Conv
from superopt.operators.differences import Abs, Neg, Sub
from superopt.operators.extrema import Max, Min
from superopt.operators.fourier import Dft, Stft
from superopt.operators.functions import Cos, Erf, Exp, Log, Pow, Sigmoid, Sin, Softplus, Tanh
from superopt.operators.interpolate import Interpolate
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.logic import And, Not, Or, Where
from superopt.operators.lookups import Lookups
from superopt.operators.matmul import MatMul
from superopt.operators.nearest import Nearest
from superopt.operators.nodes import concrete
from superopt.operators.normalize import BatchNorm, Gemm, Lrn, Softmax
from superopt.operators.norms import GroupNorm, InstanceNorm, LayerNorm, LogSoftmax, RmsNorm
from superopt.operators.padding import Pad, PadAround
from superopt.operators.picks import Every, Slice, Take
from superopt.operators.pipelines import Imputer, Normalizer, Scaler
from superopt.operators.places import PLACES
from superopt.operators.pointwise import Add, Div, Mul, Relu, Sqrt
from superopt.operators.rearrange import Gather, repeated
from superopt.operators.reduce import AvgPool, GlobalAvgPool, MaxPool
from superopt.operators.reductions import Sum
from superopt.operators.resampling import Cubic, Weighing
from superopt.operators.rows import Rows
from superopt.operators.steps import Ceil, Floor, Round, Sign
from superopt.operators.transposed import ConvTranspose
from superopt.operators.waves import Waves
from superopt.term import REAL, TRUTH, Graph, Term, subterms, variable, variables
from tests.onnx_io.networks import run
from tests.operators.general import REDUCTIONS
from tests.versions import since

OPSETS = (7, 9, 10, 11, 13, 18, 21, 24)
"""One of each range in which the operators' forms differ."""

X = variable("x", (2, 4, 7, 6))
M, N = variable("m", (3, 5)), variable("n", (5, 4))
K = variable("k", (6, 2, 3, 2), constant=True)
W = variable("w", (6, 7), constant=True)
U, V5 = variable("u", (5,), constant=True), variable("v5", (5,), constant=True)
B, C = variable("b", (6,), constant=True), variable("c", (4,), constant=True)
Y = variable("y", (2, 4, 7, 6))
ROWS = Reshape((4, 7, 12))(X)
PARTS = Reshape((2, 3, 16, 2))(Slice(2, 0, 4)(X))
FLAT = Reshape((28, 12))(X)
MASK, MASKS, KEYS = variable("mask", (7, 7)), variable("masks", (4, 7, 7)), variable("keys", (7,))
SHARED = Slice(1, 1, 3)(Y)
POSITIVE = Less()(filled(0.0, X.shape), X)
V = tuple(variable(f"v{i}", (4,), constant=True) for i in range(4))

SAMPLES: dict[str, Term] = {
    "transpose": Transpose((2, 0, 3, 1))(X),
    "reshape": Reshape((8, 42))(X),
    "rows": Rows(2)(X),
    "concat": Concat(1)(X, X),
    "concat of three": Concat(2)(Concat(2)(X, X), X),
    "slice": Slice(2, 1, 5)(X),
    "slices along two axes": Slice(3, 2, 6)(Slice(2, 1, 5)(X)),
    "slices of which two are along one axis": Slice(2, 1, 3)(Slice(3, 2, 6)(Slice(2, 1, 5)(X))),
    "pad": Pad((0, 1, 2, 0, 0, 0, 1, 3))(X),
    "pad_around": PadAround((0, 1, 2, 0, 0, 0, 1, 3))(X),
    "pad_around by the edge": PadAround((0, 1, 2, 0, 0, 0, 1, 3), "edge")(X),
    "expand": Expand((0, 2), (3, 2, 5))(M),
    "add": Add()(X, X),
    "mul": Mul()(X, Expand((1,), X.shape)(C)),
    "div": Div()(X, filled(3.0, X.shape)),
    "sqrt": Sqrt()(Mul()(X, X)),
    "relu": Relu()(X),
    "matmul": MatMul()(M, N),
    "matmul with batches": MatMul()(Transpose((0, 1, 3, 2))(X), X),
    "matmul with one matrix": MatMul()(Reshape((8, 7, 6))(X), Expand((1, 2), (8, 6, 7))(W)),
    "conv": Conv((2, 1), (1, 0, 2, 1), (1, 2), 2)(X, K),
    "conv of three window axes": Conv((1, 2, 1), (0, 1, 0, 1, 0, 0), (1, 1, 2), 2)(
        Reshape((1, 4, 2, 7, 6))(Slice(0, 0, 1)(Concat(1)(X, X))), variable("k", (6, 2, 2, 3, 2), constant=True)
    ),
    "conv with a bias": Add()(Conv((1, 1), (0, 0, 0, 0), (1, 1), 2)(X, K), Expand((1,), (2, 6, 5, 5))(B)),
    "softmax": Softmax(1)(X),
    "softmax of the last axis": Softmax(1)(M),
    "batchnorm": BatchNorm(1e-3)(X, *V),
    # ONNX's reference sums over channels below the size of the batch only, so this batch has as many as there are.
    "lrn": Lrn(3, 0.5, 0.75, 2.0)(Concat(0)(X, X)),
    "gemm": Gemm(0.5, 2.0, 1, 1)(Transpose((1, 0))(M), Transpose((1, 0))(N), Expand((1,), (3, 4))(C)),
    "maxpool": MaxPool((3, 2), (2, 1), (1, 0, 1, 1))(X),
    "avgpool": AvgPool((3, 2), (2, 1), (1, 0, 1, 1))(X),
    "avgpool that counts padding": AvgPool((3, 2), (2, 1), (1, 0, 1, 1), (1, 1), 1)(X),
    "global_avgpool": GlobalAvgPool()(X),
    "scalar": Add()(X, filled(2.5, X.shape)),
    "matrix": MatMul()(M, matrix([[1, -2], [0, 3], [5, 7], [-1, 1], [2, 4]])),
    **{cls.name: cls()(X) for cls in (Neg, Abs, Exp, Erf, Tanh, Sigmoid, Softplus, Sin, Cos, Floor, Ceil, Sign, Round)},
    **{cls.name: cls()(X, Mul()(X, X)) for cls in (Sub, Max, Min)},
    "log": Log()(plus(Mul()(X, X), 1.0)),
    "pow": Pow()(plus(Mul()(X, X), 1.0), X),
    **{cls.name: cls(alpha=0.3)(X) for cls in (LeakyRelu, Elu, Celu, Swish)},
    **{cls.name: cls()(X) for cls in (Selu, Softsign, HardSigmoid, HardSwish, Mish)},
    "reciprocal": Reciprocal()(plus(Mul()(X, X), 1.0)),
    "prelu": PRelu()(X, Expand((1,), X.shape)(C)),
    "gelu": Gelu()(X),
    "gelu by tanh": Gelu(1)(X),
    **{cls.name: cls((1, 3))(plus(Mul()(X, X), 1.0)) for cls in REDUCTIONS},
    **{cls.name: Where()(cls()(X, Y), X, Y) for cls in (Less, LessOrEqual, Equal)},
    "is_nan": Where()(IsNan()(X), Y, X),
    "not": Where()(Not()(POSITIVE), X, Y),
    "and": Where()(And()(POSITIVE, Less()(X, Y)), X, Y),
    "or": Where()(Or()(POSITIVE, Less()(X, Y)), X, Y),
    "cast": Cast()(POSITIVE),
    "clip": Clip()(X, Scalar(-0.5)(), Scalar(0.75)()),
    "conv_transpose": ConvTranspose((2, 3), (1, 0, 0, 1), (1, 2), 2, (1, 2))(
        X, variable("k", (4, 3, 3, 2), constant=True)
    ),
    "gather": Gather(1)(X, Cast("int64")(Slice(0, 1, 4)(V[0]))),
    "columns": Columns((3, 0, 3))(X),
    "elements": Elements(2)(X, Expand((2,), (2, 4, 3, 6))(Cast("int64")(Slice(0, 1, 4)(V[0])))),
    "lookups": Lookups((14, 14))(FLAT, Cast("int64")(Reshape((2, 2))(V[0]))),
    "take": Take(2, (3, 0, 3))(X),
    "every": Every(2, 3)(X),
    "every of a slice": Every(3, 2)(Slice(3, 1, 6)(X)),
    "conv_transpose of one window axis": ConvTranspose((2,), (1, 0), (2,), 1, (1,))(
        Reshape((2, 4, 42))(X), variable("k", (4, 3, 3), constant=True)
    ),
    "conv_transpose of three window axes": ConvTranspose((1, 2, 1), (0, 1, 0, 1, 0, 0), (1, 1, 2), 1, (0, 1, 0))(
        Reshape((2, 4, 7, 3, 2))(X), variable("k", (4, 3, 1, 3, 2), constant=True)
    ),
    **{f"interpolate by {by}": Interpolate((10, 4), by)(X) for by in PLACES},
    "nearest": Nearest((3, 9))(X),
    **{f"cubic by {by}": Cubic((10, 4), by, -0.5)(X) for by in PLACES},
    "cubic of elements within": Cubic((10, 4), within=1)(X),
    "interpolate of one axis": Interpolate((9,))(Reshape((2, 4, 42))(X)),
    "attention": Attention(0.5)(X, Y, Slice(3, 0, 3)(X)),
    "masked_attention": MaskedAttention(0.5)(X, Y, X, MatMul()(X, Transpose((0, 1, 3, 2))(Y))),
    "grouped_attention": GroupedAttention(0.5)(X, SHARED, Slice(3, 0, 3)(SHARED)),
    "masked_grouped_attention": MaskedGroupedAttention(0.5)(X, SHARED, SHARED, MatMul()(X, Transpose((0, 1, 3, 2))(Y))),
    "attention_of_rows": AttentionOfRows(2, 0.5)(ROWS, ROWS, Slice(2, 0, 4)(ROWS)),
    "masked_attention_of_rows": MaskedAttentionOfRows(2, 0.5)(
        ROWS, ROWS, ROWS, Reshape((4, 2, 7, 7))(MatMul()(X, Transpose((0, 1, 3, 2))(Y)))
    ),
    "attention_of_flat_rows": AttentionOfFlatRows(2, 4, 0.5)(FLAT, FLAT, Slice(1, 0, 4)(FLAT)),
    "masked_attention_of_flat_rows": MaskedAttentionOfFlatRows(2, 4, 0.5)(
        FLAT, FLAT, FLAT, Reshape((4, 2, 7, 7))(MatMul()(X, Transpose((0, 1, 3, 2))(Y)))
    ),
    "masked_attention by one mask for all": MaskedAttention(0.5)(X, Y, X, Expand((2, 3), (2, 4, 7, 7))(MASK)),
    "masked_attention by a mask of heads": MaskedAttention(0.5)(
        X, Y, X, Expand((1, 2, 3), (2, 4, 7, 7))(Slice(0, 1, 5)(Concat(0)(Reshape((1, 7, 7))(MASK), MASKS)))
    ),
    "masked_attention by a mask of keys": MaskedAttention(0.5)(X, Y, X, Expand((3,), (2, 4, 7, 7))(KEYS)),
    "masked_attention_of_rows by one mask for all": MaskedAttentionOfRows(2, 0.5)(
        ROWS, ROWS, ROWS, Expand((2, 3), (4, 2, 7, 7))(MASK)
    ),
    "masked_attention by truth values": MaskedAttention(0.5, 1)(X, Y, X, Slice(3, 0, 7)(Concat(3)(POSITIVE, POSITIVE))),
    "repeated": repeated(X, (1, 2, 1, 3), within=True),
    "sum of all": Sum((0, 1, 2, 3))(X),
    "log_softmax": LogSoftmax(3)(X),
    "layernorm": LayerNorm(3, 1e-3)(X, variable("g", (6,), constant=True), B),
    "layernorm of two axes": LayerNorm(2)(
        X, variable("g", (7, 6), constant=True), variable("h", (7, 6), constant=True)
    ),
    "rmsnorm": RmsNorm(3)(X, B),
    "rotary": Rotary()(X, *(Reshape((2, 7, 3))(Slice(3, 0, 3)(Slice(1, 0, 1)(t))) for t in (X, Y))),
    "instancenorm": InstanceNorm(1e-3)(X, V[0], V[1]),
    "groupnorm": GroupNorm(2)(X, V[0], V[1]),
    "count": Add()(M, Expand((1,), M.shape)(Cast()(Count(5, 3)()))),
    "argmax": Cast()(ArgMax(1)(X)),
    "scaler": Scaler()(M, U, V5),
    "imputer": Imputer()(M, U),
    "imputer of a number": Imputer(1, 0.0)(Relu()(M), U),
    **{f"normalizer by {norm}": Normalizer(norm)(M) for norm in ("L1", "L2")},
    "waves": MatMul()(M, Waves(M.shape[1], 3)()),
    **{f"dft along {axis}": Dft(axis)(PARTS) for axis in (1, 2)},
    "dft back": Dft(2, inverse=1)(PARTS),
    "dft of one side": Dft(2, onesided=1)(Reshape((2, 3, 32, 1))(PARTS)),
    **{f"stft of {o + 1} sides": Stft(3, 1 - o)(Reshape((2, 84, 1))(Slice(1, 0, 2)(X)), U) for o in (0, 1)},
    "weighing": MatMul()(M, Weighing(M.shape[1], 6)()),
    "band": MatMul()(M, Slice(1, 0, 4)(Band(5, 1, 0)())),
}
"""A term for each operator, over variables without data of their own."""


def value(term: Term, given: dict[Term, Array]) -> Array:
    return evaluate(term, FLOAT, {v: given[v].astype(np.float64) for v in variables(term)})


def test_there_is_a_sample_of_every_operator() -> None:
    assert {t.operator.name for s in SAMPLES.values() for t in subterms(s)} >= set(CATALOGUE)


def oldest(term: Term) -> int:
    """The first opset that has all operators of a term."""
    run = [t.operator for t in subterms(term) if isinstance(t.operator, Declared) and not t.constant]
    written = [op.onnx for op in run if not op.domain]
    # Before there was Expand, there was Tile.
    since = [min(s.since_version for s in SCHEMAS if s.name == n) for n in written if n and n != "Expand"]
    forms = [opset for name, opset in NEW_FORMS.items() if name in written]
    steps = [10 for t in subterms(term) if isinstance(t.operator, Every | Lookups)]
    return max([1, *since, *forms, *steps])


NEW_FORMS = {"GroupNormalization": 21, "Equal": 11, "Resize": 11}
"""From which opset on operators have the form that is declared."""

SCHEMAS = [s for s in onnx.defs.get_all_schemas_with_history() if not s.domain]


@pytest.mark.parametrize(("name", "opset"), [(n, o) for n in SAMPLES for o in OPSETS if o >= oldest(SAMPLES[n])])
def test_a_term_that_is_written_runs_reads_and_means_the_same(name: str, opset: int) -> None:
    term = SAMPLES[name]
    graph = Graph((), (term,))
    model = standalone(graph, opset, seed=3)
    check(model)
    rng = np.random.default_rng(1)
    given = {
        v: rng.standard_normal(concrete(v.shape, name)).astype(np.float32) for v in variables(term) if not v.constant
    }
    expected = value(term, {**given, **random_weights(graph, seed=3)})
    feed = {v.label: a for v, a in given.items()}
    np.testing.assert_allclose(run(model, feed)[0], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(read_back(model, feed), expected, rtol=1e-4, atol=1e-5)


def read_back(model: onnx.ModelProto, feed: dict[str, Array]) -> Array:
    """The value of a model's output by the terms that its nodes are read as, all of which must be understood."""
    program = understand(load(model))
    assert program.summary.opaque == {}
    known = {program.values[n]: a for n, a in feed.items()}
    known |= {v: program.data(n) for n, v in program.values.items() if v.constant}
    for step in program.steps:
        for output, term in zip(step.outputs, step.terms, strict=True):
            known[program.values[output]] = value(term, known)
    return known[program.values[program.outputs[0]]]


COMPOSITE = {n: t for n, t in SAMPLES.items() if isinstance(t.operator, Declared) and t.operator.definition(*t.inputs)}


@pytest.mark.parametrize("name", COMPOSITE)
def test_a_definition_means_what_the_reference_says_of_its_operator(name: str) -> None:
    if name == "masked_attention by truth values" and not since(onnx, 1, 23):
        pytest.skip("older references give no number for a row that attends to nothing")
    term = SAMPLES[name]
    assert isinstance(term.operator, Declared)
    # What is an attribute in ONNX has to be a constant.
    types = [(TRUTH if i.type.dtype == TRUTH else REAL, i.constant and bool(term.operator.domain)) for i in term.inputs]
    inputs = [variable(f"i{n}", i.shape, *types[n]) for n, i in enumerate(term.inputs)]
    meaning = term.operator.definition(*inputs)
    assert meaning is not None
    rng = np.random.default_rng(1)
    given = {v: rng.uniform(0.5, 1.5, concrete(v.shape, "a sample")).astype(np.float32) for v in inputs}
    given |= {v: given[v] > 1 for v in inputs if v.type.dtype == TRUTH}
    graph = Graph(tuple(inputs), (term.operator(*inputs),))
    model = standalone(graph, max(17, oldest(term)))
    (expected,) = ReferenceEvaluator(model).run(None, {v.label: a for v, a in given.items() if not v.constant})
    given |= random_weights(graph)
    np.testing.assert_allclose(value(meaning, given), np.asarray(expected), rtol=1e-4, atol=1e-5)


def test_every_operator_with_a_definition_was_compared_with_the_reference() -> None:
    defined = {n for n, c in CATALOGUE.items() if c.definition is not Declared.definition}
    assert defined == {t.operator.name for t in COMPOSITE.values()}


def test_an_operator_that_the_opset_lacks_is_a_named_error() -> None:
    with pytest.raises(NotUnderstood, match="opset 7 has no operator Erf"):
        standalone(Graph((), (SAMPLES["erf"],)), 7)


def test_an_attribute_that_the_opset_lacks_is_a_named_error() -> None:
    pool = AvgPool((3, 2), (1, 1), (0, 0, 0, 0), (2, 2))(X)
    assert standalone(Graph((), (pool,)), 19).graph.node[0].op_type == "AveragePool"
    with pytest.raises(NotUnderstood, match="AveragePool has no attribute dilations in opset 18"):
        standalone(Graph((), (pool,)), 18)


def test_an_opset_before_7_is_a_named_error() -> None:
    with pytest.raises(NotUnderstood, match="older than 7"):
        standalone(Graph((), (SAMPLES["relu"],)), 6)
