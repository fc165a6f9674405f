"""Which scores of attention count for nothing, whatever they are: where their shares are 0, and stay so."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.otherwise.attention.scores import Scores
from superopt.onnx_io.reading import data_of
from superopt.onnx_io.said import is_a

HIDDEN = np.float32(-1e8)
"""Scores are hidden by what is as low: beside one that is not, a share of it is 0 in floating-point numbers.
What has 16 bits is compared with it in 32.
"""

_LOWERING = ("Identity", "Cast", "Reshape", "Add", "Min", "Max")
"""What may be followed to what hides scores, beside what chooses these."""


def hidden(scores: Scores) -> Array | None:
    """Which scores count for nothing, of each query and key; None where that is not known."""
    if not scores.is_read or scores.size is None or not _leaves_nothing(scores, scores.shares):
        return None
    told = set[ir.Value]()
    found = _hidden(scores, scores.softmaxes[0].inputs[0], told)
    # A row that is hidden as a whole has shares, which are of all its keys.
    if found is None or np.atleast_1d(found).all(-1).any() or not _is_mild(scores, told):
        return None
    return np.broadcast_to(_of_all(found), scores.size)


def _leaves_nothing(scores: Scores, value: ir.Value | None) -> bool:
    """Whether a value behind the softmax, or beside it there, is 0 where a share is."""
    data, node = data_of(scores.program, value), value.producer() if value is not None else None
    if data is not None:
        return not data.any()
    if node in scores.softmaxes:
        return True
    if node not in scores.nodes or node is None:
        return False
    of = [_leaves_nothing(scores, v) for v in node.inputs]
    match node.op_type:
        case "Identity" | "Cast" | "Reshape" | "Neg":
            return of[0]
        case "Add" | "Sub" | "Max" | "Min":
            return all(of)
        case "Mul":
            return any(of) and any(data_of(scores.program, v) is not None for v in node.inputs)
        case "Div":
            by = data_of(scores.program, node.inputs[1])
            return of[0] and by is not None and bool(by.all())
        case "Where":
            return all(of[1:])
    return False


def _is_mild(scores: Scores, told: Collection[ir.Value]) -> bool:
    """Whether no constant raises what is hidden, nor lowers something beside those that are told to hide it."""
    for value in {v for node in scores.nodes for v in node.inputs}:
        data = data_of(scores.program, value)
        if data is None or data.dtype.kind in "biu" or value is None:
            continue
        if not (data < -HIDDEN).all() or (value not in told and not (data > HIDDEN).all()):
            return False
    return True


def _hidden(scores: Scores, value: ir.Value | None, told: set[ir.Value]) -> Array | None:
    """Which elements of a value are as low as hides them; enters the constants that tell it."""
    data, node = data_of(scores.program, value), value.producer() if value is not None else None
    if data is not None and data.dtype.kind == "f" and value is not None:
        told.add(value)
        return np.asarray(data <= HIDDEN)
    if node is None or node not in scores.nodes or not is_a(node, "Where", *_LOWERING):
        return None
    which = data_of(scores.program, node.inputs[0])
    if node.op_type == "Where" and which is None:
        return None
    of = [_hidden(scores, v, told) for v in node.inputs[1 if node.op_type == "Where" else 0 :]]
    known = [o for o in of if o is not None]
    match node.op_type:
        case "Identity" | "Cast":
            return of[0]
        case "Reshape" if of[0] is not None:
            alike = _of_all(of[0])
            if not (alike == of[0]).all():  # each in the stack hides others, which is not followed
                told.clear()
                return None
            return alike
        case "Add" | "Min" if known:
            return np.asarray(known[0] | known[-1])
        case "Max" if len(known) == len(of) == 2:
            return np.asarray(known[0] & known[1])
        case "Where" if which is not None:
            return np.where(which, *(np.zeros((1, 1), bool) if o is None else o for o in of))
    return None


def _of_all(hidden: Array) -> Array:
    """What is hidden in all of a stack."""
    return np.asarray(hidden.all(tuple(range(hidden.ndim - 2)))) if hidden.ndim > 2 else hidden
