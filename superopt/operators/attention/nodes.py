"""Nodes of ONNX's Attention, read as terms: of four axes or of rows, with masks, earlier keys and shared heads."""

from __future__ import annotations

import math

from superopt.dim import Dim, equal
from superopt.operators.activations import times
from superopt.operators.attention.dot_product import Attention, MaskedAttention, masked_softmax, scores
from superopt.operators.attention.grouped import GroupedAttention, MaskedGroupedAttention, for_each_head
from superopt.operators.attention.heads import AttentionOfRows, MaskedAttentionOfRows, apart, joined
from superopt.operators.casts import Cast
from superopt.operators.constant import Band
from superopt.operators.declare import reads
from superopt.operators.functions import Tanh
from superopt.operators.layout import Concat, Expand, spread
from superopt.operators.matmul import MatMul
from superopt.operators.nodes import NotUnderstood, Source, concrete, pass_over
from superopt.operators.normalize import Softmax
from superopt.operators.picks import Slice
from superopt.relations import are_equal
from superopt.term import TRUTH, Term, make


@reads("Attention")
def attention(node: Source) -> tuple[Term, ...]:
    """Heads on an axis of their own or side by side, fewer of them for keys; earlier keys and values; a mask.

    The further outputs are all keys and values. What it looks ahead at is masked by a constant.
    """
    inputs: list[Term | None] = [*node.inputs, *[None] * 6]
    (q, k, v, mask, past_k, past_v), rest, given = inputs[:6], inputs[6:], node.attributes
    if q is None or k is None or v is None or any(t is not None for t in rest):
        raise NotUnderstood("keys that are padded by counts, or other further inputs")
    pass_over(node, "qk_matmul_output_mode")  # of an output that is not declared
    if given.get("softmax_precision", 1) not in (0, 1, 11):
        raise NotUnderstood("a softmax of lower precision")
    flat, rows = q.type.rank == 3, (q, k, v)
    heads, shared = (int(given[n]) if flat else 0 for n in ("q_num_heads", "kv_num_heads"))
    if flat:
        q, k, v = apart(q, heads), apart(k, shared), apart(v, shared)
    past = 0 if past_k is None else past_k.shape[2]
    if past_k is not None and past_v is not None:
        k, v = Concat(2)(past_k, k), Concat(2)(past_v, v)
    scale, cap = given.get("scale"), float(given.get("softcap") or 0.0)
    scale = 1 / math.sqrt(concrete(q.shape[3:], "attention")[0]) if scale is None else float(scale)
    mask = _mask(node, q, k, mask, past)
    if flat and heads == shared and past_k is None and not cap and not _chooses(mask):
        return _of_rows(rows, heads, scale, mask), k, v
    if are_equal(q.shape[1], k.shape[1]):
        y = _attended((q, k, v), scale, mask, cap)
    elif cap or _chooses(mask):
        y = _attended((q, for_each_head(k, q), for_each_head(v, q)), scale, mask, cap)
    else:
        y = _grouped((q, k, v), scale, mask)
    return joined(y) if flat else y, k, v


def _chooses(mask: Term | None) -> bool:
    """Whether a mask is of truth values."""
    return mask is not None and mask.type.dtype == TRUTH


def _of_rows(rows: tuple[Term, Term, Term], heads: Dim, scale: float, mask: Term | None) -> Term:
    if mask is None:
        return make(AttentionOfRows(heads, scale), rows)
    return make(MaskedAttentionOfRows(heads, scale), (*rows, mask))


def _grouped(whole: tuple[Term, Term, Term], scale: float, mask: Term | None) -> Term:
    if mask is None:
        return make(GroupedAttention(scale), whole)
    return make(MaskedGroupedAttention(scale), (*whole, mask))


def _attended(whole: tuple[Term, Term, Term], scale: float, mask: Term | None, cap: float) -> Term:
    """Attention of queries, keys and values; a cap bounds the scores, for which there is no operator of ours."""
    (q, k, v), truth = whole, _chooses(mask)
    if cap:
        capped = times(Tanh()(times(scores(q, k, scale), 1 / cap)), cap)
        return MatMul()(Softmax(3)(capped) if mask is None else masked_softmax(capped, mask, truth), v)
    if mask is None:
        return make(Attention(scale), whole)
    return make(MaskedAttention(scale, int(truth)), (*whole, mask))


def _mask(node: Source, q: Term, k: Term, mask: Term | None, past: Dim) -> Term | None:
    to = (*q.shape[:3], k.shape[2])
    if mask is not None:
        if equal(mask.shape[-1], to[3]) is not True:
            raise NotUnderstood("a mask that is shorter than the keys")
        mask = spread(mask, to)
    if not node.attributes.get("is_causal", 0):
        return mask
    if mask is not None:
        raise NotUnderstood("a mask, and not to look ahead")
    rows, columns, before = concrete((to[2], to[3], past), "attention that does not look ahead")
    n = max(rows + before, columns)
    below = Cast(TRUTH)(Slice(1, 0, columns)(Slice(0, before, before + rows)(Band(n, n, 0)())))
    return Expand((2, 3), to)(below)
