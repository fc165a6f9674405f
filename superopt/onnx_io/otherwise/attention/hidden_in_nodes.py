"""ONNX's own Attention with a constant mask, or of what came before alone: in blocks of queries with the keys they see.

As `hidden_keys.py` does it of attention that is written out. onnxruntime 1.32 computes all scores first, whatever is
hidden.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.order import is_read
from superopt.onnx_io.otherwise.attention.blocks import Block, worth
from superopt.onnx_io.otherwise.attention.hiding import HIDDEN
from superopt.onnx_io.otherwise.attention.scores import cut_out, sliced
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of, shape_of
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import input_of, is_a, number

MASK = 3
"""Which of the inputs a mask is; behind it stands what was computed before."""

WINDOWS = ("left_window_size", "right_window_size")
"""Attributes, since opset 25, of how far a query sees: of places that are others in a block."""


def hidden_in_nodes(program: Program) -> dict[int, Put]:
    """How to compute Attention in blocks, by the places of its nodes."""
    found = of_nodes(program, lambda node: _blocks(program, node) if is_a(node, "Attention") else None)
    return dict.fromkeys(found, partial(_put, program))


def _blocks(program: Program, node: ir.Node) -> list[Block] | None:
    """The blocks of a node; None where what it hides is not known, or little."""
    shapes = [s for v in node.inputs[:MASK] if (s := shape_of(program, v)) is not None]
    others = [*node.inputs[MASK + 1 :], *(v if is_read(v) else None for v in node.outputs[1:])]
    slides = any(number(node, name, -1) >= 0 for name in WINDOWS)
    if len(shapes) < MASK or any(v is not None for v in others) or slides:
        return None
    seen = _seen(program, node, [shape[-2] for shape in shapes])
    heads = (number(node, "q_num_heads", 1),) if len(shapes[0]) == 3 else ()
    width = shapes[2][-1]
    values = (width // number(node, "kv_num_heads", 1) if heads and isinstance(width, int) else width,)
    return None if seen is None else worth(~seen, (*shapes[0][:-2], *heads), values)


def _seen(program: Program, node: ir.Node, sizes: list[object]) -> Array | None:
    """Which keys each query sees of them all; None where that is not known."""
    match sizes:
        case [int(queries), int(keys), _]:
            shape = queries, keys
        case _:
            return None
    mask = input_of(node, MASK)
    data, is_causal = data_of(program, mask), number(node, "is_causal", 0)
    if (mask is not None and data is None) or (is_causal and queries != keys):
        return None
    seen = np.tri(*shape) > 0 if is_causal else np.ones(shape, bool)
    if data is not None:
        fits = data.ndim > 1 and data.shape[-1] == keys and data.shape[-2] in (1, queries)
        own = seen & np.asarray(data if data.dtype.kind == "b" else data > HIDDEN) if fits else seen
        # A row that is hidden as a whole, of one head, has shares of all its keys or none, as runtimes have it.
        return np.asarray(own.any(tuple(range(own.ndim - 2)))) if fits and own.any(-1).all() else None
    return seen


def _put(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Let a node be computed in blocks of queries, one after the other."""
    (q, k, v), blocks = node.inputs[:MASK], _blocks(program, node)
    shape, of_keys = shape_of(program, q), shape_of(program, k)
    if blocks is None or q is None or k is None or v is None or shape is None or of_keys is None:
        return False  # what another one changed
    sizes = [d for d in (shape[-2], of_keys[-2]) if isinstance(d, int)]
    made, rows = draft.nodes("seen"), list[ir.Value]()
    attributes = [a for name, a in node.attributes.items() if name != "is_causal"]
    for block in blocks:
        some = [sliced(made, q, -2, block.queries, sizes[0])]
        some += [sliced(made, each, -2, block.keys, sizes[1]) for each in (k, v)]
        mask = _mask(made, program, node, sizes, block)
        some += [] if mask is None else [mask]
        rows.append(made.node("Attention", some, attributes))
    joined = made.joined(rows, len(shape) - 2)
    node.resize_outputs(1)  # nothing reads the others
    return draft.replace(node, made, [joined])


def _mask(made: NewNodes, program: Program, node: ir.Node, sizes: list[int], block: Block) -> ir.Value | None:
    """The mask of a block, with what came later hidden where the node says so; None where it hides nothing."""
    mask = input_of(node, MASK)
    data = data_of(program, mask)
    seen = (np.tri(sizes[0], sizes[1]) > 0)[block] if number(node, "is_causal", 0) else None
    if mask is None or data is None:
        return None if seen is None or seen.all() else made.held(seen)
    if seen is None:
        return cut_out(made, mask, data.shape, block)
    own = data[..., block.queries if data.shape[-2] > 1 else slice(None), block.keys]
    return made.held(own & seen if own.dtype.kind == "b" else np.where(seen, own, own.dtype.type(-np.inf)))
