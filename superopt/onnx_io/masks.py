"""What masks the scores that a softmax is of: numbers far below all others, by a constant pattern or as inputs say."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of
from superopt.onnx_io.said import is_a

MASKING = -80.0
"""Numbers up to this mask what they are added to, or stand for: shares of e⁻⁸⁰ are as slow as those of none."""

LEAST_ADDED = -1e30
"""Sums of some numbers from this on are finite; the lowest number twice is −∞."""

LEAST_EXACT = np.float32(-1e8)
"""What is as low, as rows are that are masked as a whole, may be the same number when 64 is taken from it."""

MOST_NODES = 64
"""So many values are looked at for a number that masks, and for what becomes of shares."""

MOVES = ("Identity", "Cast", "Reshape", "Transpose", "Squeeze", "Unsqueeze")
PARTS = ("Slice", "Concat", "Expand", "Tile", "Gather")
_MASKS = (*MOVES, *PARTS, "Add", "Sub", "Mul", "Where", "Min", "Max", "Trilu", "ScatterND")
_TRUTHS = ("And", "Or", "Not")
_COMPARISONS = ("Greater", "GreaterOrEqual", "Less", "LessOrEqual")
_FINITE = ("MatMul", "Gemm", "Einsum")
_PLACES = (*MOVES, *PARTS, "Add", "Sub", "Mul", "CumSum")
_OF_SIZES = ("Shape", "Range", "ConstantOfShape")


class Mask(NamedTuple):
    """What is known of scores: the least of the numbers that go into them, whether all that does is finite, and whether
    some are masked whatever inputs are.
    """

    least: float
    is_finite: bool
    is_fixed: bool
    is_far: bool
    """Whether numbers, and not infinity alone, are so low that 64 is too little to tell them apart."""


def mask_of(program: Program, scores: ir.Value | None) -> Mask:
    """What goes into scores, through what adds, chooses and moves."""
    seen, left, least, is_finite, is_fixed, is_far = set[ir.Value](), [scores], 0.0, True, False, False
    while left:
        value = left.pop(0)
        if value is None or value in seen:
            continue
        seen.add(value)
        node, data = value.producer(), _numbers(program, value)
        if data is not None:
            if data.dtype.kind == "f" and data.size:
                least = min(least, float(np.nanmin(data)))
                is_far |= bool((np.isfinite(data) & (data <= LEAST_EXACT)).any())
                is_fixed |= data.size > 1 and bool(np.nanmin(data) <= MASKING)
            is_fixed |= data.dtype.kind == "b" and bool(data.any() and not data.all())
        elif len(seen) <= MOST_NODES and (is_a(node, *_MASKS, *_TRUTHS) or _scales(program, node)):
            assert node is not None
            left += node.inputs
            is_fixed |= node.op_type == "Trilu"
        else:
            is_fixed |= is_a(node, *_COMPARISONS) and _is_of_sizes(program, node)
            is_finite &= node is None or is_a(node, *_FINITE) or not _is_floating(program, value)
    return Mask(least, is_finite and least >= LEAST_ADDED, is_fixed, is_far)


def _is_of_sizes(program: Program, node: ir.Node | None) -> bool:
    """Whether what a node gives is made of constants and sizes alone."""
    seen, left = set[ir.Value](), list(node.inputs) if node is not None else []
    while left:
        value = left.pop()
        if value is None or value in seen or program.is_constant(value):
            continue
        seen.add(value)
        before = value.producer()
        if not is_a(before, *_PLACES, *_OF_SIZES) or len(seen) > MOST_NODES:
            return False
        left += before.inputs if is_a(before, *_PLACES) else []
    return True


def _is_floating(program: Program, value: ir.Value) -> bool:
    known = program.term(value)
    return known is None or known.type.dtype.startswith("float")


def _scales(program: Program, node: ir.Node | None) -> bool:
    """Whether a node divides by constants, and none of these is 0."""
    data = data_of(program, node.inputs[1]) if is_a(node, "Div") else None
    return data is not None and bool(data.all())


def _numbers(program: Program, value: ir.Value) -> Array | None:
    """The elements of a constant, or that of which there are as many as a size says."""
    node = value.producer()
    if not is_a(node, "ConstantOfShape") or program.is_constant(value):
        return data_of(program, value)
    assert node is not None
    filled: Array = node.attributes["value"].as_tensor().numpy() if "value" in node.attributes else np.zeros(1)
    return filled
