"""Recurrent networks without gates, step by step: for onnxruntime that is faster where states are large.

Its RNN (1.32) computes hyperbolic tangents number by number, in some 18 ns each, and those of a Tanh side by side.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.order import is_read
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import is_a, number, text
from superopt.onnx_io.surgery import bury

MOST_STEPS = 64
"""Of more steps a network is left: each is some nodes that are read, searched and written."""

FEWEST_NUMBERS = 256
"""In smaller states, of all rows together, starting the nodes of a step takes longer than its numbers."""

BOUNDS = {"Tanh": FEWEST_NUMBERS, "Relu": 2 * FEWEST_NUMBERS, "Sigmoid": FEWEST_NUMBERS}
"""What may be between the steps, operators of the same name, and from how many numbers on their steps are faster: an
RNN is slow at tangents and logistic functions alone.
"""

TURNED = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""Of each direction, whether it goes from the last step to the first."""


class _Way(NamedTuple):
    """One direction: `s ← bound(x·of + s·matrix + more)`."""

    turned: bool
    bound: str
    of: Array
    matrix: Array
    more: Array | None


class _Network(NamedTuple):
    """A network: of rows of so many steps, (steps, rows, width), and what it begins with, (ways, rows, width)."""

    x: ir.Value
    first: ir.Value | None
    steps: int
    rows: int
    ways: list[_Way]


def unrolled(program: Program) -> dict[int, Put]:
    """How to compute the steps of networks by nodes of their own, by the places of those that compute all."""
    found = of_nodes(program, lambda node: _network(program, node) if is_a(node, "RNN") else None)
    return dict.fromkeys(found, partial(_put, program))


def fewest_numbers(bounds: Iterable[str]) -> int:
    """From how many numbers of a state on steps of their own are faster than an RNN of these bounds."""
    return max(BOUNDS[bound] for bound in bounds)


def _network(program: Program, node: ir.Node) -> _Network | None:
    """What a node computes, where its sizes and weights are known, and its states large."""
    x, w, r, b, lengths, first = (*node.inputs, None, None, None)[:6]
    known = program.term(x)
    if x is None or known is None or known.type.dtype != "float32" or lengths is not None:
        return None
    (steps, rows, _), data = known.shape, [data_of(program, v) for v in (w, r, b)]
    ways = _ways(node, *data) if b is None or data[2] is not None else None
    if not ways or not isinstance(steps, int) or not isinstance(rows, int) or not 0 < steps <= MOST_STEPS:
        return None
    fewest = fewest_numbers([way.bound for way in ways])
    return _Network(x, first, steps, rows, ways) if rows * len(ways[0].matrix) >= fewest else None


def _ways(node: ir.Node, w: Array | None, r: Array | None, b: Array | None) -> list[_Way] | None:
    """The directions of a node; None where it does in them what is not foreseen."""
    said = node.attributes
    turned = TURNED[text(node, "direction", "forward")]
    bounds = list(said["activations"].as_strings()) if "activations" in said else ["Tanh"] * len(turned)
    if w is None or r is None or not set(bounds) <= BOUNDS.keys() or "clip" in said or number(node, "layout", 0):
        return None
    more = [None] * len(turned) if b is None else b.reshape(len(turned), 2, -1).sum(axis=1)
    return [_Way(*way) for way in zip(turned, bounds, w.swapaxes(1, 2), r.swapaxes(1, 2), more, strict=True)]


def _put(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Let each step be nodes of its own."""
    made, network = draft.nodes("step"), _network(program, node)
    if network is None:
        return False
    states = [_states(made, network, number) for number in range(len(network.ways))]
    sizes = made.integers([network.steps, 1, network.rows, -1])
    every = [made.node("Reshape", [made.joined(one, 0), sizes]) for one in states]
    last = [one[0 if way.turned else -1] for one, way in zip(states, network.ways, strict=True)]
    found = zip(node.outputs, (made.joined(every, 1), made.joined(last, 0)), strict=False)
    results = [value if is_read(old) else made.node("Identity", [value]) for old, value in found]
    draft.replace(node, made, results)
    bury(draft.model, results)
    return True


def _states(made: NewNodes, network: _Network, number: int) -> list[ir.Value]:
    """The states of the direction of this number, (1, rows, width), from the first step to the last."""
    way, along = network.ways[number], [ir.AttrInt64("axis", 0)]
    given, matrix = made.node("MatMul", [network.x, made.held(way.of.copy())]), made.held(way.matrix.copy())
    if way.more is not None:
        given = made.node("Add", [given, made.held(way.more)])
    first, found = network.first, dict[int, ir.Value]()
    state = None if first is None else made.node("Gather", [first, made.integers([number])], along)
    steps = range(network.steps)
    for step in reversed(steps) if way.turned else steps:
        term = made.node("Gather", [given, made.integers([step])], along)
        if state is not None:
            term = made.node("Add", [term, made.node("MatMul", [state, matrix])])
        found[step] = state = made.node(way.bound, [term])
    return [found[step] for step in steps]
