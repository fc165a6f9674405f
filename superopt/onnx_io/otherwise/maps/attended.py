"""Deformable attention that takes rows of channels: the neighbours of all places, and one product for each query.

GridSample looks each channel up by itself, a number at a time, and what it finds is stacked, multiplied and summed:
onnxruntime 1.32 takes as long for these as for the lookup. The values of such attention have their channels beside each
other, until they are made to maps. So rows of these are taken as they are, and what is weighed and summed is a product
of a row and a matrix. All that is taken is many times as large as what is given: so that it stays in the caches, some
queries are computed in each turn of a Scan.
"""

from __future__ import annotations

from functools import partial
from math import prod

import onnx_ir as ir

from superopt.dim import product
from superopt.onnx_io.naming import by_name
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.order import is_read_once
from superopt.onnx_io.otherwise.maps.deformable import Attention, attention
from superopt.onnx_io.otherwise.maps.laid import Digit, are_alike, laid, merged
from superopt.onnx_io.otherwise.maps.neighbours import Neighbours
from superopt.onnx_io.otherwise.maps.turning import turning
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import shape_of, told
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import is_a

LEAST_CHANNELS, LEAST_POINTS, LEAST_PLACES = 16, 4, 2**11
"""Of fewer channels a row takes as long as its numbers, of fewer points of a query its product takes longer than these,
and of fewer places in all, starting the nodes counts.
"""

LEAST_NUMBERS = 96
"""So many channels of points a query has at least: few of both together take up to a tenth longer in two threads."""

MOST = 2**18
"""So many elements are taken in a turn."""

FEWEST = 8
"""Where turns cannot be as long as that, they are at least this part of it; else all is computed at once."""


def attended(program: Program) -> dict[int, Put]:
    """How to attend so, by the places of what sums up."""
    graph = program.model.graph
    nodes = {v.name or "": node for node in graph if is_a(node, "GridSample") for v in node.outputs}
    if not nodes:
        return {}
    made = program.made
    read = [(i, attention(program, made, nodes, node)) for i, node in enumerate(graph) if is_a(node, "ReduceSum")]
    return {i: partial(_put, program, one) for i, one in read if one is not None and _is_worth_it(one)}


def _is_worth_it(one: Attention) -> bool:
    """Whether there are channels and places enough, at any size of a batch."""
    enough = one.channels >= LEAST_CHANNELS and one.points >= LEAST_POINTS
    enough = enough and one.channels * one.points >= LEAST_NUMBERS
    return enough and _known(one) * one.points >= LEAST_PLACES


def _known(one: Attention) -> int:
    """How many queries all heads have, of one batch where there is any number of these."""
    return prod(size for size in one.sizes if isinstance(size, int))


def _put(program: Program, one: Attention, draft: Draft, node: ir.Node) -> bool:
    """Attend by rows where what they give is summed up."""
    made, there = draft.nodes("attended"), by_name(draft.model.graph)
    near = Neighbours(program, one, made, there)
    values = made.reshaped(there[one.values], [-1, one.channels])
    summed = _summed(one, made, values, *near.rows_and_weights())
    apart = made.reshaped(summed, [*near.sizes, one.channels])
    last = _as_it_stands(program, one, node)
    if last is None:
        queries, order = len(one.sizes) - 1, list(one.order)
        perm = [*map(order.index, range(queries)), len(order), order.index(queries)]
        apart = made.transposed(apart, perm)
    put = node if last is None else there[last].producer()
    shape = shape_of(program, node.outputs[0]) if last is None else program.values[last].shape
    if shape is None or (sizes := told(shape)) is None or put is None:
        return False
    result = made.reshaped(apart, sizes)
    return draft.replace(put, made, [result])


def _as_it_stands(program: Program, one: Attention, node: ir.Node) -> str | None:
    """What is made of a sum, where that has maps and queries in the order in which they turn, and channels last."""
    own = (*one.sizes[:-1], one.channels, one.sizes[-1])
    strides = [product(own[i + 1 :]) for i in range(len(own))]
    strides.append(strides.pop(-2))  # of channels
    turned = [Digit(one.sizes[a], strides[a]) for a in one.order]
    wanted, value, made = merged([*turned, Digit(one.channels, strides[-1])]), node.outputs[0], program.made
    while is_read_once(value):
        ((user, _),) = value.uses()
        name = user.outputs[0].name or ""
        if not is_a(user, "Reshape", "Transpose", "Squeeze", "Unsqueeze") or name not in program.values:
            return None
        value, found = user.outputs[0], laid(program.values[name], made)
        if found.of == node.outputs[0].name and found.start == 0 and are_alike(found.digits, wanted):
            return name
    return None


def _summed(one: Attention, made: NewNodes, values: ir.Value, rows: ir.Value, weights: ir.Value) -> ir.Value:
    """Of `rows` of values, which each query has, the sum with these weights."""
    many, taken = _known(one), 4 * one.points * one.channels
    longest = max(1, MOST // taken)
    fit = max(n for n in range(1, min(longest, many) + 1) if many % n == 0)
    if fit == many or FEWEST * fit < longest:
        return made.node("MatMul", [weights, made.node("Gather", [values, rows], [ir.AttrInt64("axis", 0)])])
    is_open = not all(isinstance(size, int) for size in one.sizes)
    return turning(made, values, rows, weights, (fit, 4 * one.points, one.channels), is_open)
