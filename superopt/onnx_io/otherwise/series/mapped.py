"""Models without turns that carry nothing: a Scan that does with each row what it does with all gives way to that.

skl2onnx computes distances so, one row of the training data after the other, for each neighbour or kernel of a Gaussian
process: three hundred turns for what is one subtraction and one sum. Where the states of a Scan leave each turn as they
came into it, a turn knows of its own row alone, and what it computes of it is computed of all rows at once
(`at_once/forms.py`), along one more axis in front (as JAX's `vmap` does, Bradbury et al. 2018).
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from superopt.errors import SuperoptError
from superopt.onnx_io.at_once.all_turns import AllTurns
from superopt.onnx_io.at_once.rows import Row
from superopt.onnx_io.naming import itself, rename
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import is_a, scanned
from superopt.onnx_io.skeleton import opset_of
from superopt.onnx_io.surgery import bury, replace_node
from superopt.substitution import elements

MOST_TIMES, MOST_AT_ONCE = 32, 2**20
"""What turns compute on the way takes this many times what they give, at most, and of one row of all symbolic sizes so
many elements: all of it is in memory at once.
"""

SIZES = (1, 1024)
"""Of symbolic ones, at which that is asked."""


def mapped(program: Program) -> dict[int, Put]:
    """How to compute at once all that Scans compute row by row, by their places."""
    if opset_of(program.model) < 9:  # before it, they had an axis of batches
        return {}
    places = [i for i, node in enumerate(program.model.graph) if _carries_nothing(node)]
    return {i: lambda draft, scan: _Placing(program, draft).put_in_place(scan) for i in places}


def _carries_nothing(node: ir.Node) -> bool:
    """Whether a node is a Scan over first axes whose states leave each turn as they came."""
    if not is_a(node, "Scan") or not {"body", "num_scan_inputs"} <= set(node.attributes):
        return False
    others = [a for name, a in node.attributes.items() if name not in ("body", "num_scan_inputs")]
    if any(a.type != ir.AttributeType.INTS or any(a.as_ints()) for a in others):  # other axes, or the last row first
        return False
    body, states = node.attributes["body"].as_graph(), _states(node)
    return all(itself(v) is body.inputs[i] for i, v in enumerate(body.outputs[:states]))


def _states(node: ir.Node) -> int:
    """How many of its inputs a Scan carries from turn to turn."""
    return len(node.inputs) - scanned(node)


class _Placing:
    """Puts what computes all turns where a Scan is."""

    def __init__(self, program: Program, draft: Draft) -> None:
        self._model, self._taken = draft
        self._turns = AllTurns(program, *draft)

    def put_in_place(self, scan: ir.Node) -> bool:
        """Put what computes all turns where a Scan is; whether that could be."""
        body = scan.attributes["body"].as_graph()
        try:
            if not self._enter(scan, body) or not all(map(self._turns.take, body)):
                return False
            results = self._results(body, _states(scan))
        except SuperoptError:  # sizes that are not told apart, or that are none where they are asked for
            return False
        if not results:
            return False
        held = list(body.initializers.values())
        for value in held:
            body.initializers.pop(value.name or "")
            rename(value, self._taken)
            self._model.graph.register_initializer(value)
        self._replace(scan, results, held)
        return True

    def _replace(self, scan: ir.Node, results: Sequence[ir.Value], held: Sequence[ir.Value]) -> None:
        """Let copies of results be what a Scan gave, by the same names; of what it held, what is read stays."""
        copies = [ir.Node("", "Identity", [new]) for new in results]
        self._model.graph.insert_before(scan, [*self._turns.made.nodes, *copies])
        replace_node(self._model, scan, [copy.outputs[0] for copy in copies])
        bury(self._model, [*held, *(copy.outputs[0] for copy in copies)])

    def _enter(self, scan: ir.Node, body: ir.Graph) -> bool:
        """Let the body's inputs be what comes into the Scan; whether all of that is known."""
        states = _states(scan)
        for i, (inner, outer) in enumerate(zip(body.inputs, scan.inputs, strict=True)):
            row = self._turns.row(outer)
            if row is None or (i >= states and not row.shape):
                return False
            self._turns.rows[inner] = Row(row.value, row.shape[1:], row.shape[0]) if i >= states else row
        return True

    def _results(self, body: ir.Graph, states: int) -> list[ir.Value] | None:
        """What a Scan gives; None where it takes not much more to compute it turn by turn."""
        given = [self._turns.row(v) for v in body.outputs]
        rows = [r for i, r in enumerate(given) if r is not None and (r.turns is None) is (i < states)]
        apart = [r for r in self._turns.rows.values() if r.turns is not None]
        if len(rows) < len(given) or len(rows) == states or not apart:
            return None
        fits = all(_elements(r, 1) <= MOST_AT_ONCE for r in apart)
        most = {n: MOST_TIMES * sum(_elements(r, n) for r in rows[states:]) for n in SIZES}
        fits = fits and all(_elements(r, n) <= most[n] for r in apart for n in SIZES)
        return [r.value for r in rows] if fits else None


def _elements(row: Row, size: int) -> int:
    """The elements of all turns where symbolic sizes are this one."""
    return elements((1 if row.turns is None else row.turns, *row.shape), size)
