"""Models that put the bias of a convolution around what it gives: zeros around the convolution, and the bias added.

Networks for super-resolution are trained with blocks of a convolution of single places and a wide one behind it (ECBSR;
Zhang et al. 2021). So that the two are one, what the first gives is padded not with zeros, but with what it gives of
zeros, its bias: `y[:, :, 0:1, :] = b` and so on. `assigned(pad(x·w + b), b) = pad(x·w) + b`, which a search knows how
to go on from; and runtimes copy the whole for each side.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.dim import Shape, product
from superopt.onnx_io.naming import by_name
from superopt.onnx_io.otherwise.places.boxes import Part, Parts, UntoldError, parts_by_name
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import input_of, is_a
from superopt.onnx_io.skeleton import opset_of
from superopt.onnx_io.surgery import bury
from superopt.relations import are_equal, equal_shapes

ROUNDED = 2.0**-18
"""So much of itself a bias is off, at most, that exporters compute in their order."""

_READING = ("AveragePool", "Conv")
"""What reads such values in blocks that are one convolution once they are trained."""

_JOINING = ("Concat", "ScatterElements", "ScatterND", "Transpose")
"""What puts sides around them last, or moves them back."""

LEAST_OPSET = 11
"""Before it, widths of zeros around a value were attributes."""


class Border(NamedTuple):
    """What a convolution gives, by name, with so many places around it that hold its bias."""

    of: str
    widths: list[int]


def bordered(program: Program) -> dict[int, Put]:
    """How to have zeros around what convolutions read, by their places."""
    graph = program.model.graph
    reading = {place: name for place, node in enumerate(graph) if (name := _joined(node))}
    if opset_of(program.model) < LEAST_OPSET or not reading:
        return {}
    made = {value.name or "": node for node in graph for value in node.outputs}
    known = parts_by_name(program, with_zeros=True)
    found = dict[int, Put]()
    for place, name in reading.items():
        border = _border(program, program.values[name].shape, known[name], made) if name in known else None
        if border is not None:
            found[place] = partial(_put, border)
    return found


def _joined(node: ir.Node) -> str:
    """What a node reads in blocks that are trained, by name, if it may be joined; else nothing."""
    value = node.inputs[0] if is_a(node, *_READING) else None
    return value.name or "" if value is not None and is_a(value.producer(), *_JOINING) else ""


def _border(program: Program, shape: Shape, parts: Parts, made: dict[str, ir.Node]) -> Border | None:
    """What a value of a shape is in the middle, where all around is the bias of the convolution that gives that."""
    inner = [part for part in parts if part.of not in program.constants]
    if len(inner) != 1 or len(parts) < 2 or not is_a(made.get(inner[0].of), "Conv"):
        return None
    (middle,) = inner
    conv = made[middle.of]
    bias = data_of(program, input_of(conv, 2))
    around = [_by_channel(program, part) for part in parts if part is not middle]
    if bias is None or not all(each is not None and _is_same(each, bias) for each in around):
        return None
    whole = _is_whole(middle, program.values[middle.of].shape)
    return Border(middle.of, _widths(middle, shape)) if whole and _fill(parts, shape) else None


def _by_channel(program: Program, part: Part) -> Array | None:
    """What a part of a constant is in each channel; None where it is not one number there, or of some of them."""
    axis, data = part.axes[1], program.data(part.of)
    if axis is None or part.first[axis] != 0 or not are_equal(part.sizes[1], data.shape[axis]):
        return None
    rows = np.moveaxis(data, axis, 0).reshape(data.shape[axis], -1)
    return rows[:, 0] if (rows == rows[:, :1]).all() else None


def _is_same(each: Array, bias: Array) -> bool:
    """Whether numbers are those of a bias but for how that was rounded, as a norm was made part of a convolution."""
    return each.shape == bias.shape and bool((np.abs(each - bias) <= ROUNDED * np.abs(bias)).all())


def _is_whole(part: Part, shape: Shape) -> bool:
    """Whether a part is a value of this shape as it is, with nothing before or behind its batch and its channels."""
    at_first = not any(part.first) and part.axes == tuple(range(len(shape)))
    return at_first and equal_shapes(part.sizes, shape) and all(are_equal(part.box[a][0], 0) for a in (0, 1))


def _fill(parts: Parts, shape: Shape) -> bool:
    """Whether parts, of which none lies in another one, leave no place of a value free."""
    batch = all(are_equal(part.sizes[a], shape[a]) for part in parts for a in (0, 1))
    return batch and are_equal(sum((product(part.sizes[2:]) for part in parts), start=0), product(shape[2:]))


def _widths(part: Part, shape: Shape) -> list[int]:
    """How many places are before a part along each axis, then how many behind it. Raises `UntoldError`."""
    before, behind = [b[0] for b in part.box], [d - b[1] for d, b in zip(shape, part.box, strict=True)]
    if not all(isinstance(d, int) for d in (*before, *behind)):
        raise UntoldError
    return [d for d in (*before, *behind) if isinstance(d, int)]


def _put(border: Border, draft: Draft, node: ir.Node) -> bool:
    """Let a convolution read another one without its bias, with zeros around, to which the bias is added."""
    conv, old = by_name(draft.model.graph)[border.of].producer(), node.inputs[0]
    bias = None if conv is None else input_of(conv, 2)
    if conv is None or old is None or bias is None:
        return False
    made = draft.nodes("bordered")
    inputs = [value for value in conv.inputs[:2] if value is not None]
    zeros = made.node("Pad", [made.node("Conv", inputs, list(conv.attributes.values())), made.integers(border.widths)])
    over = [1] * (len(border.widths) // 2 - 2)
    node.replace_input_with(0, made.node("Add", [zeros, made.reshaped(bias, [-1, *over])]))
    draft.model.graph.insert_before(node, made.nodes)
    bury(draft.model, [old])
    return True
