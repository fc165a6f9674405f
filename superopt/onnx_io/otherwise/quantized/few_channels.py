"""Convolutions of quantized images with strides: of blocks of their places, which are channels of a smaller image.

A convolution of bytes gathers what each place reads, a few channels at a time: onnxruntime 1.32 takes 1,550 µs of a
picture of 224 by 224 with three channels by 7 by 7 to 64, a sixth of a ResNet-18 of bytes, and 1,050 µs where blocks
of 2 by 2 places are twelve channels and the kernel is 4 by 4; 607 and 362 µs by 3 by 3 to 32. What is added up is the
same.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.dim import Dim
from superopt.onnx_io.otherwise.quantized.regions import dequantizing
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import shape_of
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import held, is_a, number, text
from superopt.onnx_io.surgery import bury

MOST_CHANNELS, MOST_STRIDE, LEAST_PLACES = 4, 4, 2**12
"""An image has so many channels at most, a stride goes so far, and an image has so many places at least."""

_BYTES = (ir.DataType.INT8, ir.DataType.UINT8)


class _Blocks(NamedTuple):
    """How a convolution is one of blocks: their side, the weights, and what is said of these."""

    side: int
    weights: Array
    pads: tuple[int, ...]


class _Along(NamedTuple):
    """Blocks along an axis: how many a kernel reads, where it begins in the first, and how many are added around."""

    blocks: int
    begin: int
    around: tuple[int, int]


def few_channels(program: Program) -> dict[int, Put]:
    """How to convolve blocks, by the places of convolutions."""
    return {place: partial(_put, one) for place, one in of_nodes(program, partial(_blocks, program)).items()}


def _blocks(program: Program, node: ir.Node) -> _Blocks | None:
    """How a node that convolves bytes with a stride is one of blocks; None where it is no such, or it is too small."""
    values, weights = _bytes_of(node), _weights(node)
    shape = shape_of(program, values)
    if weights is None or shape is None or len(shape) != 4 or weights.ndim != 4:
        return None
    strides, pads = _listed(node, "strides", [1, 1]), _listed(node, "pads", [0] * 4)
    is_plain = set(_listed(node, "dilations", [1, 1])) == {1} and number(node, "group", 1) == 1
    is_told = text(node, "auto_pad", "NOTSET") == "NOTSET"
    side, sizes = strides[0], shape[2:]
    if not (is_plain and is_told and strides[0] == strides[1] and 1 < side <= MOST_STRIDE):
        return None
    along = [_along(d, side, weights.shape[2 + i], (pads[i], pads[2 + i])) for i, d in enumerate(sizes)]
    if weights.shape[1] > MOST_CHANNELS or any(one is None for one in along) or not _is_large(sizes):
        return None
    told = [one for one in along if one is not None]
    pads = [one.around[end] for end in (0, 1) for one in told]
    return _Blocks(side, _of_blocks(weights, _zeros(node), side, told), tuple(pads))


def _is_large(sizes: tuple[Dim, ...]) -> bool:
    return all(isinstance(d, int) for d in sizes) and int(np.prod([int(str(d)) for d in sizes])) >= LEAST_PLACES


def _along(size: Dim, side: int, kernel: int, pads: tuple[int, int]) -> _Along | None:
    """Blocks along an axis; None where it is not made of whole ones, where a kernel reads none but its own, and where
    some are not read at all.
    """
    if not isinstance(size, int) or size % side or kernel <= side:
        return None
    first, last = -pads[0] // side, (kernel - 1 - pads[0]) // side
    blocks, places = last - first + 1, (size + sum(pads) - kernel) // side + 1
    behind = places + blocks - 1 - size // side + first
    return _Along(blocks, -pads[0] - first * side, (-first, behind)) if behind >= 0 else None


def _of_blocks(weights: Array, zeros: Array, side: int, along: list[_Along]) -> Array:
    """Weights of blocks of places, of which each is as many channels; what they read more weighs nothing."""
    (rows, columns), (of, channels, *kernel) = along, weights.shape
    wide = np.empty((of, channels, side * rows.blocks, side * columns.blocks), weights.dtype)
    wide[:] = zeros.reshape(-1, 1, 1, 1)
    wide[:, :, rows.begin : rows.begin + kernel[0], columns.begin : columns.begin + kernel[1]] = weights
    apart = wide.reshape(of, channels, rows.blocks, side, columns.blocks, side).transpose(0, 3, 5, 1, 2, 4)
    return np.ascontiguousarray(apart.reshape(of, side * side * channels, rows.blocks, columns.blocks))


def _listed(node: ir.Node, name: str, default: list[int]) -> list[int]:
    return list(node.attributes[name].as_ints()) if name in node.attributes else default


def _bytes_of(node: ir.Node) -> ir.Value | None:
    """The bytes that a node convolves, where they stand for numbers by one scale."""
    if is_a(node, "QLinearConv"):
        return node.inputs[0]
    maker = dequantizing(node, 0) if is_a(node, "Conv") else None
    scale, zero = (None, None) if maker is None else (held(maker.inputs[1]), held([*maker.inputs, None][2]))
    is_one = scale is not None and scale.numpy().size == 1 and zero is not None and zero.dtype in _BYTES
    return maker.inputs[0] if maker is not None and is_one else None


def _weights(node: ir.Node) -> Array | None:
    """The bytes that stand for the weights of a convolution, by one scale or one for each channel of what it gives."""
    maker = dequantizing(node, 1) if is_a(node, "Conv") else None
    is_of_each = maker is None or (number(maker, "axis", 1) == 0 and number(maker, "block_size", 0) == 0)
    if maker is not None and not is_of_each and np.size(_numpy(maker.inputs[1])) != 1:
        return None
    data = held(node.inputs[3] if is_a(node, "QLinearConv") else None if maker is None else maker.inputs[0])
    return data.numpy() if data is not None and data.dtype in _BYTES else None


def _zeros(node: ir.Node) -> Array:
    """The bytes that stand for 0 among weights."""
    maker = dequantizing(node, 1)
    zeros = node.inputs[5] if maker is None else [*maker.inputs, None][2]
    return _numpy(zeros)


def _numpy(value: ir.Value | None) -> Array:
    data = held(value)
    return np.zeros(1, np.int8) if data is None else data.numpy()


def _put(blocks: _Blocks, draft: Draft, node: ir.Node) -> bool:
    """Let a node convolve blocks."""
    values, made = _bytes_of(node), draft.nodes("blocks")
    of_weights = 3 if is_a(node, "QLinearConv") else 1
    if values is None or _weights(node) is None:
        return False
    parted = made.node("SpaceToDepth", [values], [ir.AttrInt64("blocksize", blocks.side)])
    read = [node.inputs[0], node.inputs[of_weights]]
    for which, data in ((0, parted), (of_weights, made.held(blocks.weights))):
        maker = dequantizing(node, which) if is_a(node, "Conv") else None
        if maker is not None:
            data = made.several("DequantizeLinear", [data, *maker.inputs[1:]], list(maker.attributes.values()))[0]
        node.replace_input_with(which, data)
    for name in ("strides", "dilations", "auto_pad"):
        node.attributes.pop(name, None)
    node.attributes["kernel_shape"] = ir.AttrInt64s("kernel_shape", blocks.weights.shape[2:])
    node.attributes["pads"] = ir.AttrInt64s("pads", blocks.pads)
    draft.model.graph.insert_before(node, made.nodes)
    bury(draft.model, [value for value in read if value is not None])
    return True
