"""Whether a plan spares enough products for what is copied of values of which some places are read."""

from __future__ import annotations

import onnx_ir as ir

from superopt.dim import Shape
from superopt.onnx_io.otherwise.unread.cuts import Need
from superopt.onnx_io.otherwise.unread.each import PRODUCTS
from superopt.onnx_io.otherwise.unread.plan import Plan, there
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import shape_of
from superopt.onnx_io.said import is_a, number
from superopt.substitution import TYPICAL, elements

LEAST, DEAR = 2**16, 16
"""So many products have to be spared, as many for each node that takes something out, and so many for each element that
it copies.
"""

DEAREST = ("Conv", *PRODUCTS)
"""What multiplies so often that it is worth it."""


def pays(program: Program, plan: Plan) -> bool:
    """Whether enough products are spared for what is copied."""
    each, spared, cost = list(program.model.graph), 0.0, float(LEAST)
    for i, (of, read) in plan.nodes.items():
        node = each[i]
        given = shape_of(program, node.outputs[0])
        if of is not None and given is not None and is_a(node, *DEAREST):
            spared += (_at(given, of, every=True) - _at(given, of)) * _each(program, node)
        for place, need in read.items():
            shape = shape_of(program, node.inputs[place])
            if shape is not None and there(program, plan, node.inputs[place], need.axis) != need:
                cost += LEAST + DEAR * _at(shape, need)
    return spared >= cost


def _each(program: Program, node: ir.Node) -> int:
    """How often a node multiplies for an element of what it gives."""
    if is_a(node, "Einsum"):
        return 1  # at least
    first, second = (shape_of(program, value) or () for value in node.inputs[:2])
    columns = first[:1] if is_a(node, "Gemm") and number(node, "transA", 0) else first[-1:]
    return elements(second[1:] if is_a(node, "Conv") else columns)


def _at(shape: Shape, need: Need, every: bool = False) -> int:
    """How many elements a value has at some places, or at `every` one."""
    size, others = shape[need.axis], (*shape[: need.axis], *shape[need.axis + 1 :])
    known = size if isinstance(size, int) else TYPICAL
    return elements(others) * (known if every else need.places.many)
