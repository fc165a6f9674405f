"""Models whose loops compute of all rows at once, after the last turn, what turns compute only for what they give.

The layer behind a recurrent cell, whose numbers are collected and never come into the next turn, is one product of all
turns' states. It is the other half of `ahead`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import onnx_ir as ir

from superopt.dim import Shape
from superopt.errors import InvalidModel
from superopt.onnx_io.at_once.all_turns import AllTurns
from superopt.onnx_io.at_once.forms import FORMS
from superopt.onnx_io.at_once.rows import Row
from superopt.onnx_io.bodies import bodies, kept_states, states_of
from superopt.onnx_io.branches import lifted
from superopt.onnx_io.choices import BODY, Branch
from superopt.onnx_io.files import load
from superopt.onnx_io.importer import understand
from superopt.onnx_io.naming import deep_values, rename
from superopt.onnx_io.program import Program
from superopt.onnx_io.said import held, scanned
from superopt.onnx_io.skeleton import clone
from superopt.onnx_io.surgery import output_of, pass_on
from superopt.onnx_io.turns.ahead import FREE, fits
from superopt.onnx_io.turns.slices import turns_of
from superopt.relations import are_equal
from superopt.substitution import symbols


def behind(program: Program) -> ir.Model | None:
    """The model with what turns of its loops compute of one value, for what they give alone, computed of all turns
    after them, in a copy; None where there is no such thing. Only of loops that surely have a turn: one without gives
    values of no known sizes. The interface stays as it is.
    """
    loops = bodies(program)
    if not loops or program.model.ir_version < 4:
        return None
    model = clone(program.model)
    nodes, taken = list(model.graph), {v.name or "" for v in deep_values(model.graph)}
    moved = [_Behind(program, model, taken).move(nodes[b.position], b) for b in loops]
    return model if any(moved) else None


_LESS = {"Scan": 0, "Loop": 1}
"""So many outputs of a body come before those that a loop gives: whether it goes on."""


class _Made(NamedTuple):
    """A value of a turn, what stands for it in all turns, and what nodes of a body compute of that."""

    of: ir.Value
    stand_in: ir.Value
    result: ir.Value
    nodes: list[ir.Node]


class _Behind:
    """Moves nodes out of a body of a copy of a model, to where they compute all turns."""

    def __init__(self, program: Program, model: ir.Model, taken: set[str]) -> None:
        self._program, self._model, self._taken = program, model, taken
        self._turns = AllTurns(program, model, taken)

    def move(self, loop: ir.Node, branch: Branch) -> bool:
        """Move what turns compute for what they give alone behind a loop, where that takes time; whether that was."""
        body, graph = loop.attributes[BODY].as_graph(), self._model.graph
        self._turns.enter(body, kept_states(loop, body))
        for node in body:  # what is the same in all turns
            self._turns.take(node)
        places = _collected(self._program, graph, loop, body)
        chains = {i: chain for i in places if not _is_free(chain := self._chain(body, body.outputs[i]))}
        inner = self._understood(branch) if chains else None
        known = {} if inner is None else self._of_one_shape(loop, body, inner)
        found = {i: made for i, chain in chains.items() if (made := self._behind(chain, known))}
        graph.insert_after(loop, self._turns.placed(made.result for made in found.values()))
        for place, made in found.items():
            body.outputs[place] = output_of(body, made.of, list(body.outputs), self._taken)
            _take_over(loop.outputs[place - _LESS[loop.op_type]], made, self._taken)
            for node in made.nodes:
                body.remove(node, safe=True)
        return bool(found)

    def _chain(self, body: ir.Graph, value: ir.Value) -> list[ir.Node]:
        """The nodes that compute an output of a body, each of one value that turns have their own of, and for nothing
        else; the last first.
        """
        chain: list[ir.Node] = []
        while (node := value.producer()) is not None and node.graph is body and node.op_type in FORMS:
            own = self._own(node)
            uses = len(value.uses()) + sum(v is value for v in body.outputs)
            if uses != 1 or len(node.outputs) != 1 or len(own) != 1:
                break
            chain.append(node)
            (value,) = own
        return chain

    def _own(self, node: ir.Node) -> list[ir.Value]:
        """What a node of a body reads that is not the same in all turns, as far as is known."""
        read = [v for v in node.inputs if v is not None and v not in self._turns.rows]
        return [v for v in read if v.graph is not self._model.graph and held(v) is None]

    def _understood(self, branch: Branch) -> Program | None:
        """The body of a loop as a program of its own: it tells the sizes of what a turn computes."""
        try:
            model = lifted(self._program, branch)
            return None if model is None else understand(load(model))
        except InvalidModel:
            return None

    def _of_one_shape(self, loop: ir.Node, body: ir.Graph, inner: Program) -> dict[str, Shape]:
        """The shapes of values of a body, by name, that are the same in all turns: of sizes that it is given, not
        those of states that may differ from what these begin with.
        """
        sizes = {size for size, (name, _) in inner.size_sources.items() if name in inner.inputs}
        begins = dict(zip(body.inputs, loop.inputs, strict=True))
        for state, _ in states_of(loop, body):
            before, now = self._turns.row(begins[state]), inner.term(state)
            if before is not None and now is not None:
                both = zip(before.shape, now.shape, strict=True)
                sizes -= {size for old, new in both if not are_equal(old, new) for size in symbols(new)}
        return {name: v.shape for name, v in inner.values.items() if all(symbols(d) <= sizes for d in v.shape)}

    def _behind(self, chain: list[ir.Node], known: Mapping[str, Shape]) -> _Made | None:
        """As much of a chain as can be, of what all turns have of one shape; None where that would be no gain, or no
        form of it is known.
        """
        while not _is_free(chain):
            (of,), stand_in, rows = self._own(chain[-1]), ir.Value(), self._turns.rows
            if (shape := known.get(of.name or "")) is None:
                chain = chain[:-1]
                continue
            rows[of] = Row(stand_in, shape, 1)
            fails = next((node for node in reversed(chain) if not self._turns.take(node)), None)
            (of_row, *made) = [rows.pop(v) for v in (of, *(n.outputs[0] for n in reversed(chain))) if v in rows]
            if fails is None:
                return _Made(of, stand_in, made[-1].value, chain) if fits([of_row], made[-1:]) else None
            chain = chain[: chain.index(fails)]
        return None


def _is_free(chain: Iterable[ir.Node]) -> bool:
    """Whether nodes take hardly less time for all rows at once."""
    return all(node.op_type in FREE for node in chain)


def _collected(program: Program, graph: ir.Graph, loop: ir.Node, body: ir.Graph) -> list[int]:
    """The outputs of a body that are put one behind the other along first axes; none of a Loop without a turn."""
    less = _LESS[loop.op_type]
    if loop.op_type == "Scan":
        first = len(loop.inputs) - scanned(loop)
        told = loop.attributes.get("scan_output_axes")
        is_known = told is None or not any(told.as_ints())
    else:
        first, times = len(loop.inputs) - 1, turns_of(program, graph, loop, body)
        is_known = isinstance(times, int) and times > 0
    return [i + less for i, v in enumerate(loop.outputs) if is_known and v.name and i + less >= first]


def _take_over(old: ir.Value, made: _Made, taken: set[str]) -> None:
    """Let what is computed behind a loop be what the loop gave, by the same name; it is computed of what that gives."""
    new, name = made.result, old.name
    pass_on(old, new)
    old.replace_all_uses_with(new, replace_graph_outputs=True)
    made.stand_in.replace_all_uses_with(old)
    rename(old, taken)
    old.type, old.shape, new.name = made.of.type, None, name
