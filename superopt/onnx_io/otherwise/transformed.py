"""Models that transform few numbers at a time: by a product with waves, as they would by a fast transform of many.

Networks that filter pictures by their frequencies transform rows and columns of a few places (GFNet, Rao et al. 2021,
14; AFNO, Guibas et al. 2021; the Fourier units of LaMa, Suvorov et al. 2021). onnxruntime 1.32 transforms one row after
the other, and lays waves out again for each of a length that is no power of two: of 3,072 rows of 14 complex numbers
its DFT takes 10 ms, of 32 9, of 64 25, and the product, with the axis moved to the end and back, 0.5, 5.4 and 9.
A search finds that too, for one of a network's transforms after the other; of few numbers the product is faster
everywhere, and rounds no more than the transform does.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.floats import FLOAT
from superopt.evaluate import evaluate
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import is_a
from superopt.operators.fourier import Dft
from superopt.operators.waves import Waves
from superopt.substitution import elements
from superopt.term import Term, make

MOST = 64
"""Of more numbers than these a search tells which is faster, and what it rounds."""

LEAST = 512
"""What has fewer elements than these, where each open size is one, takes less time than the nodes around the product
do to start.
"""


class _Transform(NamedTuple):
    """Of how many axes what is transformed is, and how: so many numbers of so many parts to so many waves."""

    rank: int
    how: Dft
    n: int
    parts: int
    to: int


def transformed(program: Program) -> dict[int, Put]:
    """How to multiply by waves, by the places of what transforms few numbers."""
    if not any(is_a(node, "DFT") for node in program.model.graph):
        return {}
    terms = program.made
    found = of_nodes(program, lambda node: _transform(node, terms) if is_a(node, "DFT") else None)
    return {i: partial(_put, of) for i, of in found.items()}


def _transform(node: ir.Node, terms: Mapping[str, Term]) -> _Transform | None:
    """What a node transforms, where that is few numbers of 32 bits."""
    known, x = terms.get(node.outputs[0].name or ""), node.inputs[0]
    if known is None or x is None or known.type.dtype != "float32" or not isinstance(how := known.operator, Dft):
        return None
    shape = known.inputs[0].shape
    n, parts, to = shape[how.axis], shape[-1], known.shape[how.axis]
    if not isinstance(n, int) or not isinstance(parts, int) or not isinstance(to, int) or not 1 < n <= MOST:
        return None
    if elements(shape) < LEAST:
        return None
    return _Transform(len(shape), how, n, parts, to)


def _put(of: _Transform, draft: Draft, node: ir.Node) -> bool:
    """The product, along the last axis but that of the parts, which is the axis's own place or where it is moved to."""
    rank, how, n, parts, to = of
    x = node.inputs[0]
    if x is None:
        return False
    waves = evaluate(make(Waves(n, to, parts, how.inverse)), FLOAT, {})
    order = [a for a in range(rank - 1) if a != how.axis] + [how.axis, rank - 1]
    is_last, as_there = how.axis == rank - 2, [0] * (rank - 2)  # sizes that stay as they are, whatever they are
    made = draft.nodes("transformed")
    rows = made.reshaped(x if is_last else made.transposed(x, order), [*as_there, n * parts])
    multiplied = made.node("MatMul", [rows, made.held(waves.astype(np.float32))])
    result = made.reshaped(multiplied, [*as_there, to, 2])
    if not is_last:
        result = made.transposed(result, [order.index(a) for a in range(rank)])
    return draft.replace(node, made, [result])
