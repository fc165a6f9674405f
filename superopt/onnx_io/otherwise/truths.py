"""Models that count truth values in floating-point numbers, and not in integers.

`(a < b).sum(1)` counts in 64-bit integers, and exporters write what that is: a cast and a ReduceSum. onnxruntime 1.32
adds up integers one after the other: of 1,024 by 1,024 truth values it takes 2,800 µs along the last axis and 7,700
along the first, of 256 by 16,384 21,800; as 32-bit floating-point numbers 420, 420 and 1,700. Fewer than 2²⁴ ones are
added up exactly in these, in any order; where sizes do not tell that there are, it stays.
"""

from __future__ import annotations

import onnx_ir as ir

from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import Reduction, data_of, reduction
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import is_a
from superopt.substitution import elements

LEAST = 2**13
"""So many truth values are counted at least, where each symbolic size is 1."""

_INTEGERS = {"ReduceSum": ("int32", "int64"), "ReduceMax": ("int64",), "ReduceMin": ("int64",)}
"""What reduces truth values, and as which integers slowly."""


def truths(program: Program) -> dict[int, Put]:
    """How to count truth values in floating-point numbers, by the places of what reduces them as integers."""
    nodes = ((i, node) for i, node in enumerate(program.model.graph) if node.op_type in _INTEGERS)
    found = ((i, node, reduction(program, node, node.op_type)) for i, node in nodes)
    return {i: _count for i, node, what in found if what is not None and _pays(program, node, what)}


def _pays(program: Program, node: ir.Node, what: Reduction) -> bool:
    """Whether what is reduced are truth values as integers, so many that it takes time, and so few that it is exact."""
    cast = what.of.producer()
    truth = cast.inputs[0] if is_a(cast, "Cast") else None
    known = program.term(truth)
    is_of_truth = known is not None and known.type.dtype == "bool" and data_of(program, truth) is None
    is_slow = what.dtype in _INTEGERS[node.op_type]
    return is_of_truth and is_slow and what.is_exact and elements(what.shape) >= LEAST


def _count(draft: Draft, node: ir.Node) -> bool:
    """Reduce truth values as floating-point numbers, and cast what that gives."""
    (integers, *axes), made = node.inputs, draft.nodes("count")
    cast = None if integers is None else integers.producer()
    assert cast is not None
    assert cast.inputs[0] is not None
    truth, to = cast.inputs[0], cast.attributes["to"].as_int()
    numbers = made.cast(truth, ir.DataType.FLOAT)
    count = made.node(node.op_type, [numbers, *(a for a in axes if a is not None)], list(node.attributes.values()))
    result = made.cast(count, to)
    return draft.replace(node, made, [result])
