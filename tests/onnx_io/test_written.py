"""What terms look like as ONNX: broadcasts, biases, joins and constants cost no node of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_ir
import pytest
from onnx import numpy_helper

from superopt.arithmetic.carrier import Array
from superopt.arithmetic.floats import FLOAT
from superopt.demands import assuming
from superopt.dim import floor_div, symbol
from superopt.errors import UsageError
from superopt.evaluate import evaluate
from superopt.onnx_io import check, load, rewritten, standalone, understand
from superopt.onnx_io.folding import FILL_LIMIT, LARGEST_SQUARE
from superopt.onnx_io.program import Program
from superopt.operators import NotUnderstood
from superopt.operators.attention.dot_product import MaskedAttention
from superopt.operators.attention.heads import AttentionOfRows
from superopt.operators.constant import Band, filled
from superopt.operators.conv import Conv
from superopt.operators.definitions.tiles import by_tiles
from superopt.operators.differences import Sub
from superopt.operators.interpolate import Interpolate
from superopt.operators.layout import Concat, Expand, Reshape
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Gemm
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.operators.rearrange import repeated
from superopt.operators.reductions import Mean, Sum
from superopt.term import Graph, Term, make, variable
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

X = variable("x", (1, 4, 6, 6))
V = variable("v", (4,), constant=True)
K, L = (variable(n, (4, 4, 3, 3), constant=True) for n in "kl")
B = variable("b", (4,), constant=True)
MEANS = Reshape((2, 9, 1))(Mean((2,))(variable("x", (2, 9, 5))))


def written(*outputs: Term) -> onnx.ModelProto:
    made = standalone(Graph((), outputs), 17, highest=23)
    check(made)
    return made


def nodes(*outputs: Term) -> list[str]:
    return [n.op_type for n in written(*outputs).graph.node]


def biased(conv: Term, bias: Term) -> Term:
    return Add()(conv, Expand((1,), conv.shape)(bias))


def test_a_broadcast_by_the_consumer_is_no_node() -> None:
    made = written(Mul()(X, Expand((1,), X.shape)(V)))
    assert [n.op_type for n in made.graph.node] == ["Mul"]
    assert [list(i.dims) for i in made.graph.initializer] == [[4, 1, 1]]


@pytest.mark.parametrize(
    ("beside", "axes"),
    [(variable("x", (2, 9, 1)), 3), (variable("x", (9, 1)), 2), (variable("x", (2, 1, 9)), 0), (MEANS, 0)],
    ids=["a signal", "scores", "rows", "means"],
)
def test_a_number_beside_rows_of_one_element_has_all_axes_unless_a_layer_norm_is_known_by_it(
    beside: Term, axes: int
) -> None:
    (number,) = [i for i in written(Add()(beside, filled(1e-5, beside.shape))).graph.initializer if i.data_type == 1]
    assert len(number.dims) == axes


def test_two_broadcasts_that_meet_are_no_nodes() -> None:
    a, b = variable("a", (3,)), variable("b", (5,))
    assert nodes(Add()(Expand((0,), (3, 5))(a), Expand((1,), (3, 5))(b))) == ["Reshape", "Add"]


def test_a_broadcast_that_nothing_else_makes_is_an_expand() -> None:
    a, b = variable("a", (3,)), variable("b", (3,))
    assert nodes(Add()(Expand((1,), (5, 3))(a), Expand((1,), (5, 3))(b))) == ["Expand", "Add"]
    assert nodes(Relu()(Expand((1,), (5, 3))(a))) == ["Expand", "Relu"]


def test_the_batch_of_a_matrix_product_is_broadcast_by_it() -> None:
    x, y = variable("x", (7, 3, 4)), variable("y", (4, 5))
    assert nodes(MatMul()(x, Expand((1, 2), (7, 4, 5))(y))) == ["MatMul"]
    assert (
        nodes(MatMul()(Expand((1, 2), (7, 5, 4))(variable("z", (5, 4))), Expand((1, 2), (7, 4, 5))(y)))[-1] == "MatMul"
    )


def test_a_reduction_whose_axes_are_put_back_keeps_them() -> None:
    x = variable("x", (2, 3, 4))
    mean = Mean((1, 2))(x)
    (node,) = written(Reshape((2, 1, 1))(mean)).graph.node
    assert (node.op_type, [a.i for a in node.attribute if a.name == "keepdims"]) == ("ReduceMean", [1])
    assert nodes(Reshape((1, 2, 1))(mean)) == ["ReduceMean", "Reshape"]
    assert nodes(mean, Reshape((2, 1, 1))(mean)) == ["ReduceMean", "Reshape"]


def test_what_a_norm_takes_away_from_its_input_is_written_as_exporters_do() -> None:
    x = variable("x", (2, 3, 4))
    kept = Reshape((2, 3, 1))(Mean((2,))(x))
    assert nodes(Sub()(x, Expand((0, 1), x.shape)(Reshape((2, 3))(kept)))) == ["ReduceMean", "Sub"]
    assert nodes(Sub()(x, Expand((0, 1), x.shape)(Mean((2,))(x)))) == ["ReduceMean", "Sub"]


def test_a_mask_that_is_one_for_all_heads_is_repeated_by_attention() -> None:
    x, whole = variable("x", (2, 4, 7, 6)), (2, 4, 7, 7)
    rows, keys = variable("m", (7, 7)), variable("m", (7,))

    def kinds(mask: Term) -> list[str]:
        made = standalone(Graph((), (MaskedAttention(0.5)(x, x, x, mask),)), 23)
        return [n.op_type for n in made.graph.node]

    assert kinds(Expand((2, 3), whole)(rows)) == ["Attention"]
    assert kinds(Expand((3,), whole)(keys)) == ["Expand", "Attention"]


def test_the_summand_of_a_gemm_is_broadcast_by_it() -> None:
    a, b = variable("a", (2, 3)), variable("w", (3, 4), constant=True)
    for axes, size in (((1,), 4), ((0,), 2)):
        c = variable("c", (size,), constant=True)
        assert nodes(Gemm()(a, b, Expand(axes, (2, 4))(c))) == ["Gemm"]
    assert nodes(Gemm()(a, b, filled(1.0, (2, 4)))) == ["Gemm"]


def test_a_bias_is_part_of_its_convolution() -> None:
    assert nodes(Relu()(biased(Conv()(X, K), B))) == ["Conv", "Relu"]
    y = Conv()(X, K)
    assert nodes(Add()(Expand((1,), y.shape)(B), y)) == ["Conv"]


def test_a_convolution_that_something_else_reads_has_no_bias() -> None:
    y = Conv()(X, K)
    assert nodes(Add()(biased(y, B), y)) == ["Conv", "Add", "Add"]
    assert nodes(biased(y, B), y) == ["Conv", "Add"]


def test_a_chain_of_concats_is_one() -> None:
    assert nodes(Concat(1)(Concat(1)(X, Relu()(X)), Concat(1)(X, X))) == ["Relu", "Concat"]


def test_a_concat_that_something_else_reads_is_its_own() -> None:
    inner = Concat(1)(X, X)
    assert nodes(Concat(1)(inner, X), inner) == ["Concat", "Concat"]
    assert nodes(Concat(1)(Concat(2)(X, X), Concat(2)(X, X))) == ["Concat", "Concat"]


def test_constant_terms_are_folded_once_each() -> None:
    kernel = Add()(K, L)
    made = written(Conv()(Conv()(X, kernel), kernel))
    assert [n.op_type for n in made.graph.node] == ["Conv", "Conv"]
    assert [i.name for i in made.graph.initializer] == ["folded_1"]


def test_a_number_is_folded_as_a_number() -> None:
    big = (1, 64, 56, 56)
    made = written(Mul()(variable("big", big), filled(2.0, big)))
    assert [(list(i.dims), i.float_data or numpy_helper.to_array(i)) for i in made.graph.initializer] == [([], 2.0)]


def test_a_large_fill_that_must_be_there_stays_small_in_the_file() -> None:
    side = int(FILL_LIMIT**0.5) + 1
    x = variable("x", (side, side))
    made = written(MatMul()(x, filled(1.0, (side, side))))
    assert [n.op_type for n in made.graph.node] == ["Reshape", "Expand", "MatMul"] or len(
        made.SerializeToString()
    ) < 999
    assert len(made.SerializeToString()) < 999
    small = written(MatMul()(variable("s", (2, 2)), filled(1.0, (2, 2))))
    assert [n.op_type for n in small.graph.node] == ["MatMul"]


def test_a_made_number_takes_the_element_type_of_its_reader() -> None:
    source = model("g (float[2] x, double[2] z) => (float[2] y, double[2] v) { y = Relu(x) v = Relu(z) }")
    program = understand(load(source))
    new = {n: Mul()(program.values[i], filled(2.0, (2,))) for n, i in (("y", "x"), ("v", "z"))}
    made = rewritten(program, new, {})
    check(made)
    assert [str(v.dtype) for v in made.graph.initializers.values()] == ["FLOAT", "DOUBLE"]


def test_folding_is_done_in_64_bits() -> None:
    source = model("g (float[1] x) => (float[1] y) <float[1] a = {1}, float[1] b = {3}> { y = Add(x, a) }")
    program = understand(load(source))
    a, b, x = (program.values[n] for n in "abx")
    tiny = Mul()(b, filled(1e-9, (1,)))
    made = rewritten(program, {"y": Add()(x, Add()(Add()(a, tiny), Mul()(a, filled(-1.0, (1,)))))}, {})
    folded = made.graph.initializers["folded_1"].const_value
    assert folded is not None
    assert folded.numpy() == pytest.approx(3e-9, rel=1e-6)


def test_a_reshape_of_symbolic_sizes_copies_those_that_stay() -> None:
    n, s = symbol("N"), symbol("S")
    x = variable("x", (n, s, 12))
    with assuming():
        parted, joined = Reshape((n, s, 3, 4))(x), Reshape((n * s, 12))(x)
    made = written(parted)
    assert list(numpy_helper.to_array(made.graph.initializer[0])) == [0, 0, 3, 4]
    assert [d.dim_param for d in made.graph.input[0].type.tensor_type.shape.dim] == ["N", "S", ""]
    feed = {"x": np.zeros((2, 5, 12), np.float32)}
    assert run(made, feed)[0].shape == (2, 5, 3, 4)
    assert list(numpy_helper.to_array(written(joined).graph.initializer[0])) == [-1, 12]


def test_sizes_that_a_reshape_computes_are_read_from_the_shapes_of_inputs() -> None:
    n, s = symbol("N"), symbol("S")
    with assuming():
        parted = Reshape((s, n))(variable("x", (n, s)))
    made = written(parted)
    assert [o.op_type for o in made.graph.node] == ["Shape", "Gather", "Concat", "Reshape"]
    assert run(made, {"x": np.zeros((4, 3), np.float32)})[0].shape == (3, 4)


def test_what_reads_attention_over_slices_with_computed_ends_is_a_valid_model() -> None:
    """Of such a Slice ONNX infers no size at all, and takes the width of the attention for 0."""
    n, s = symbol("N"), symbol("S")
    with assuming():
        rows = variable("x", (1, n + s, 24))
        q, k, v = (Slice(1, 0, n)(Slice(2, i, i + 8)(rows)) for i in (0, 8, 16))
        attended = AttentionOfRows(2, 0.5)(q, k, v)
    made = written(MatMul()(attended, variable("w", (1, 8, 3), constant=True)), variable("a", (n, s)))
    feed = {"x": np.ones((1, 7, 24), np.float32), "a": np.zeros((5, 2), np.float32)}
    assert run(made, feed)[0].shape == (1, 5, 3)


@pytest.mark.parametrize("anew", [(), ("s",)], ids=["carried", "written anew"])
def test_attention_over_slices_that_stay_in_a_model_keeps_it_valid(anew: Sequence[str]) -> None:
    source = model(
        """g (float[1, n, 8] x, float[m] a) => (float[1, k, 1] y)
        <float[8, 1] w = {1, 2, 3, 4, 5, 6, 7, 8}, int64[1] zero = {0}, int64[1] one = {1}>
        { m = Shape(a) s = Slice(x, zero, m, one) r = Relu(s) y = MatMul(r, w) }""",
        opset=23,
        ir=11,
    )
    program = understand(load(source))
    s, w = program.values["s"], program.values["w"]
    with assuming():
        attended = AttentionOfRows(2, 0.5)(s, s, s)
        new = {"y": MatMul()(attended, Expand((1, 2), (1, 8, 1))(w))}
        cut = Slice(1, 0, program.values["a"].shape[0])(program.values["x"])
    made = rewritten(program, new | dict.fromkeys(anew, cut), {})
    check(made)
    feed: dict[str, Array] = {"x": np.ones((1, 7, 8), np.float32), "a": np.zeros(5, np.float32)}
    assert run(onnx_ir.to_proto(made), feed)[0].shape == (1, 5, 1)


def test_a_quotient_of_sizes_is_rounded_downwards_when_it_is_written() -> None:
    n, s, k = symbol("N"), symbol("S"), symbol("K")
    with assuming():
        cut = Slice(0, 0, floor_div(n - 3, 2) + s)(variable("x", (k,)))
    made = written(cut, variable("a", (n, s)))
    feed = {"x": np.zeros(8, np.float32), "a": np.zeros((2, 4), np.float32)}
    assert run(made, feed)[0].shape == (3,)


def test_a_quotient_that_cannot_be_negative_is_one_division() -> None:
    n, k = symbol("N"), symbol("K")
    with assuming():
        cut = Slice(0, 0, floor_div(floor_div(n - 1, 2), 2) + 1)(variable("x", (k,)))
    made = written(cut, variable("a", (n,)))
    assert [node.op_type for node in made.graph.node].count("Div") == 1
    assert "Mod" not in [node.op_type for node in made.graph.node]
    for size, length in ((1, 1), (4, 1), (5, 2), (9, 3)):
        feed = {"x": np.zeros(8, np.float32), "a": np.zeros(size, np.float32)}
        assert run(made, feed)[0].shape == (length,)


def test_a_symbolic_size_that_no_value_has_is_a_named_error() -> None:
    n, s = symbol("N"), symbol("S")
    with assuming():
        swapped = Reshape((s, n))(variable("x", (n * s,)))
    with pytest.raises(NotUnderstood, match="no value has the size"):
        written(swapped)


def test_an_expand_may_keep_a_symbolic_size() -> None:
    n = symbol("N")
    with assuming():
        repeated = Relu()(Expand((0, 2), (n, 3, 4))(variable("x", (n, 4))))
    made = written(repeated)
    assert [o.op_type for o in made.graph.node] == ["Reshape", "Expand", "Relu"]
    assert run(made, {"x": np.ones((5, 4), np.float32)})[0].shape == (5, 3, 4)


def test_random_weights_are_the_same_for_one_seed_and_tame() -> None:
    graph = Graph((), (biased(Conv()(X, K), B),))
    one, two, other = (standalone(graph, 17, seed=s).SerializeToString() for s in (1, 1, 2))
    assert one == two != other
    k, b = (numpy_helper.to_array(i) for i in standalone(graph, 17, seed=1).graph.initializer)
    assert 0.5 <= b.min() <= b.max() <= 1.5
    assert k.std() == pytest.approx((2 / 36) ** 0.5, rel=0.2)


def test_inputs_that_nothing_reads_stay_and_outputs_may_repeat() -> None:
    made = standalone(Graph((X, variable("unused", (2,))), (Relu()(X), X, Relu()(X))), 17)
    check(made)
    assert [i.name for i in made.graph.input] == ["x", "unused"]
    assert [n.op_type for n in made.graph.node] == ["Relu", "Identity", "Identity"]


def test_two_variables_of_one_label_are_refused() -> None:
    with pytest.raises(UsageError, match="one label"):
        standalone(Graph((), (Relu()(variable("x", (1,))), Relu()(variable("x", (2,))))), 17)


def test_a_deep_term_is_written_without_recursion() -> None:
    deep = X
    for _ in range(3000):
        deep = Relu()(deep)
    assert len(standalone(Graph((), (deep,)), 17).graph.node) == 3000


@pytest.mark.parametrize("of_matrices", [False, True])
def test_a_convolution_by_tiles_runs_at_any_number_of_images(of_matrices: bool) -> None:
    x, k, conv = variable("x", (symbol("n"), 4, 7, 6)), variable("k", (5, 4, 3, 3)), Conv(pads=(1, 1, 1, 1))
    with assuming():
        both = [written(term) for term in (conv(x, k), by_tiles(conv, x, k, 4, of_matrices))]
    rng = np.random.default_rng(0)
    kernel = rng.standard_normal((5, 4, 3, 3), np.float32)
    for count in (1, 3):
        images = rng.standard_normal((count, 4, 7, 6), np.float32)
        direct, tiled = (run(m, {"x": images, "k": kernel}) for m in both)
        np.testing.assert_allclose(tiled, direct, atol=1e-4)


RESIZED = {"to twice": ((8, 12), 3), "to three halves": ((6, 9), 3), "to five fourths and thirds": ((5, 8), 4)}


@pytest.mark.parametrize("case", RESIZED)
def test_any_number_of_images_is_resized_by_factors_where_32_bits_hold_them(case: str) -> None:
    """By sizes, the fourth input, otherwise: computed while the model runs, they cost the layout of convolutions."""
    to, inputs = RESIZED[case]
    with assuming():
        made = written(Interpolate(to)(variable("x", (symbol("n"), 3, 4, 6))))
    (node,) = (n for n in made.graph.node if n.op_type == "Resize")
    assert len(node.input) == inputs
    images = np.random.default_rng(0).standard_normal((2, 3, 4, 6), np.float32)
    expected = evaluate(Interpolate(to)(variable("x", images.shape)), FLOAT, {variable("x", images.shape): images})
    np.testing.assert_allclose(run(made, {"x": images})[0], expected, atol=1e-5)


@pytest.mark.parametrize("opset", range(7, 14))
def test_places_that_are_repeated_are_one_node_that_runtimes_have_for_that(opset: int) -> None:
    """Before there was a Resize that said how it finds the nearest, by an Upsample, or a Resize that did not say."""
    x = variable("x", (1, 3, 4, 5), "float32")
    model = standalone(Graph((x,), (repeated(x, (1, 1, 2, 3), within=True),)), opset)
    check(model)
    kinds = [node.op_type for node in model.graph.node if node.op_type not in ("Cast", "Constant")]
    assert kinds == (["Upsample"] if opset < 10 else ["Resize"])
    image = np.random.default_rng(0).standard_normal((1, 3, 4, 5), np.float32)
    np.testing.assert_array_equal(run(model, {"x": image})[0], image.repeat(2, axis=2).repeat(3, axis=3))


@pytest.mark.parametrize("opset", [9, 10, 13])
def test_places_of_64_bits_are_repeated_by_other_nodes_since_there_is_no_such_resize(opset: int) -> None:
    x = variable("x", (1, 3, 4, 5), "float64")
    model = standalone(Graph((x,), (repeated(x, (1, 1, 2, 3), within=True),)), opset)
    image = np.random.default_rng(0).standard_normal((1, 3, 4, 5))
    np.testing.assert_array_equal(run(model, {"x": image})[0], image.repeat(2, axis=2).repeat(3, axis=3))


def with_a_weight(numbers: list[float]) -> Program:
    source = model("g (float[2, 4] x) => (float[2, 4] y) <float[4] a = {0, 0, 0, 0}> { y = Add(x, a) }")
    source.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array(numbers, np.float32), "a"))
    return understand(load(source))


def test_weights_that_do_not_fit_into_their_type_are_not_made_of_others() -> None:
    program = with_a_weight([1e30] * 4)
    a, x = (program.values[n] for n in "ax")
    with pytest.raises(NotUnderstood, match="do not fit into their type"):
        rewritten(program, {"y": Mul()(x, Expand((1,), (2, 4))(Mul()(a, a)))}, {})


def test_no_huge_identity_is_made_to_fold_it_into_others() -> None:
    n = LARGEST_SQUARE + 1
    with pytest.raises(NotUnderstood, match=f"more than {LARGEST_SQUARE} rows"):
        written(Add()(variable("x", (n,)), Sum((0,))(make(Band(n)))))


def test_weights_that_are_infinite_are_moved_as_they_are() -> None:
    program = with_a_weight([0.0, -np.inf, 1.0, -np.inf])
    a, x = (program.values[n] for n in "ax")
    turned = Expand((1,), (2, 4))(Concat(0)(Slice(0, 2, 4)(a), Slice(0, 0, 2)(a)))
    made = rewritten(program, {"y": Add()(x, turned)}, {}).graph.initializers["folded_1"].const_value
    assert made is not None
    np.testing.assert_array_equal(made.numpy(), [1.0, -np.inf, 0.0, -np.inf])
