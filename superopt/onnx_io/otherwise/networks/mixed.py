"""Models that mix what several layers give by weights of each row: mixed before these layers, which are one then.

A mixture of low-rank experts (DCN-Mix, Wang et al. 2021) stacks the results of four layers, all scaled by the same row,
and multiplies them by shares: `Σ_e g_e·s·(v_e·U_e + b) = s·([g_1·v_1, …]·[U_1; …] + Σ_e g_e·b)`. What is weighed are
the few numbers of which each result is made, and one matrix multiplies all.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.order import is_read_once
from superopt.onnx_io.otherwise.linear import Layer, layer_of
from superopt.onnx_io.otherwise.networks.columns import FLOATS
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import concat_axis, is_a, number
from superopt.onnx_io.skeleton import opset_of
from superopt.relations import equal_shapes, is_one

LEAST_OPSET = 11
"""Before it, axes were not counted from the last one."""

LEAST_OF_ONE_AXIS = 13
"""Before it, a softmax was of all axes from one on."""


class _Scaled(NamedTuple):
    """A layer, and what its rows are scaled by, if they are."""

    layer: Layer
    scale: ir.Value | None


class _Mixture(NamedTuple):
    """Layers, by what all of them are scaled, if they are, and a column of weights for each row of them."""

    layers: list[Layer]
    scale: ir.Value | None
    weights: ir.Value


def mixed(program: Program) -> dict[int, Put]:
    """How to mix before layers, by the places of what mixes what they give."""
    if opset_of(program.model) < LEAST_OPSET:
        return {}
    return dict.fromkeys(of_nodes(program, partial(_mixture, program)), partial(_put, program))


def _mixture(program: Program, node: ir.Node) -> _Mixture | None:
    """What a node mixes: results of layers that are wider than what they are made of, and that nothing else reads."""
    stack, weights = node.inputs if is_a(node, "MatMul") else (None, None)
    joined = stack.producer() if stack is not None and len(stack.uses()) == 1 else None
    known = [program.term(v) for v in (stack, weights) if v is not None]
    if joined is None or weights is None or len(known) < 2 or not is_a(joined, "Concat"):
        return None
    if known[0] is None or known[1] is None or known[0].type.rank != 3 or known[0].type.dtype not in FLOATS:
        return None
    along_last = concat_axis(joined) in (-1, 2) and known[1].type.rank == 3 and is_one(known[1].shape[-1])
    if not along_last or not equal_shapes(known[0].shape[:1], known[1].shape[:1]):
        return None
    rows = [_unsqueezed(program, v) for v in joined.inputs]
    found = [scaled for row in rows if row is not None and (scaled := _scaled(program, row)) is not None]
    if len(found) < max(len(rows), 2) or any(one.scale is not found[0].scale for one in found):
        return None
    layers = [one.layer for one in found]
    (inner, width), *others = [layer.matrix.shape for layer in layers]
    is_wider = inner < width and all(shape == (inner, width) for shape in others)
    return _Mixture(layers, found[0].scale, weights) if is_wider else None


def _unsqueezed(program: Program, value: ir.Value | None) -> ir.Value | None:
    """The rows of which a value is a column each, if nothing else reads the value."""
    node = None if value is None else value.producer()
    below = node.inputs[0] if is_a(node, "Unsqueeze", "Reshape") else None
    known = [program.term(v) for v in (value, below)]
    if value is None or known[0] is None or known[1] is None or len(value.uses()) > 1 or value.is_graph_output():
        return None
    whole, less = known[0].shape, known[1].shape
    return below if len(less) == 2 and is_one(whole[-1]) and equal_shapes(whole[:-1], less) else None


def _scaled(program: Program, value: ir.Value) -> _Scaled | None:
    """The layer that gives rows, and perhaps what scales these, if nothing else reads what is computed."""
    node, ways = value.producer(), list[tuple[ir.Value | None, ir.Value | None]]()
    if is_a(node, "Mul"):
        one, other = node.inputs
        ways = [(one, other), (other, one)]
    for of, scale in ways or [(value, None)]:
        found = layer_of(program, of) if of is not None else None
        if found is None or program.is_constant(found.rows):
            continue
        read = [value, *(n.outputs[0] for n in found.nodes)]
        are_alone = all(map(is_read_once, read))
        if are_alone and (scale is None or _are_alike(program, scale, value)):
            return _Scaled(found, scale)
    return None


def _are_alike(program: Program, one: ir.Value, other: ir.Value) -> bool:
    """Whether two values have the same shape."""
    known = [program.term(v) for v in (one, other)]
    return known[0] is not None and known[1] is not None and equal_shapes(known[0].shape, known[1].shape)


def _put(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Weigh the rows of all layers, multiply them by all matrices, and scale the result."""
    found = _mixture(program, node)
    if found is None:  # what another one changed
        return False
    made, layers = draft.nodes("mixed"), found.layers
    inner = layers[0].matrix.shape[0]
    beside = made.joined([layer.rows for layer in layers], 1)
    apart = made.reshaped(beside, [-1, len(layers), inner])
    weighed = made.node("Mul", [apart, found.weights])
    rows = made.reshaped(weighed, [-1, len(layers) * inner])
    result = made.node("MatMul", [rows, made.held(np.concatenate([layer.matrix for layer in layers]))])
    result = _with_added(made, result, found)
    if found.scale is not None:
        result = made.node("Mul", [result, found.scale])
    result = made.over(result, "Unsqueeze", [-1])
    return draft.replace(node, made, [result])


def _with_added(made: NewNodes, product: ir.Value, mixture: _Mixture) -> ir.Value:
    """A product, and what layers add, by their weights; by none where all add the same and these are shares."""
    rows = [layer.added for layer in mixture.layers]
    if (none := next((row for row in rows if row is not None), None)) is None:
        return product
    added = [np.zeros_like(none) if row is None else row for row in rows]
    softmax = mixture.weights.producer()
    if all((row == added[0]).all() for row in added) and softmax is not None and _shares(softmax, made.opset):
        return made.node("Add", [product, made.held(added[0].copy())])
    weights = made.over(mixture.weights, "Squeeze", [-1])
    return made.node("Add", [product, made.node("MatMul", [weights, made.held(np.stack(added))])])


def _shares(node: ir.Node, opset: int) -> bool:
    """Whether a node gives shares of each row's columns, which stand along the second of three axes."""
    return is_a(node, "Softmax") and opset >= LEAST_OF_ONE_AXIS and number(node, "axis", -1) in (1, -2)
