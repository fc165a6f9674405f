"""What is one kernel, and which kernels are equal."""

from collections.abc import Callable
from pathlib import Path

import onnxruntime
import pytest

from superopt.cost.kernels import cut
from superopt.operators.activations import Gelu, HardSigmoid, HardSwish
from superopt.operators.attention.dot_product import MaskedAttention
from superopt.operators.constant import filled
from superopt.operators.conv import Conv
from superopt.operators.functions import Sigmoid
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.meanings import FURTHER_DEFINITIONS
from superopt.operators.normalize import BatchNorm, Gemm
from superopt.operators.norms import LayerNorm
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.operators.reader import read_term, term_text
from superopt.term import Graph, Term, make, variable, variables
from superopt.text import read
from tests.cost.graphs import conv_block, graph, left_by_onnxruntime, per_channel, tensor, weight
from tests.versions import since


def texts(*outputs: Term) -> list[str]:
    return [term_text(k.graph.outputs[0]) for k in cut(graph(*outputs))]


def test_convolution_with_bias_and_relu_is_one_kernel() -> None:
    assert texts(conv_block(tensor("x", 1, 4, 8, 8), "a", 6)) == [
        "(relu (add (conv :pads (1 1 1 1) ?v0 ?v1) (expand (1) ?v2)))"
    ]


def swished(alpha: float = 1 / 6, beta: float = 0.5) -> Term:
    """A convolution times its own hard sigmoid."""
    x = tensor("x", 1, 16, 8, 8)
    y = conv_block(x, "a", 32).inputs[0]
    return Mul()(y, HardSigmoid(alpha, beta)(y))


def test_a_convolution_times_its_own_hard_sigmoid_is_one_kernel() -> None:
    conv = "(add (conv :pads (1 1 1 1) ?v0 ?v1) (expand (1) ?v2))"
    assert texts(swished()) == [f"(mul {conv} (hard_sigmoid :alpha 0.16666666666666666 {conv}))"]
    y = swished().inputs[0]
    (other_order,) = cut(graph(Mul()(*swished().inputs[::-1])))
    assert other_order.signature == cut(graph(swished()))[0].signature
    assert len(texts(HardSwish()(y))) == 1
    assert len(texts(swished(alpha=0.2))) == len(texts(swished(beta=0.6))) == 3
    assert len(texts(swished(), Relu()(y))) == 4, "what something else reads is not fused"
    assert len(texts(HardSwish()(Relu()(y)))) == 2
    x = tensor("x", 1, 16, 8, 8)
    assert texts(Mul()(x, HardSigmoid(1 / 6, 0.5)(x))) == [
        "(hard_sigmoid :alpha 0.16666666666666666 ?v0)",
        "(mul ?v0 ?v1)",
    ]


@pytest.mark.parametrize("form", ["two operators", "one operator"])
def test_a_hard_swish_is_timed_as_it_is_fused(form: str, tmp_path: Path) -> None:
    """onnxruntime leaves it in steps where it is the model's output."""
    term = swished() if form == "two operators" else HardSwish()(swished().inputs[0])
    (kernel,) = cut(graph(term))
    ran = [{n.op_type for n in left_by_onnxruntime(made, tmp_path)} for made in (kernel.timed, kernel.graph)]
    if "ReorderOutput" not in ran[0]:
        pytest.skip("this processor has no layout in blocks")
    if since(onnxruntime, 1, 30):
        assert "HardSigmoid" not in ran[0]
    assert "HardSigmoid" in ran[1], "it need not be read by anything any more"


def linear(x: Term, name: str, channels: int) -> Term:
    """A linear layer of rows that is computed as a convolution."""
    row = Expand((1,), (x.shape[0], channels))(weight(f"{name}_b", channels))
    layer = Gemm()(x, weight(name, x.shape[1], channels), row)
    made = FURTHER_DEFINITIONS["gemm as a convolution"].term_of(layer.operator, *layer.inputs)
    assert made is not None
    return made


def test_a_layer_as_a_convolution_is_one_kernel_between_two_views() -> None:
    kernels = cut(graph(linear(tensor("x", 6, 32), "w", 48)))
    assert [k.is_view for k in kernels] == [True, False, True]
    assert term_text(kernels[1].graph.outputs[0]) == (
        "(transpose (0 2 3 1) (add (conv (transpose (0 3 1 2) ?v0) ?v1) (expand (1) ?v2)))"
    )


def test_an_activation_between_two_transposes_joins_a_convolution() -> None:
    (picture,) = linear(tensor("x", 6, 32), "w", 48).inputs[0].inputs
    assert len(texts(Transpose((0, 2, 3, 1))(Relu()(picture)))) == 2  # a view and a kernel
    assert len(texts(Transpose((0, 3, 2, 1))(Relu()(picture)))) == 3, "that is another transpose"
    assert len(texts(Transpose((0, 2, 3, 1))(picture), picture)) == 3, "what something else reads is not fused"


def test_a_kernel_tells_how_it_takes_what_it_reads() -> None:
    rows, image = tensor("r", 1, 6, 6, 32), tensor("i", 1, 32, 6, 6)
    first, k = Transpose((0, 3, 1, 2)), weight("k", 32, 32, 1, 1)
    for term, expected in (
        (Conv()(first(rows), k), {rows: "as it is"}),
        (Add()(Conv()(first(rows), k), image), {rows: "as it is", image: "as the result"}),
        (Add()(image, Conv()(first(rows), k)), {rows: "as it is", image: "as the result"}),
        (Conv()(image, k), {image: "in blocks"}),
    ):
        for again in (term, Relu()(term)):
            (kernel,) = cut(graph(again))
            assert dict(zip(kernel.reads, kernel.taken, strict=True)) == expected


def test_onnxruntime_transposes_pictures_as_it_lays_them_out(tmp_path: Path) -> None:
    """So they are one kernel: what takes channels from the end, or brings them there, costs no transpose."""
    term = linear(tensor("x", 6, 32), "w", 48)
    assert [t.operator.name for t in graph(term).runs].count("transpose") == 2
    ran = [n.op_type for n in left_by_onnxruntime(graph(term), tmp_path)]
    if "ReorderOutput" not in ran:
        pytest.skip("this processor has no layout in blocks")
    assert "Transpose" not in ran
    assert ran.count("ReorderInput") == ran.count("ReorderOutput") == 1


def test_residual_addition_joins_the_convolution_before_it() -> None:
    x = tensor("x", 1, 4, 8, 8)
    y = conv_block(x, "a", 4)
    z = make(Conv((1, 1), (1, 1, 1, 1)), (y, weight("k", 4, 4, 3, 3)))
    kernels = texts(make(Relu(), (make(Add(), (x, z)),)))
    assert len(kernels) == 2
    assert kernels[1] == "(relu (add (conv :pads (1 1 1 1) ?v0 ?v1) ?v2))"


def test_normalization_of_a_convolutions_channels_joins_it() -> None:
    x, k = tensor("x", 1, 4, 8, 8), weight("k", 6, 4, 3, 3)
    y = make(BatchNorm(), (make(Conv(), (x, k)), *(weight(n, 6) for n in "sbmv")))
    scaled = make(Mul(), (y, per_channel(weight("w", 6), y)))
    assert len(texts(make(Relu(), (scaled,)))) == 1


def test_what_another_operator_uses_too_is_not_fused() -> None:
    y = make(Conv(), (tensor("x", 1, 4, 8, 8), weight("k", 6, 4, 3, 3)))
    assert texts(make(Relu(), (y,)), make(Mul(), (y, y))) == ["(conv ?v0 ?v1)", "(relu ?v0)", "(mul ?v0 ?v0)"]


def test_an_output_of_the_graph_is_not_fused() -> None:
    y = make(Conv(), (tensor("x", 1, 4, 8, 8), weight("k", 6, 4, 3, 3)))
    assert len(texts(y, make(Relu(), (y,)))) == 2


def test_matrix_product_takes_in_transpose_bias_and_relu() -> None:
    x, w, b = tensor("x", 3, 4), weight("w", 4, 5), weight("b", 5)
    product = make(MatMul(), (make(Transpose((1, 0)), (tensor("y", 4, 3),)), w))
    biased = make(Add(), (product, make(Expand((1,), (3, 5)), (b,))))
    assert len(texts(make(Relu(), (biased,)))) == 1
    assert len(texts(make(Add(), (make(MatMul(), (x, w)), tensor("z", 3, 5))))) == 2


SUMS: dict[str, tuple[Term, bool]] = {
    "of two images of rows": (Add()(tensor("x", 1, 8, 16), tensor("y", 1, 8, 16)), True),
    "with a constant as large": (Add()(tensor("x", 1, 8, 16), weight("w", 1, 8, 16)), True),
    "of a sum": (Add()(tensor("x", 2, 8, 16), Add()(tensor("y", 2, 8, 16), tensor("z", 2, 8, 16))), True),
    "of two matrices": (Add()(tensor("x", 8, 16), tensor("y", 8, 16)), False),
    "of four axes": (Add()(tensor("x", 1, 2, 8, 16), tensor("y", 1, 2, 8, 16)), False),
    "with a bias": (Add()(tensor("x", 1, 8, 16), Expand((2,), (1, 8, 16))(weight("b", 16))), False),
    "that is one for all images": (Add()(tensor("x", 2, 8, 16), Expand((1, 2), (2, 8, 16))(tensor("y", 8, 16))), False),
}


@pytest.mark.parametrize("of", SUMS)
def test_a_layer_norm_takes_in_the_sums_that_onnxruntime_does(of: str, tmp_path: Path) -> None:
    x, is_one = SUMS[of]
    normal = LayerNorm(x.type.rank - 1)(x, weight("scale", 16), weight("shift", 16))
    kernels, left = texts(normal), left_by_onnxruntime(graph(normal), tmp_path, 17)
    assert len(kernels) == len(left)
    assert [len(left_by_onnxruntime(k.timed, tmp_path, 17)) for k in cut(graph(normal))] == [1] * len(kernels)
    assert (left[-1].op_type == "SkipLayerNormalization") == is_one == kernels[-1].startswith("(layernorm 2 (add")
    assert len(texts(normal, x)) == len(left_by_onnxruntime(graph(normal, x), tmp_path, 17)), "it is an output itself"


@pytest.mark.parametrize("by_tanh", [0, 1])
def test_a_gelu_takes_in_a_bias_that_no_product_does(by_tanh: int, tmp_path: Path) -> None:
    x, b = tensor("x", 4, 8, 16), Expand((2,), (4, 8, 16))(weight("b", 16))
    for below, count in ((x, 1), (MatMul()(x, weight("w", 4, 16, 16)), 2)):
        gelu = Gelu(by_tanh)(Add()(below, b))
        assert len(texts(gelu)) == count
        assert len(left_by_onnxruntime(graph(gelu), tmp_path, 20)) == count


GATES: dict[str, tuple[Callable[[Term], tuple[Term, ...]], int]] = {
    "of itself": (lambda x: (Mul()(x, Sigmoid()(x)),), 1),
    "of itself, first": (lambda x: (Mul()(Sigmoid()(x), x),), 1),
    "of a multiple": (lambda x: (Mul()(x, Sigmoid()(Mul()(x, filled(1.702, x.shape)))),), 1),
    "of another": (lambda x: (Mul()(x, Sigmoid()(tensor("y", *x.shape))),), 2),
    "that something reads": (lambda x: (Mul()(x, Sigmoid()(x)), Relu()(Sigmoid()(x))), 3),
    "of a convolution": (lambda x: (lambda y: (Mul()(y, Sigmoid()(y)),))(conv_block(x, "a", 8).inputs[0]), 2),
}


@pytest.mark.parametrize("gate", GATES)
def test_what_is_gated_by_its_own_sigmoid_is_one_kernel(gate: str, tmp_path: Path) -> None:
    made, count = GATES[gate]
    outputs = made(tensor("x", 1, 8, 6, 6))
    kernels = cut(graph(*outputs))
    assert len(kernels) == len(left_in(graph(*outputs), tmp_path)) == count
    assert [len(left_in(kernel.timed, tmp_path)) for kernel in kernels] == [1] * count, "so is each of them timed"


def left_in(made: Graph, folder: Path) -> list[str]:
    """What onnxruntime computes; how that is laid out is no part of it."""
    left = [node.op_type for node in left_by_onnxruntime(made, folder, 17)]
    return [op for op in left if not op.startswith("Reorder")]


def test_chain_of_concats_is_one_kernel() -> None:
    a, b, c = (tensor(n, 2, 3) for n in "abc")
    assert len(texts(make(Concat(1), (make(Concat(1), (a, b)), c)))) == 1
    assert len(texts(make(Concat(1), (make(Concat(0), (a, b)), tensor("d", 4, 3))))) == 2


def test_slices_along_different_axes_are_one_kernel() -> None:
    x = tensor("x", 4, 6, 8)
    cut_twice = Slice(2, 1, 7)(Slice(1, 0, 5)(x))
    assert texts(cut_twice) == ["(slice 2 1 7 (slice 1 0 5 ?v0))"]
    assert len(texts(Slice(1, 2, 3)(cut_twice))) == 2


def test_only_a_reshape_alone_moves_nothing() -> None:
    x, b = tensor("x", 4, 6), weight("b", 6)
    kernels = cut(graph(Reshape((24,))(Relu()(x)), Reshape((2, 12))(Expand((1,), (4, 6))(b)), Transpose((1, 0))(x)))
    assert [k.is_view for k in kernels] == [False, True, False]


def test_expand_costs_nothing_where_its_consumer_broadcasts() -> None:
    x, b = tensor("x", 1, 4, 8, 8), tensor("b", 4)
    assert texts(make(Mul(), (x, per_channel(b, x)))) == ["(mul ?v0 (expand (1) ?v1))"]


def test_a_mask_that_attention_repeats_costs_nothing() -> None:
    x, mask = tensor("x", 2, 4, 7, 6), make(Expand((2, 3), (2, 4, 7, 7)), (tensor("m", 7, 7),))
    assert len(texts(make(MaskedAttention(0.5), (x, x, x, mask)))) == 1
    keys = make(Expand((3,), (2, 4, 7, 7)), (tensor("m", 7),))
    assert len(texts(make(MaskedAttention(0.5), (x, x, x, keys)))) == 2


def test_expand_is_a_kernel_where_it_must_be_written_out() -> None:
    b = make(Expand((1,), (1, 4, 8, 8)), (tensor("b", 4),))
    assert texts(make(Slice(2, 0, 4), (b,))) == ["(expand (1) (1 4 8 8) ?v0)", "(slice 2 0 4 ?v0)"]


def test_what_is_made_of_constants_is_a_constant() -> None:
    kernel = make(Add(), (weight("k", 6, 4, 3, 3), weight("l", 6, 4, 3, 3)))
    (found,) = cut(graph(make(Conv(), (tensor("x", 1, 4, 8, 8), kernel))))
    assert [(v.label, v.constant) for v in variables(*found.graph.outputs)] == [("v0", False), ("v1", True)]
    assert cut(graph(kernel)) == []


def test_equal_kernels_anywhere_have_one_signature() -> None:
    x = tensor("x", 1, 4, 8, 8)
    y = conv_block(conv_block(x, "first", 4), "second", 4)
    first, second = cut(graph(y))
    assert first.signature == second.signature
    assert first.root is not second.root


def test_order_of_a_sum_does_not_change_the_signature() -> None:
    x = tensor("x", 1, 4, 8, 8)
    y = make(Conv(), (x, weight("k", 6, 4, 1, 1)))
    b = per_channel(weight("b", 6), y)
    assert [k.signature for k in cut(graph(make(Add(), (y, b))))] == [
        k.signature for k in cut(graph(make(Add(), (b, y))))
    ]


def test_signature_tells_constants_shapes_and_types_apart() -> None:
    kernels = [weight("k", 6, 4, 3, 3), tensor("k", 6, 4, 3, 3), weight("k", 8, 4, 3, 3)]
    signatures = {cut(graph(make(Conv(), (tensor("x", 1, 4, 8, 8), k))))[0].signature for k in kernels}
    signatures.add(cut(graph(make(Relu(), (tensor("x", 2, 3),))))[0].signature)
    signatures.add(cut(graph(make(Relu(), (variable("x", (2, 3), "float16"),))))[0].signature)
    assert len(signatures) == 5


def test_signature_is_text_that_reads_back_as_the_kernel() -> None:
    (kernel,) = cut(graph(conv_block(tensor("x", 1, 4, 8, 8), "a", 6)))
    (form,) = read(kernel.signature)
    names = {v.label: v for v in kernel.graph.inputs}
    assert read_term(form.items[1], names) is kernel.graph.outputs[0]  # type: ignore[union-attr]


def test_every_running_operator_is_in_exactly_one_kernel() -> None:
    x = tensor("x", 1, 4, 8, 8)
    y = conv_block(x, "a", 4)
    out = make(Reshape((1, 512)), (make(Concat(1), (y, conv_block(y, "b", 4))),))
    kernels = cut(graph(out))
    operators = [term_text(k.graph.outputs[0]).count(" (") for k in kernels]
    assert len(kernels) == 4, operators
    assert sum(term_text(k.graph.outputs[0]).count("conv") for k in kernels) == 2


def test_however_channels_are_scaled_and_shifted_it_is_one_bias() -> None:
    x = tensor("x", 1, 4, 8, 8)
    y = make(Conv(), (x, weight("k", 6, 4, 1, 1)))
    a, b, *rest = (weight(name, 6) for name in "abcd")
    scaled = make(Mul(), (y, per_channel(a, y)))
    ways = [
        make(Add(), (y, per_channel(b, y))),
        make(Add(), (scaled, per_channel(b, y))),
        make(BatchNorm(), (y, a, b, *rest)),
        make(Mul(), (make(BatchNorm(), (y, a, b, *rest)), per_channel(a, y))),
    ]
    assert {tuple(texts(make(Relu(), (way,)))) for way in ways} == {("(relu (add (conv ?v0 ?v1) (expand (1) ?v2)))",)}
    computed = make(Conv(), (x, tensor("k", 6, 4, 1, 1)))
    assert texts(make(Mul(), (computed, per_channel(a, y)))) == ["(mul (conv ?v0 ?v1) (expand (1) ?v2))"]


def test_equal_kernels_of_a_graph_are_one_graph_of_their_own() -> None:
    """Whatever they read: here the third reads one value twice."""
    x, y = tensor("x", 2, 3), tensor("y", 2, 3)
    kernels = cut(graph(Add()(x, y), Add()(Relu()(x), y), Add()(y, y)))
    adds = [k for k in kernels if k.root.operator == Add()]
    assert adds[0].graph is adds[1].graph
    assert adds[0].reads == (x, y)
    assert adds[1].reads == (Relu()(x), y)
    assert adds[2].graph is not adds[0].graph
    assert adds[2].reads == (y,)
