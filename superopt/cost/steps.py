"""What terms are to what they read, as far as runtimes fuse them with it."""

from __future__ import annotations

import math

from superopt.operators.activations import HardSigmoid, HardSwish, LeakyRelu
from superopt.operators.definitions.pictures import brings_channels_last
from superopt.operators.layout import Expand, Transpose
from superopt.operators.normalize import BatchNorm
from superopt.operators.norms import LayerNorm
from superopt.operators.pointwise import Add, Mul
from superopt.term import Term

_ACTIVATIONS = frozenset({"relu", "sigmoid", "tanh", "clip", "hard_sigmoid"})


def step(term: Term, producer: Term) -> str:
    """What a term does to one of its inputs, in the words of the table."""
    op = term.operator
    if op.name in _ACTIVATIONS:
        return "activation"
    if isinstance(op, LeakyRelu):
        return "leaky relu"
    if brings_channels_last(term):
        return "channels last"
    if isinstance(op, HardSwish):
        return "hard swish"
    if isinstance(op, BatchNorm):
        return "channels" if term.inputs[0] is producer and all(i.constant for i in term.inputs[1:]) else ""
    if not isinstance(op, Add | Mul):
        return ""
    other = next((i for i in term.inputs if i is not producer), producer)
    if other is producer:
        return ""
    if isinstance(other.operator, Expand) and other.constant:
        axes = other.operator.axes
        if axes == ():
            return "scalar" if isinstance(op, Mul) else ""
        if producer.type.rank > 2 and axes == (1,):
            return "channels"
        return "bias" if isinstance(op, Add) and axes == (term.type.rank - 1,) else ""
    return "residual" if isinstance(op, Add) and not isinstance(other.operator, Expand) else ""


def gates(gate: Term, image: Term) -> bool:
    """Whether a term is the hard sigmoid of another of which hard swish is made."""
    op = gate.operator
    if not isinstance(op, HardSigmoid) or gate.inputs[0] is not image:
        return False
    return math.isclose(op.alpha, 1 / 6, rel_tol=1e-6) and op.beta == 0.5


def swaps_last_two(term: Term) -> bool:
    """Whether a term transposes matrices, which a product of them takes in."""
    rank = term.type.rank
    return isinstance(term.operator, Transpose) and term.operator.perm == (*range(rank - 2), rank - 1, rank - 2)


def is_normal_of_sum(term: Term) -> bool:
    """Whether a term is a layer norm that is fused with the sum that it normalizes, where nothing else reads that and
    sizes are known, which takes onnxruntime 1.32 six times as long as the two take: of rows, beside other axes, of
    images.
    """
    x, norm = term.inputs[0] if term.inputs else term, term.operator
    if not isinstance(norm, LayerNorm) or not isinstance(x.operator, Add) or (x.type.rank, norm.axis) != (3, 2):
        return False
    return all(i.shape == x.shape and not isinstance(i.operator, Expand) for i in x.inputs)


def is_biased(x: Term) -> bool:
    """Whether a term is a sum with one number for each place along the last axis."""
    return isinstance(x.operator, Add) and any(step(x, i) == "bias" for i in x.inputs)


def is_multiple(term: Term, x: Term) -> bool:
    """Whether a term is another times a number."""
    return isinstance(term.operator, Mul) and x in term.inputs and step(term, x) == "scalar"
