"""Models whose values are quantized to bytes with a sign: to bytes without one, that stand for the same numbers.

`QuantizeLinear` to `[-128, 127]` with a zero point of z and to `[0, 255]` with one of z + 128 give the same steps, and
so does all that only moves them. onnxruntime's fast kernels on x86 multiply bytes without a sign by such with one. It
writes values of models otherwise for these by itself, but in pairs, one for each that reads a value, and what it fuses
of bytes without a sign it does not find there: of a ResNet-18 eleven convolutions stay in 32 bits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from superopt.onnx_io.operator_kinds import MOVES
from superopt.onnx_io.otherwise.quantized.bytes import all_are_exact, unsigned, zeros
from superopt.onnx_io.otherwise.quantized.regions import all_of, pads_with_one, takes_in
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import held, input_of, is_a, text
from superopt.onnx_io.skeleton import ONNX_DOMAIN
from superopt.onnx_io.surgery import bury

BYTE, UNSIGNED = ir.DataType.INT8, ir.DataType.UINT8

_MOVING = (*MOVES, "DepthToSpace", "GatherElements", "MaxPool", "SpaceToDepth", "Split")
"""What gives some of the integers that it reads first, which of them does not depend on where 0 is."""

Places: TypeAlias = tuple[tuple[int, int], ...]

_OF_OTHERS: Mapping[tuple[str, str], tuple[Places, int]] = {
    ("", "QLinearConv"): (((0, 2),), 7),
    ("", "QLinearMatMul"): (((0, 2), (3, 5)), 7),
    ("com.microsoft", "QGemm"): (((0, 2),), 8),
    ("com.microsoft", "QLinearAdd"): (((0, 2), (3, 5)), 7),
    ("com.microsoft", "QLinearMul"): (((0, 2), (3, 5)), 7),
    ("com.microsoft", "QLinearSigmoid"): (((0, 2),), 4),
    ("com.microsoft", "QLinearLeakyRelu"): (((0, 2),), 4),
    ("com.microsoft", "QLinearSoftmax"): (((0, 2),), 4),
    ("com.microsoft", "QLinearGlobalAveragePool"): (((0, 2),), 4),
    ("com.microsoft", "QLinearAveragePool"): (((0, 2),), 4),
}
"""Of operators on integers the places of values with their zero points, and of the zero point of what they give."""


@dataclass
class _Region:
    """Values that have to be of one type, and constants that have to be so: inputs of nodes, zero points mostly."""

    values: set[ir.Value] = field(default_factory=set)
    bytes: dict[tuple[ir.Node, int], None] = field(default_factory=dict)


def unsigned_values(program: Program) -> dict[int, Put]:
    """How to quantize to bytes without a sign, by the places of what quantizes to those with one."""
    found, seen, refused = dict[int, Put](), set[ir.Value](), set[ir.Value]()
    for place, node in enumerate(program.model.graph):
        if not _is_to_bytes(node) or node.outputs[0] in seen or node.outputs[0] in refused:
            continue
        region = _Region()
        if _is_taken_in(region, node.outputs[0], refused):
            seen |= region.values
            found[place] = _put
        else:
            refused |= region.values
    return found if found and all_are_exact(program) else {}


def becomes_unsigned(program: Program, value: ir.Value) -> bool:
    """Whether bytes with a sign become such without: what else is to be said of them is told of those then."""
    producer, region = value.producer(), _Region()
    is_taken_in = producer is not None and value.graph is program.model.graph and _is_taken_in(region, value)
    is_quantized = any(_is_to_bytes(maker) for each in region.values if (maker := each.producer()) is not None)
    return is_taken_in and is_quantized and all_are_exact(program)


def _is_taken_in(region: _Region, first: ir.Value, refused: Collection[ir.Value] = ()) -> bool:
    """Take in what has to be of bytes without a sign if a value is; whether all of that can be, where those that are
    refused cannot.
    """

    def around(value: ir.Value) -> list[ir.Value] | None:
        maker = value.producer()
        if maker is None or value in refused:
            return None
        found = [_made(region, maker), *(_read(region, user, i) for user, i in value.uses())]
        return all_of(found)

    return takes_in(region.values, first, around)


def _is_to_bytes(node: ir.Node) -> bool:
    """Whether a node quantizes to bytes with a sign, whose zero point is a constant."""
    return is_a(node, "QuantizeLinear") and _is_byte(node, 2)


def _made(region: _Region, node: ir.Node) -> list[ir.Value] | None:
    """What has to be of one type with what a node gives, if that can be another; it is noted where that has its 0."""
    if not is_a(node, "QuantizeLinear"):
        return _carried(region, node)
    region.bytes[node, 2] = None
    return [] if _is_to_bytes(node) else None


def _read(region: _Region, node: ir.Node, which: int) -> list[ir.Value] | None:
    """The same of what a node reads, at one of its places."""
    if not is_a(node, "DequantizeLinear"):
        is_read = which == 0 or is_a(node, "Concat") or any(which == p for p, _ in _places(node)[0])
        return _carried(region, node) if is_read else None
    if zeros(node, 2, np.int8) is None:
        return None
    region.bytes[node, 2] = None
    return [] if which == 0 else None


def _places(node: ir.Node) -> tuple[Places, int]:
    """Where a node that computes with integers reads values, each with its zero point, and that of what it gives."""
    if (node.domain, node.op_type) == ("com.microsoft", "QLinearConcat"):
        return tuple((i, i + 2) for i in range(2, len(node.inputs), 3)), 1
    return _OF_OTHERS.get(("" if node.domain in ONNX_DOMAIN else node.domain, node.op_type), ((), 0))


def _carried(region: _Region, node: ir.Node) -> list[ir.Value] | None:
    """What has to be of one type with others around a node that computes with integers, or moves them."""
    if is_a(node, *_MOVING, "Concat") or _is_nearest(node):
        if len(node.outputs) > 1 and not is_a(node, "Split"):
            return None
        return _joined(region, node, range(len(node.inputs) if is_a(node, "Concat") else 1))
    if is_a(node, "Pad"):
        return _padded(region, node)
    if is_a(node, "Clip"):
        return _bounded(region, node)
    places, zero = _places(node)
    if node.op_type == "QLinearMatMul" and _is_constant(node.inputs[3]):  # which may be of another type than a value
        places = places[:1]
    read = [zero, *(its_zero for _, its_zero in places)]
    if not places or not all(_is_byte(node, i) for i in read):
        return None
    region.bytes |= dict.fromkeys((node, i) for i in read)
    return _joined(region, node, [place for place, _ in places])


def _padded(region: _Region, node: ir.Node) -> list[ir.Value] | None:
    """The same around what pads, by a byte that is noted, or by bytes that are there."""
    if pads_with_one(node):
        if zeros(node, 2, np.int8) is None:
            return None
        region.bytes[node, 2] = None
    return _joined(region, node, [0])


def _bounded(region: _Region, node: ir.Node) -> list[ir.Value] | None:
    """The same around what bounds, by bytes that are noted."""
    given = [i for i, value in enumerate(node.inputs) if i and value is not None]
    if not all(_is_byte(node, i) for i in given):
        return None
    region.bytes |= dict.fromkeys((node, i) for i in given)
    return _joined(region, node, [0])


def _is_nearest(node: ir.Node) -> bool:
    """Whether a node enlarges or shrinks what it reads by repeating or leaving out."""
    is_within = text(node, "coordinate_transformation_mode") != "tf_crop_and_resize"  # else there is a number outside
    return is_a(node, "Resize") and is_within and text(node, "mode", "nearest") == "nearest"


def _joined(region: _Region, node: ir.Node, places: Iterable[int]) -> list[ir.Value]:
    """What a node reads in some places and gives, without constants, which are noted."""
    more = list(node.outputs)
    for place in places:
        if _is_constant(node.inputs[place]):
            region.bytes[node, place] = None
        else:
            more += _all(node.inputs[place : place + 1])
    return more


def _is_byte(node: ir.Node, which: int) -> bool:
    """Whether a node reads constant bytes with a sign in a place."""
    data = held(input_of(node, which))
    return data is not None and data.dtype == BYTE


def _is_constant(value: ir.Value | None) -> bool:
    return held(value) is not None


def _all(values: Sequence[ir.Value | None]) -> list[ir.Value]:
    return [value for value in values if value is not None]


def _put(draft: Draft, node: ir.Node) -> bool:
    """Let all values of a region be bytes without a sign."""
    region = _Region()
    if not _is_to_bytes(node) or not _is_taken_in(region, node.outputs[0]):
        return False
    for value in region.values:
        value.type = ir.TensorType(UNSIGNED)
    for user, which in region.bytes:
        made, zero = draft.nodes("zero"), input_of(user, which)
        data = zeros(user, which, np.int8)
        if data is None:
            return False
        user.resize_inputs(max(len(user.inputs), which + 1))
        user.replace_input_with(which, made.held(unsigned(data)))
        if is_a(user, "QuantizeLinear"):
            user.attributes.pop("output_dtype", None)  # what the zero point says
        draft.model.graph.insert_before(user, made.nodes)
        bury(draft.model, _all([zero]))
    return True
