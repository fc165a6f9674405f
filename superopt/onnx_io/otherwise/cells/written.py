"""Chains of cells as one operator of ONNX's, which computes all of their steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.dim import product
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.cells.cell import Cell
from superopt.onnx_io.otherwise.cells.chain import Chain, chain_to, chains_to, longest
from superopt.onnx_io.otherwise.cells.series import Series, series
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import told
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.surgery import replace_node, sort

MOST_TRIED = 3
"""So many chains that cannot be computed at once are looked at to each of their states: what stands in the way of the
last few stands in the way of all, mostly.
"""


def cells(program: Program) -> dict[int, Put]:
    """How to compute steps of recurrent networks by one node, by the places of what gives their last states. What reads
    the states of others follows when these are one node.
    """
    nodes, found = list(program.model.graph), dict[int, Chain]()
    seen, tried = set[ir.Value](), Counter[ir.Value]()
    for i, node in reversed(list(enumerate(nodes))):
        value = node.outputs[0] if node.outputs else None
        if value is None or value in seen or tried[value] >= MOST_TRIED:
            continue
        chains = chains_to(program, value)
        chain = longest(chains)
        if chain is not None:
            seen |= chain.inner
            found[i] = chain
        else:
            tried.update({state for one in chains for state in one.rows(one.cell.ends[0])})
    return {i: partial(_put, program) for i, chain in found.items() if not _reads(chain, seen)}


def _reads(chain: Chain, states: set[ir.Value]) -> bool:
    return any(v in states for value in chain.cell.read for v in chain.rows(value))


def _put(program: Program, draft: Draft, last: ir.Node) -> bool:
    """Let one node compute all states up to that which a node gives."""
    chain = chain_to(program, last.outputs[0])
    values = program.values
    if chain is None or any(told(values[v.name or ""].shape) is None for v in (*chain.cell.ends, *chain.cell.read)):
        return False
    cell, made = chain.cell, draft.nodes("recurrent")
    read = [series(program, made, chain.rows(v)) for v in cell.read] or [_nothing(program, made, chain)]
    results = all_steps(made, cell, read, [chain.steps[0][v] for v in cell.begins])
    ones, width = [1] * (values[last.outputs[0].name or ""].type.rank - 2), cell.gates[0].width
    every = made.reshaped(results[0], [len(chain.steps), *ones, -1, width])
    left = [made.reshaped(v, [*ones, -1, width]) for v in results[2:]]
    draft.model.graph.insert_before(last, made.nodes)
    _replace_states(draft, chain, every, left)
    sort(draft.model.graph)
    return True


def _nothing(program: Program, made: NewNodes, chain: Chain) -> Series:
    """What steps read that read nothing: a number each, which is multiplied by 0."""
    state, steps = chain.steps[0][chain.cell.begins[0]], len(chain.steps)
    rows = product(program.values[state.name or ""].shape[:-1])
    if isinstance(rows, int):
        return Series(made.held(np.zeros((steps, rows, 1), np.float32)), 1)
    row = made.reshaped(state, [1, -1, chain.cell.gates[0].width])
    first = made.node("Gather", [row, made.integers([0])], [ir.AttrInt64("axis", 2)])
    return Series(made.node("Tile", [first, made.integers([steps, 1, 1])]), 1)


def all_steps(made: NewNodes, cell: Cell, read: Sequence[Series], begins: Sequence[ir.Value]) -> Sequence[ir.Value]:
    """What one node gives for all steps of a cell: the states of each step, (steps, 1, rows, width), and those that the
    last one leaves, (1, rows, width).
    """
    x, width = [one.value for one in read], cell.gates[0].width
    whole = made.joined(x, 2)
    first = [made.reshaped(v, [1, -1, width]) for v in begins]
    given = [whole, *(made.held(data[None]) for data in _weights(cell, read)), None, *first]
    return made.several(cell.op_type, given, _said(cell), 1 + len(cell.ends))


def _replace_states(draft: Draft, chain: Chain, every: ir.Value, left: Sequence[ir.Value]) -> None:
    """Let states that something else reads be taken from what one node gives: those that `every` step gives, and what
    is left of others.
    """
    inner = {v.producer() for v in chain.inner}

    def is_read(state: ir.Value) -> bool:
        return state.is_graph_output() or any(user not in inner for user, _ in state.uses())

    states = chain.rows(chain.cell.ends[0])
    for old, new in zip(chain.cell.ends[1:], left, strict=True):
        if is_read(old) and (node := old.producer()) is not None:
            replace_node(draft.model, node, [new])
    read = [is_read(state) for state in states]
    for i, state in enumerate(states):
        node = state.producer()
        if node is None or node.graph is None or not read[i]:
            continue
        taken = draft.nodes("state")
        result = taken.node("Gather", [every, taken.held(np.array(i, np.int64))], [ir.AttrInt64("axis", 0)])
        draft.replace(node, taken, [result])


def _weights(cell: Cell, read: Sequence[Series]) -> tuple[Array, Array, Array]:
    """What a cell multiplies the series by and its state, (gates and width, width of either), and what it adds."""
    ofs, states, more = list[Array](), list[Array](), list[Array]()
    for gate in cell.gates:
        values = cell.read or cell.fed[:1]  # which no gate has among what it is made of: zeros
        rows = [(one, gate.matrix(v, one.width)) for v, one in zip(values, read, strict=True)]
        ofs.append(np.concatenate([m if one.matrix is None else one.matrix @ m for one, m in rows]))
        more.append(sum((one.more @ m for one, m in rows if one.more is not None), gate.more))
        states.append(gate.matrix(cell.begins[0], gate.width))
    behind = np.zeros(len(cell.gates) * cell.gates[0].width, np.float32)
    if cell.behind is not None:
        states[-1] = cell.behind.matrix(cell.begins[0], cell.behind.width)
        behind[-cell.behind.width :] = cell.behind.more
    w, r = (np.ascontiguousarray(np.concatenate(m, axis=1).T.astype(np.float32)) for m in (ofs, states))
    return w, r, np.concatenate([*more, behind]).astype(np.float32)


def _said(cell: Cell) -> list[ir.Attr]:
    """The attributes of the node of a chain of cells."""
    width = ir.AttrInt64("hidden_size", cell.gates[0].width)
    gates = {"LSTM": ["Sigmoid"], "GRU": ["Sigmoid"], "RNN": []}[cell.op_type]
    behind = [ir.AttrInt64("linear_before_reset", 1)] if cell.behind is not None else []
    return [width, ir.AttrStrings("activations", [*gates, *cell.bounds]), *behind]
