"""What takes so little time that most of it is that of its start: that is worth to be computed with others at once."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from superopt.dim import product
from superopt.onnx_io.otherwise.linear import PRODUCTS
from superopt.onnx_io.program import Program

MOST, MOST_ROWS, MOST_OUTER = 2**14, 8, 32
"""Where one product multiplies more often than this, or more rows, the time that it takes is not that of its start;
what is computed otherwise has no more elements. Of rows of one number there may be more: no weights are prepared.
"""

MOST_CONVOLVED = {3: 2**18, 4: 2**15}
"""So often a convolution multiplies at most, by the rank of what it gives. Of signals runtimes compute all groups as
fast as each; of images with few channels groups took longer from 8 branches of 16 by 16 on.
"""

MOST_ALONE = 2**12
"""What has no weights has no more elements: of more they are computed as fast one by one."""

_WEIGHING = frozenset({"Add", "Mul", "Neg", "Sub", "Transpose", "Unsqueeze"})
"""What stands around a sum of products of which matrices are made."""


def is_small(program: Program, node: ir.Node, has_weights: bool) -> bool:
    """Whether what a node of a network computes takes little time."""
    multiplies, convolves = node.op_type in PRODUCTS, node.op_type == "Conv"
    names = [v.name or "" for v in (*node.outputs, *node.inputs[: 2 if convolves else 1]) if v is not None]
    shapes = [program.values[name].shape for name in names if name in program.values]
    if len(shapes) < len(names) or any(not isinstance(d, int) for shape in shapes for d in shape):
        return False
    inner = shapes[1][-1:] if multiplies else shapes[2][1:] if convolves else ()
    taken, rows = product((*shapes[0], *inner)), product(shapes[0][:-1]) if multiplies else 1
    most = MOST if has_weights else MOST_ALONE
    most = MOST_CONVOLVED.get(len(shapes[0]), most) if convolves else most
    most_rows = MOST_ROWS if inner != (1,) else MOST_OUTER
    return isinstance(taken, int) and taken <= most and isinstance(rows, int) and rows <= most_rows


def is_weighed_sum(program: Program, nodes: Sequence[ir.Node]) -> bool:
    """Whether what nodes of a network compute is a sum of products with what is repeated for it, in the order in which
    they run: all of several such sums are a product of matrices, however large what each would write is.
    """
    sums = [node for node in nodes if node.op_type in ("ReduceMean", "ReduceSum")]
    products = [v.producer() for node in sums for v in node.inputs[:1] if v is not None]
    of = next((node for node in nodes if node in products and node.op_type == "Mul"), None)
    if of is None or len(sums) > 1 or any(node not in sums and node.op_type not in _WEIGHING for node in nodes):
        return False
    read = [program.term(v) for v in (*of.inputs, *of.outputs) if v is not None]
    *factors, whole = [None if v is None else product(v.shape) for v in read]
    return any(isinstance(size, int) and isinstance(whole, int) and size < whole for size in factors)
