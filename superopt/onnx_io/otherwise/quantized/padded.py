"""Quantized values that are padded as numbers between their bytes: convolutions have the zeros, or bytes are padded.

Keras pads in front of convolutions that skip places, and quantizers write a padding between what dequantizes and what
quantizes to the same steps again, which gives each byte back. onnxruntime 1.32 makes numbers of all bytes and bytes of
all numbers there: of a MobileNetV2 four paddings take a fourth of the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx_ir as ir

from superopt.onnx_io.otherwise.quantized.regions import dequantizing, pads_with_one
from superopt.onnx_io.otherwise.quantized.stepping import Steps, steps_of
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of, shape_of
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import input_of, is_a
from superopt.onnx_io.surgery import bury, replace_node


@dataclass(frozen=True)
class _Padding:
    """A padding, what makes the numbers that it pads and quantizes what it gives, and the byte with which it pads."""

    node: ir.Node
    making: ir.Node
    quantizing: ir.Node
    steps: Steps
    byte: int | None
    """None where it repeats or mirrors what it pads."""


def padded(program: Program) -> dict[int, Put]:
    """How to have zeros around bytes, by the places of paddings."""
    quantizes = any(is_a(node, "QuantizeLinear") for node in program.model.graph)
    found = dict.fromkeys(of_nodes(program, partial(_padding, program)), partial(_put, program))
    named = of_nodes(program, partial(_names_axes, program)) if quantizes else {}
    return {**dict.fromkeys(named, partial(_name_none, program)), **found}


def _names_axes(program: Program, node: ir.Node) -> bool:
    """Whether a padding names axes that are told."""
    return is_a(node, "Pad") and input_of(node, 3) is not None and _widths(program, node) is not None


def _name_none(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Pad along all axes, by nothing along those that are not named: onnxruntime 1.32 moves transpositions through
    paddings around convolutions of bytes, and is mistaken about axes that are named.
    """
    widths, made = _widths(program, node), draft.nodes("padded")
    if widths is None:
        return False
    read = [node.inputs[1], node.inputs[3]]
    node.replace_input_with(1, made.integers(widths))
    node.replace_input_with(3, None)
    node.resize_inputs(2 if node.inputs[2] is None else 3)
    draft.model.graph.insert_before(node, made.nodes)
    bury(draft.model, [value for value in read if value is not None])
    return True


def _padding(program: Program, node: ir.Node) -> _Padding | None:
    """The padding that a node is, if all that it gives is quantized to the bytes that it is made of."""
    making = dequantizing(node, 0) if is_a(node, "Pad") and len(node.inputs) > 1 else None
    users = [] if making is None else [user for user, _ in node.outputs[0].uses()]
    if making is None or len(users) != 1 or not is_a(users[0], "QuantizeLinear") or users[0].graph is not node.graph:
        return None
    steps = steps_of(making)
    if steps is None or steps_of(users[0]) != steps or not steps.are_restored or node.outputs[0].is_graph_output():
        return None
    if not pads_with_one(node):
        return _Padding(node, making, users[0], steps, None)
    with_what = input_of(node, 2)
    number = np.zeros((), np.float32) if with_what is None else data_of(program, with_what)
    if number is None or number.size != 1 or not np.isfinite(number).all():
        return None
    return _Padding(node, making, users[0], steps, int(steps.bytes(number.astype(np.float32)).item()))


def _put(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Let convolutions have zeros around what they read, or bytes be padded."""
    found = _padding(program, node)
    if found is None:
        return False
    widths = _widths(program, node)
    reading = _convolutions(found) if found.byte == found.steps.zero else []
    if widths is None or not reading or not all(_pads(program, conv, widths) for conv in reading):
        _pad_bytes(draft, found, widths)
        return True
    between = [conv.inputs[0] for conv in reading]
    for conv in reading:
        pads = _pads(program, conv, widths)
        conv.attributes.pop("auto_pad", None)
        conv.attributes["pads"] = ir.AttrInt64s("pads", pads)
        conv.replace_input_with(0, found.making.outputs[0])
    bury(draft.model, dict.fromkeys(value for value in between if value is not None))
    return True


def _widths(program: Program, node: ir.Node) -> list[int] | None:
    """How much there is in front along each axis, and then behind; None where that is computed."""
    widths, axes, shape = data_of(program, node.inputs[1]), input_of(node, 3), shape_of(program, node.outputs[0])
    rank = len(shape or ())
    told = np.arange(rank) if axes is None else data_of(program, axes)
    if widths is None or told is None or not rank or widths.size != 2 * told.size:
        return None
    full = np.zeros((2, rank), np.int64)
    full[:, told] = widths.reshape(2, -1)
    return [int(width) for width in full.reshape(-1)]


def _convolutions(padding: _Padding) -> list[ir.Node]:
    """The convolutions that read the numbers of what is padded; none where something else reads it."""
    of_bytes = padding.quantizing.outputs[0]
    makers = [user for user, which in of_bytes.uses() if which == 0 and is_a(user, "DequantizeLinear")]
    made = [maker.outputs[0] for maker in makers if steps_of(maker) == padding.steps]
    uses = [use for value in made for use in value.uses()]
    shown = any(value.is_graph_output() for value in (of_bytes, *made))
    if shown or len(made) != len(of_bytes.uses()):
        return []
    graph = padding.node.graph
    are_read_so = all(which == 0 and is_a(user, "Conv") and user.graph is graph for user, which in uses)
    return [user for user, _ in uses] if are_read_so else []


def _pads(program: Program, conv: ir.Node, widths: list[int]) -> list[int]:
    """With how many zeros a convolution reads what is padded so; none where it cannot have them."""
    rank = len(widths) // 2
    automatic = conv.attributes["auto_pad"].as_string() if "auto_pad" in conv.attributes else "NOTSET"
    said = conv.attributes["pads"].as_ints() if "pads" in conv.attributes and automatic != "VALID" else ()
    own = list(said) or [0] * (2 * rank - 4)
    if automatic not in ("NOTSET", "VALID") or min(widths) < 0 or any(widths[:2] + widths[rank : rank + 2]):
        return []
    return [a + b for a, b in zip(own, widths[2:rank] + widths[rank + 2 :], strict=True)]


def _pad_bytes(draft: Draft, padding: _Padding, widths: list[int] | None) -> None:
    """Pad bytes with one of them, along all axes where the widths are told: onnxruntime 1.32 refuses a padding that
    names axes beside convolutions of bytes.
    """
    made, node = draft.nodes("padded"), padding.node
    axes = input_of(node, 3) if widths is None else None
    read: list[ir.Value | None] = [padding.making.inputs[0], node.inputs[1]]
    if widths is not None and input_of(node, 3) is not None:
        read[1] = made.integers(widths)
    if padding.byte is not None or axes is not None:
        read.append(None if padding.byte is None else made.held(np.array(padding.byte, padding.steps.dtype)))
    if axes is not None:
        read.append(axes)
    result = made.several("Pad", read, list(node.attributes.values()))[0]
    draft.model.graph.insert_before(padding.quantizing, made.nodes)
    replace_node(draft.model, padding.quantizing, [result])
