"""What exporters write for an operator: read as it, never written for it: it holds where the spelling fails."""

from __future__ import annotations

from superopt.operators.attention.dot_product import MaskedAttention, scores
from superopt.operators.attention.grouped import MaskedGroupedAttention, for_each_head
from superopt.operators.comparisons import IsNan
from superopt.operators.constant import filled
from superopt.operators.differences import Sub
from superopt.operators.extrema import Max
from superopt.operators.functions import Exp, Log
from superopt.operators.layout import Expand
from superopt.operators.logic import Where
from superopt.operators.matmul import MatMul
from superopt.operators.meanings import spells
from superopt.operators.normalize import Softmax
from superopt.operators.norms import LayerNorm, LogSoftmax, centred, over_root
from superopt.operators.pointwise import Add, Div, Mul
from superopt.operators.reductions import Largest, Mean, Sum
from superopt.term import Term


@spells("softmax", "in steps")
def softmax_in_steps(op: Softmax, x: Term) -> Term:
    """Shifted by the maximum, as the operator is computed itself."""
    top = Largest((op.axis,))(x)
    return softmax_unshifted(op, Sub()(x, _along(op.axis, top, x)))


@spells("softmax", "unshifted")
def softmax_unshifted(op: Softmax, x: Term) -> Term:
    """Exponentials over their sum, which overflow."""
    each = Exp()(x)
    return Div()(each, _along(op.axis, Sum((op.axis,))(each), x))


@spells("log_softmax", "of softmax")
def log_of_softmax(op: LogSoftmax, x: Term) -> Term:
    """The logarithm of shares, of which small ones become 0."""
    return Log()(Softmax(op.axis)(x))


@spells("log_softmax", "unshifted")
def log_softmax_unshifted(op: LogSoftmax, x: Term) -> Term:
    """Less the logarithm of a sum of exponentials, which overflow."""
    return Sub()(x, _along(op.axis, Log()(Sum((op.axis,))(Exp()(x))), x))


@spells("layernorm", "by moments")
def layernorm_by_moments(op: LayerNorm, *inputs: Term) -> Term:
    """The variance as the mean of squares less the square of the mean, which cancels where the mean is large."""
    return _layernorm(op, _variance(op, inputs[0]), *inputs)


@spells("layernorm", "by moments, cut off")
def layernorm_by_moments_cut_off(op: LayerNorm, *inputs: Term) -> Term:
    """Likewise, as Flax computes it: what cancelled below 0 is 0."""
    variance = _variance(op, inputs[0])
    return _layernorm(op, Max()(variance, filled(0.0, variance.shape)), *inputs)


@spells("masked_attention", "of a sum")
def attention_of_a_sum(op: MaskedAttention, *inputs: Term) -> Term | None:
    """With the mask as a summand: no number in a row that attends to nothing, where the operator gives 0."""
    q, k, v, mask = inputs
    return None if op.truth else MatMul()(_shares(op, q, k, mask), v)


@spells("masked_attention", "of a sum, cleared")
def attention_cleared(op: MaskedAttention, *inputs: Term) -> Term | None:
    """As torch exports it: what is no number becomes 0, and that is a row that attends to nothing."""
    q, k, v, mask = inputs
    shares = _shares(op, q, k, mask)
    return None if op.truth else MatMul()(Where()(IsNan()(shares), filled(0.0, shares.shape), shares), v)


@spells("masked_grouped_attention", "of a sum")
def grouped_attention_of_a_sum(op: MaskedGroupedAttention, *inputs: Term) -> Term | None:
    """Likewise, with keys and values repeated."""
    return attention_of_a_sum(MaskedAttention(op.scale), *_for_each_head(*inputs))


@spells("masked_grouped_attention", "of a sum, cleared")
def grouped_attention_cleared(op: MaskedGroupedAttention, *inputs: Term) -> Term | None:
    """Likewise."""
    return attention_cleared(MaskedAttention(op.scale), *_for_each_head(*inputs))


def _variance(op: LayerNorm, x: Term) -> Term:
    """By moments, without the axes that are normalized."""
    axes = tuple(range(op.axis, x.type.rank))
    mean = Mean(axes)(x)
    return Sub()(Mean(axes)(Mul()(x, x)), Mul()(mean, mean))


def _layernorm(op: LayerNorm, variance: Term, x: Term, scale: Term, bias: Term) -> Term:
    axes = tuple(range(op.axis, x.type.rank))
    normal = over_root(centred(x, axes), variance, axes, op.epsilon)
    return Add()(Mul()(normal, Expand(axes, x.shape)(scale)), Expand(axes, x.shape)(bias))


def _shares(op: MaskedAttention, q: Term, k: Term, mask: Term) -> Term:
    """The shares of scores with the mask added."""
    return Softmax(3)(Add()(scores(q, k, op.scale), mask))


def _for_each_head(q: Term, k: Term, v: Term, mask: Term) -> tuple[Term, ...]:
    return q, for_each_head(k, q), for_each_head(v, q), mask


def _along(axis: int, y: Term, x: Term) -> Term:
    """What an axis of `x` was reduced to, for each element along it."""
    return Expand(tuple(a for a in range(x.type.rank) if a != axis), x.shape)(y)
