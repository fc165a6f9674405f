"""Depthwise convolutions of bytes with as many channels as a processor computes at once, or some times as many.

Those of pruned and searched networks have 72, 120 or 200, of which onnxruntime 1.32 computes the last eight one by
one: of 72 over 28 by 28 by 3 by 3 it takes 65 µs, of 80 31; of 120 over 14 by 14 by 5 by 5 63, of 128 26. Layers in
front give some channels more, and those behind weigh these by nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
import onnx_ir as ir

from superopt.dim import product
from superopt.onnx_io.otherwise.quantized.regions import all_of, dequantizing, takes_in
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import shape_of
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import held, input_of, is_a, number
from superopt.onnx_io.surgery import bury

AT_ONCE = 16
MOST_MORE, LEAST = 1.25, 2**13
"""Channels become so many times as many at most, and there are so many numbers at least."""

_OF_EACH = ("Clip", "HardSigmoid", "HardSwish", "LeakyRelu", "Relu", "Sigmoid")
_OF_MAPS = ("AveragePool", "GlobalAveragePool", "MaxPool")
_OF_TWO = ("Add", "Mul", "Sub")


@dataclass
class _Region:
    """Values that get more channels, and convolutions whose weights give or read them."""

    channels: int
    values: set[ir.Value] = field(default_factory=set)
    giving: dict[ir.Node, None] = field(default_factory=dict)
    reading: dict[ir.Node, None] = field(default_factory=dict)

    @property
    def more(self) -> int:
        """How many channels are added."""
        return -self.channels % AT_ONCE


def whole_channels(program: Program) -> dict[int, Put]:
    """How to add channels, by the places of depthwise convolutions."""
    found, seen = dict[int, Put](), set[ir.Value]()
    for place, node in enumerate(program.model.graph):
        region = _region(program, node) if node.outputs and node.outputs[0] not in seen else None
        if region is not None:
            seen |= region.values
            found[place] = partial(_put, program)
    return found


def _region(program: Program, node: ir.Node) -> _Region | None:
    """What has to have more channels if a depthwise convolution of bytes has; None where it needs none, or where
    something else depends on how many there are.
    """
    channels = number(node, "group", 1) if is_a(node, "Conv") else 1
    region, many = _Region(channels), product(shape_of(program, node.outputs[0]) or (0,)) if channels > 1 else 0
    is_much = not isinstance(many, int) or many >= LEAST
    if not region.more or channels + region.more > MOST_MORE * channels or not is_much or not _is_of_each(node, region):
        return None

    def around(value: ir.Value) -> list[ir.Value] | None:
        nodes = [value.producer(), *(user for user, _ in value.uses())]
        return all_of([None if one is None else _around(program, region, one, value) for one in nodes])

    return region if takes_in(region.values, node.outputs[0], around) else None


def _is_of_each(node: ir.Node, region: _Region) -> bool:
    """Whether a node convolves each channel by itself, with a kernel of bytes."""
    kernel = _bytes(node, 1) if is_a(node, "Conv") else None
    return kernel is not None and number(node, "group", 1) == region.channels == len(kernel.numpy())


def _around(program: Program, region: _Region, node: ir.Node, value: ir.Value) -> list[ir.Value] | None:
    """What else has more channels around a node that gives or reads a value; None where that cannot be."""
    first = node.inputs[0]
    if first is None or len(node.outputs) > 1:
        return None
    if is_a(node, "QuantizeLinear", "DequantizeLinear"):
        scale = held(node.inputs[1])
        is_one = scale is not None and scale.numpy().size == 1 and value in (first, node.outputs[0])
        return [first, node.outputs[0]] if is_one else None
    if is_a(node, *_OF_EACH, *_OF_MAPS):
        return [first, node.outputs[0]] if value in (first, node.outputs[0]) else None
    if is_a(node, *_OF_TWO):
        return _of_two(program, region, node)
    if not is_a(node, "Conv") or _bytes(node, 1) is None or (len(node.inputs) > 2 and _bytes(node, 2) is None):
        return None
    if _is_of_each(node, region):
        region.giving[node] = None
        return [first, node.outputs[0]]
    if number(node, "group", 1) != 1:
        return None
    (region.giving if value is node.outputs[0] else region.reading)[node] = None
    return [] if value in (first, node.outputs[0]) else None


def _of_two(program: Program, region: _Region, node: ir.Node) -> list[ir.Value] | None:
    """The values around a sum or product that have these channels, where the others are the same for all."""
    more = [node.outputs[0]]
    rank = len(shape_of(program, node.outputs[0]) or ())
    for value in node.inputs:
        shape = shape_of(program, value)
        if value is None or shape is None or rank < 3:
            return None
        channels = shape[1 - rank] if len(shape) >= rank - 1 else 1
        if channels == region.channels and len(shape) == rank and not program.is_constant(value):
            more.append(value)
        elif channels != 1:
            return None
    return more


def _maker(node: ir.Node, which: int) -> ir.Node | None:
    """What makes numbers of bytes for one of the places at which a node reads, and for nothing else."""
    maker = dequantizing(node, which)
    return maker if maker is not None and len(maker.outputs[0].uses()) == 1 else None


def _bytes(node: ir.Node, which: int) -> ir.TensorProtocol | None:
    """The integers of which weights or what is added are made, by one scale or one for each channel that comes out."""
    maker = _maker(node, which)
    data, scale = (None, None) if maker is None else (held(maker.inputs[0]), held(maker.inputs[1]))
    if maker is None or data is None or scale is None or maker.outputs[0].is_graph_output():
        return None
    zero = input_of(maker, 2)
    is_told = zero is None or held(zero) is not None
    is_of_each = (data.numpy().ndim == 1 or number(maker, "axis", 1) == 0) and number(maker, "block_size", 0) == 0
    return data if is_told and (scale.numpy().size == 1 or is_of_each) else None


def _put(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Give a region more channels."""
    region = _region(program, node)
    if region is None:
        return False
    for value in region.values:
        value.shape = None
    for conv in region.reading:
        _widen(draft, conv, 1, region.more, 1)
    for conv in region.giving:
        _widen(draft, conv, 1, region.more, 0)
        if len(conv.inputs) > 2:
            _widen(draft, conv, 2, region.more, 0)
        if number(conv, "group", 1) > 1:
            conv.attributes["group"] = ir.AttrInt64("group", region.channels + region.more)
    return True


def _widen(draft: Draft, conv: ir.Node, which: int, more: int, axis: int) -> None:
    """Let weights have more channels along an axis, which are nothing: of scales and zero points the last again."""
    maker = _maker(conv, which)
    tensors = [] if maker is None else [held(value) for value in maker.inputs]
    if maker is None or tensors[0] is None:
        return
    made, read = draft.nodes("channels"), list(maker.inputs)
    data = tensors[0].numpy()
    zeros = np.zeros(1, data.dtype) if len(tensors) < 3 or tensors[2] is None else tensors[2].numpy().reshape(-1)
    last = zeros[-1:] if axis == 0 else zeros
    shape = [more if i == axis else d for i, d in enumerate(data.shape)]
    nothing = np.broadcast_to(last.reshape(-1, *[1] * (data.ndim - 1)), shape).astype(data.dtype)
    maker.replace_input_with(0, made.held(np.concatenate([data, nothing], axis)))
    for i, tensor in enumerate(tensors[1:], 1):
        if axis == 0 and tensor is not None and tensor.numpy().size > 1:
            maker.replace_input_with(i, made.held(np.pad(tensor.numpy(), (0, more), mode="edge")))
    maker.outputs[0].shape = None
    draft.model.graph.insert_before(maker, made.nodes)
    bury(draft.model, [value for value in read if value is not None])
