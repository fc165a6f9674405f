"""Sums and means over the channels of one image, as a product of a row with the matrix that the channels are.

Networks that restore pictures take a norm over the channels at each place, as NAFNet (Chen et al., ECCV 2022) and
ConvNeXt's stems do, twice in each block: the mean and that of the squares. onnxruntime 1.32 walks over an axis behind
one of a single place number by number: 1.6 ms for 32 channels of 128 by 128, where a product takes 0.2, 73 µs for 256
of 14 by 14, and 32. Of several images, and of none that is told, it does not: these stay as they are. What is added up
is the same, in another order.
"""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np
import onnx_ir as ir

from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import reduction
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.relations import is_one

LEAST = 2**15
"""Of fewer numbers it makes no difference that whole models show."""

FOLLOWING, MOST = 2**5, 2**12
"""So many numbers stand below each other at least, for a product to compute at the side of each other, of so many
channels at most.
"""


def channel_sums(program: Program) -> dict[int, Put]:
    """How to multiply by a row what is added up, by the places of what adds."""
    return {place: partial(_put, sizes) for place, sizes in of_nodes(program, partial(_sizes, program)).items()}


def _sizes(program: Program, node: ir.Node) -> tuple[int, int, tuple[int, ...]] | None:
    """How many numbers are added up for each of how many places, and the shape of the result, if all that is known."""
    what = reduction(program, node, "ReduceMean", "ReduceSum")
    if what is None or what.dtype != "float32" or program.is_constant(what.of):
        return None
    first, last = what.axes[0], what.axes[-1]
    is_run = last - first + 1 == len(what.axes) and first > 0 and all(map(is_one, what.shape[:first]))
    if not is_run or not all(isinstance(d, int) for d in what.shape):
        return None
    sizes = [d for d in what.shape if isinstance(d, int)]
    count, following = prod(sizes[first : last + 1]), prod(sizes[last + 1 :])
    if count * following < LEAST or following < FOLLOWING or not 1 < count <= MOST:
        return None
    kept = [1] * len(what.axes) if what.keeps else []
    return count, following, (*sizes[:first], *kept, *sizes[last + 1 :])


def _put(sizes: tuple[int, int, tuple[int, ...]], draft: Draft, node: ir.Node) -> bool:
    """A row of ones, or of shares, times the matrix."""
    count, following, shape = sizes
    (x, *_), made = node.inputs, draft.nodes("channels")
    if x is None:
        return False
    share = np.float32(1.0) if node.op_type == "ReduceSum" else np.float32(1.0) / np.float32(count)
    row = made.held(np.full((1, count), share, np.float32))
    y = made.node("MatMul", [row, made.reshaped(x, (count, following))])
    return draft.replace(node, made, [made.reshaped(y, shape)])
