"""Norms of rows that stand below each other, whatever batches and sequences they are of."""

from __future__ import annotations

from superopt.dim import product
from superopt.operators.layout import reshaped
from superopt.operators.meanings import defines
from superopt.operators.norms import LayerNorm
from superopt.term import Term


@defines("layernorm", "of rows")
def of_rows(op: LayerNorm, *inputs: Term) -> Term | None:
    """All rows below each other, and back: onnxruntime fuses a sum of three axes with the norm after it, into a kernel
    that is slower than both where one thread runs it.
    """
    x, *scale_and_bias = inputs
    if op.axis < 2:
        return None
    rows = reshaped(x, (product(x.shape[: op.axis]), *x.shape[op.axis :]))
    return reshaped(LayerNorm(1, op.epsilon)(rows, *scale_and_bias), x.shape)
