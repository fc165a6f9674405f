"""Operators of onnxruntime's own that its tools fuse others into, read as what they mean. It declares no operator.

Where nothing of such a node is rewritten it stays as it is; where something is, what is written are ONNX's operators.
"""

from __future__ import annotations

import math
from copy import copy

from superopt.operators.activations import Gelu, HardSigmoid, LeakyRelu, times
from superopt.operators.attention.heads import AttentionOfRows, MaskedAttentionOfRows
from superopt.operators.constant import filled
from superopt.operators.conv import Conv
from superopt.operators.declare import reads
from superopt.operators.extrema import Max, Min
from superopt.operators.functions import Sigmoid, Tanh
from superopt.operators.layout import Transpose, broadcast, spread
from superopt.operators.matmul import MatMul
from superopt.operators.nodes import NotUnderstood, Source, concrete, pass_over, present
from superopt.operators.normalize import Gemm
from superopt.operators.norms import LayerNorm, RmsNorm
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.relations import equal_shapes
from superopt.term import TRUTH, Term, make

DOMAIN = "com.microsoft"


@reads("SkipLayerNormalization", domain=DOMAIN)
def sum_and_norm(node: Source) -> tuple[Term | None, ...]:
    """The layer norm of a sum along the last axis; the last output is the sum."""
    x, skip, scale, shift, bias = _given(node, 5)
    if x is None or skip is None or scale is None:
        raise NotUnderstood("an input is missing")
    total = _total(x, skip, bias)
    to = total.shape[-1:]
    op = LayerNorm(total.type.rank - 1, float(node.attributes.get("epsilon", 1e-12)))
    y = make(op, (total, spread(scale, to), filled(0.0, to) if shift is None else spread(shift, to)))
    return y, None, None, total


@reads("SkipSimplifiedLayerNormalization", domain=DOMAIN)
def sum_and_norm_by_squares(node: Source) -> tuple[Term | None, ...]:
    """The same without a mean."""
    x, skip, scale, bias = _given(node, 4)
    if x is None or skip is None or scale is None:
        raise NotUnderstood("an input is missing")
    total = _total(x, skip, bias)
    op = RmsNorm(total.type.rank - 1, float(node.attributes.get("epsilon", 1e-12)))
    return make(op, (total, spread(scale, total.shape[-1:]))), None, None, total


@reads("SimplifiedLayerNormalization")
def norm_by_squares(node: Source) -> tuple[Term | None, ...]:
    """What ONNX has as RMSNormalization since opset 23; onnxruntime had it among ONNX's operators before."""
    if node.attributes.get("stash_type", 1) != 1:
        raise NotUnderstood("roots of other precision")
    return RmsNorm.from_onnx(node), None


@reads("BiasGelu", domain=DOMAIN)
def biased_gelu(node: Source) -> Term:
    """By the error function, of a sum."""
    return make(Gelu(), (_sum(*present(node.inputs, 2)),))


@reads("Gelu", domain=DOMAIN)
def gelu(node: Source) -> Term:
    """By the error function."""
    return make(Gelu(), present(node.inputs, 1))


@reads("FastGelu", domain=DOMAIN)
def gelu_by_tanh(node: Source) -> Term:
    """By tanh, of a sum where a bias is given."""
    x, bias = _given(node, 2)
    if x is None:
        raise NotUnderstood("an input is missing")
    return make(Gelu(1), (_sum(x, bias),))


@reads("QuickGelu", domain=DOMAIN)
def gelu_by_sigmoid(node: Source) -> Term:
    """`x · sigmoid(alpha · x)`."""
    (x,) = present(node.inputs, 1)
    return Mul()(x, Sigmoid()(times(x, float(node.attributes.get("alpha", 1.702)))))


@reads("FusedMatMul", domain=DOMAIN)
def product(node: Source) -> Term:
    """A number times a product, of which either side may be transposed."""
    x, y = present(node.inputs, 2)
    if any(node.attributes.get(name, 0) for name in ("transBatchA", "transBatchB")):
        raise NotUnderstood("batches that are transposed")
    if node.attributes.get("transA", 0) and x.type.rank > y.type.rank == 1:
        raise NotUnderstood("a transposed matrix and a vector, of which onnxruntime takes the matrix as it is")
    given = copy(node)
    given.inputs = _turned(x, node.attributes.get("transA", 0)), _turned(y, node.attributes.get("transB", 0))
    return times(MatMul.from_onnx(given), float(node.attributes.get("alpha", 1.0)))


@reads("FusedConv", domain=DOMAIN)
def convolution(node: Source) -> Term:
    """A convolution, to which a map may be added, and an activation."""
    given, summand = copy(node), (*node.inputs, None, None, None)[3]
    given.inputs = node.inputs[:3]
    y = Conv.from_onnx(given)
    y = y if summand is None else Add()(*broadcast(y, summand))
    return _activated(node, y, tuple(map(float, node.attributes.get("activation_params", ()))))


@reads("FusedGemm", domain=DOMAIN)
def affine(node: Source) -> Term:
    """A linear layer and an activation."""
    names = [f"activation_{n}" for n in ("alpha", "beta", "gamma")]
    values = [node.attributes.get(name) for name in names]
    return _activated(node, Gemm.from_onnx(node), tuple(float(v) for v in values if v is not None))


@reads("Attention", domain=DOMAIN)
def attention(node: Source) -> tuple[Term | None, ...]:
    """Queries, keys and values are products of one input; no masks of lengths, and nothing earlier."""
    x, weights, bias, mask, past, added = _given(node, 6)
    if x is None or weights is None:
        raise NotUnderstood("an input is missing")
    if mask is not None or past is not None or node.attributes.get("do_rotary", 0):
        raise NotUnderstood("a mask of lengths, earlier keys, or positions")
    given = copy(node)
    given.inputs = x, weights
    rows = _sum(MatMul.from_onnx(given), bias)
    (whole,) = concrete(rows.shape[-1:], "attention")
    sizes = tuple(node.attributes.get("qkv_hidden_sizes", ())) or (whole // 3,) * 3
    if len(sizes) != 3 or sum(sizes) != whole:
        raise NotUnderstood(f"{whole} columns are not those of queries, keys and values")
    a, b = sizes[0], sizes[0] + sizes[1]
    parts = [Slice(rows.type.rank - 1, *ends)(rows) for ends in ((0, a), (a, b), (b, whole))]
    return _attended(node, parts, added), None


@reads("MultiHeadAttention", domain=DOMAIN)
def attention_of_rows(node: Source) -> tuple[Term | None, ...]:
    """Of rows in which heads stand side by side, without masks of lengths or earlier keys."""
    q, k, v, bias, mask, added, *rest = _given(node, 10)
    if q is None or k is None or v is None or any(t.type.rank != 3 for t in (q, k, v)):
        raise NotUnderstood("queries, keys and values that are packed, or have an axis for heads")
    if mask is not None or any(t is not None for t in rest):
        raise NotUnderstood("a mask of lengths, or earlier keys")
    parts = [q, k, v]
    if bias is not None:
        ends = [0]
        for part in parts:
            ends.append(ends[-1] + concrete(part.shape[-1:], "attention")[0])
        if concrete(bias.shape, "a bias") != (ends[-1],):
            raise NotUnderstood("a bias that is not for queries, keys and values")
        parts = [_sum(p, Slice(0, a, b)(bias)) for p, a, b in zip(parts, ends[:-1], ends[1:], strict=True)]
    return (_attended(node, parts, added), *[None] * 3)


def _attended(node: Source, parts: list[Term], added: Term | None) -> Term:
    """Attention of queries, keys and values; what is `added` to the scores is a mask."""
    q, k, _ = parts
    pass_over(node, "mask_filter_value")
    if node.attributes.get("unidirectional", 0):
        raise NotUnderstood("it does not look ahead")
    heads, scale = int(node.attributes["num_heads"]), float(node.attributes.get("scale", 0.0) or 0.0)
    scale = scale or 1 / math.sqrt(concrete(q.shape[-1:], "attention")[0] // heads)
    if added is None:
        return make(AttentionOfRows(heads, scale), tuple(parts))
    if added.type.dtype == TRUTH:
        raise NotUnderstood("a mask of truth values")
    to = (q.shape[0], heads, q.shape[1], k.shape[1])
    return make(MaskedAttentionOfRows(heads, scale), (*parts, spread(added, to)))


def _given(node: Source, count: int) -> list[Term | None]:
    """So many inputs; those that are not given are None. Raises `NotUnderstood` where there are more."""
    if any(i is not None for i in node.inputs[count:]):
        raise NotUnderstood("an input too many")
    return [*node.inputs, *[None] * count][:count]


def _sum(first: Term, *others: Term | None) -> Term:
    for other in others:
        first = first if other is None else Add()(*broadcast(first, other))
    return first


def _total(x: Term, skip: Term, bias: Term | None) -> Term:
    """What is normalized: it has the shape of the first input, to which the others are broadcast."""
    total = _sum(x, skip, bias)
    if not equal_shapes(total.shape, x.shape):
        raise NotUnderstood(f"a sum of shape {total.shape}, of which onnxruntime gives {x.shape}")
    return total


def _turned(x: Term, is_turned: int) -> Term:
    rank = x.type.rank
    return Transpose((*range(rank - 2), rank - 1, rank - 2))(x) if is_turned and rank > 1 else x


def _activated(node: Source, y: Term, numbers: tuple[float, ...]) -> Term:
    """What an activation makes of a term, by its name and its numbers."""
    match node.attributes.get("activation", ""), numbers:
        case "", ():
            return y
        case "Relu", ():
            return Relu()(y)
        case "Tanh", ():
            return Tanh()(y)
        case "Sigmoid", ():
            return Sigmoid()(y)
        case "LeakyRelu", (alpha,):
            return make(LeakyRelu(alpha), (y,))
        case "HardSigmoid", (alpha, beta):
            return make(HardSigmoid(alpha, beta), (y,))
        case "Clip", (low, high):
            return Min()(Max()(y, filled(low, y.shape)), filled(high, y.shape))
    raise NotUnderstood("an activation of another kind")
