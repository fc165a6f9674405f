"""Whether values are computed by the same nodes of the same values: then any of them is all of them.

Scripts compute for each head what is one for all, as the mask that is cut to the length of a text.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.constants import RANDOM
from superopt.onnx_io.said import held, is_a
from superopt.onnx_io.skeleton import ONNX_DOMAIN

MOST_NODES = 32
"""What computes two values is compared as far as so many nodes."""

Told: TypeAlias = dict[tuple[ir.Value, ir.Value], bool]
"""Of pairs of values, whether they are one."""

_GRAPHS = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)

_PLAIN = (ir.AttributeType.INT, ir.AttributeType.INTS, ir.AttributeType.STRING, ir.AttributeType.STRINGS)
"""What is compared as it is: other numbers have zeros of two signs, and what is held is compared as it is written."""


def are_one(values: tuple[ir.Value, ...], told: Told) -> bool:
    """Whether all of some values are what the first is; of what they are computed of that is told, too, as far as it is
    compared.
    """
    for value in values[1:]:
        seen = Told()
        is_one, is_whole = _is(value, values[0], told, seen), len(seen) <= MOST_NODES
        told.update({pair: same for pair, same in seen.items() if same or is_whole})
        if not is_one:
            return False
    return True


def itself(value: ir.Value) -> ir.Value:
    """What a value is the same as: exporters write weights that are equal to others as these."""
    node = value.producer()
    read = node.inputs[0] if is_a(node, "Identity") else None
    return value if read is None or held(read) is None else read


def are_same(one: ir.Value | None, other: ir.Value | None) -> bool:
    """Whether two values are one, or constants that are the same."""
    if one is other:
        return True
    tensors = held(one), held(other)
    if tensors[0] is None or tensors[1] is None or tensors[0].size != tensors[1].size:
        return False
    return are_equal(*(np.asarray(tensor.numpy()) for tensor in tensors if tensor is not None))


def _is(one: ir.Value | None, other: ir.Value | None, told: Told, seen: Told) -> bool:
    """Whether a value is another one, by what is told and what is seen now, to which this is added."""
    if one is None or other is None:
        return one is other
    pair = itself(one), itself(other)
    if pair in told:
        return told[pair]
    if pair not in seen:
        seen[pair] = False
        seen[pair] = are_same(*pair) or (len(seen) <= MOST_NODES and _is_computed_as(*pair, told, seen))
    return seen[pair]


def _is_computed_as(one: ir.Value, other: ir.Value, told: Told, seen: Told) -> bool:
    """Whether nodes compute values alike: weights, which stand behind what they weigh, tell others apart at once."""
    node, like = one.producer(), other.producer()
    if node is None or like is None or node is like or one.index() != other.index():
        return False
    return (
        does_as(node, like)
        and node.op_type not in RANDOM
        and not any(a.type in _GRAPHS for a in node.attributes.values())
        and all(_is(v, w, told, seen) for v, w in zip(node.inputs[::-1], like.inputs[::-1], strict=True))
    )


def does_as(node: ir.Node, other: ir.Node) -> bool:
    """Whether two nodes are of the same of ONNX's own operators, say the same, and read and give as much."""
    return (
        node.domain in ONNX_DOMAIN
        and (node.op_type, node.domain) == (other.op_type, other.domain)
        and len(node.outputs) == len(other.outputs)
        and [v is None for v in node.inputs] == [v is None for v in other.inputs]
        and len(node.attributes) == len(other.attributes)
        and all(_are_said(a, other.attributes.get(name)) for name, a in node.attributes.items())
    )


def are_equal(one: Array, other: Array) -> bool:
    """Whether constants are the same, with the signs of their zeros."""
    return one is other or ((one.shape, one.dtype) == (other.shape, other.dtype) and one.tobytes() == other.tobytes())


def _are_said(one: ir.Attr, other: ir.Attr | None) -> bool:
    """Whether two attributes say the same."""
    if other is None or one.type != other.type:
        return False
    return bool(one.value == other.value) if one.type in _PLAIN else str(one) == str(other)
