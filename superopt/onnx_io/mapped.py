"""Models without turns that carry nothing: a Scan that does with each row what it does with all gives way to that.

skl2onnx computes distances so, one row of the training data after the other, for each neighbour or kernel of a Gaussian
process: three hundred turns for what is one subtraction and one sum. Where the states of a Scan leave each turn as they
came into it, a turn knows of its own row alone, and what it computes of single elements or reduces is computed of all
rows at once, along one more axis in front (as JAX's `vmap` does, Bradbury et al. 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir
from onnx_ir.convenience import get_const_tensor

from superopt.dim import Dim, Shape, are_equal, is_one, product, substitute, symbols
from superopt.errors import InvalidModel, Undecided
from superopt.onnx_io.files import load
from superopt.onnx_io.naming import rename, values
from superopt.onnx_io.program import Program
from superopt.onnx_io.skeleton import clone, opset_of
from superopt.onnx_io.surgery import bury, let_go, pass_on
from superopt.operators import CATALOGUE

MOST_TIMES, MOST_AT_ONCE = 32, 2**20
"""What turns compute on the way takes this many times what they give, at most, and of one row of all symbolic sizes so
many elements: all of it is in memory at once.
"""

SIZES = (1, 1024)
"""Of symbolic ones, at which that is asked."""

ELEMENTWISE = frozenset(cls.onnx for cls in CATALOGUE.values() if cls.pointwise and not cls.domain) - {"PRelu"}
"""What computes each element of its own, of inputs that broadcast to each other. Slopes do only to what they are of."""

REDUCES = frozenset({"ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceSumSquare"})

_OWN = ("", "ai.onnx")


class Row(NamedTuple):
    """What a value of a turn is outside, the shape that it has in a turn, and how many turns stand in front of it; None
    where it is the same in all.
    """

    value: ir.Value
    shape: Shape
    turns: Dim | None


def mapped(program: Program) -> ir.Model | None:
    """The model with all that its Scans compute row by row computed at once, in a copy; None where there is no such
    Scan. The interface stays as it is.
    """
    places = [i for i, n in enumerate(program.model.graph) if _carries_nothing(n)]
    if not places or opset_of(program.model) < 9:  # before it, they had an axis of batches
        return None
    model = clone(program.model)
    nodes, taken = list(model.graph), {v.name or "" for graph in model.graphs() for v in values(graph)}
    done = [_Turns(program, model, taken).put_in_place(nodes[i]) for i in places]
    if not any(done):
        return None
    try:
        return load(model)
    except InvalidModel:
        return None  # a form that is not foreseen; the Scan is carried through


def _carries_nothing(node: ir.Node) -> bool:
    """Whether a node is a Scan over first axes whose states leave each turn as they came."""
    if node.op_type != "Scan" or node.domain not in _OWN or not {"body", "num_scan_inputs"} <= set(node.attributes):
        return False
    others = [a for name, a in node.attributes.items() if name not in ("body", "num_scan_inputs")]
    if any(a.type != ir.AttributeType.INTS or any(a.as_ints()) for a in others):  # other axes, or the last row first
        return False
    body, states = node.attributes["body"].as_graph(), _states(node)
    return all(_itself(v) is body.inputs[i] for i, v in enumerate(body.outputs[:states]))


def _states(node: ir.Node) -> int:
    """How many of its inputs a Scan carries from turn to turn."""
    return len(node.inputs) - node.attributes["num_scan_inputs"].as_int()


def _itself(value: ir.Value) -> ir.Value:
    """What a value is a copy of."""
    while (node := value.producer()) is not None and node.op_type == "Identity" and node.inputs[0] is not None:
        value = node.inputs[0]
    return value


class _Turns:
    """The turns of a Scan, taken at once."""

    def __init__(self, program: Program, model: ir.Model, taken: set[str]) -> None:
        self._program, self._model, self._taken = program, model, taken
        self._rows: dict[ir.Value, Row] = {}
        self._nodes: list[ir.Node] = []

    def put_in_place(self, scan: ir.Node) -> bool:
        """Put what computes all turns where a Scan is; whether that could be."""
        body = scan.attributes["body"].as_graph()
        try:
            if not self._enter(scan, body) or not all(map(self._take, body)):
                return False
            results = self._results(body, _states(scan))
        except Undecided:
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
        self._model.graph.insert_before(scan, [*self._nodes, *copies])
        read, names = let_go(scan), [v.name for v in scan.outputs]
        for old, copy in zip(scan.outputs, copies, strict=True):
            pass_on(old, copy.outputs[0])
            old.replace_all_uses_with(copy.outputs[0], replace_graph_outputs=True)
        self._model.graph.remove(scan)
        for name, copy in zip(names, copies, strict=True):
            copy.outputs[0].name = name
        bury(self._model, dict.fromkeys([*read, *held, *(c.outputs[0] for c in copies)]))

    def _enter(self, scan: ir.Node, body: ir.Graph) -> bool:
        """Let the body's inputs be what comes into the Scan; whether all of that is known."""
        states = _states(scan)
        for i, (inner, outer) in enumerate(zip(body.inputs, scan.inputs, strict=True)):
            row = self._row(outer)
            if row is None or (i >= states and not row.shape):
                return False
            self._rows[inner] = Row(row.value, row.shape[1:], row.shape[0]) if i >= states else row
        return True

    def _row(self, value: ir.Value | None) -> Row | None:
        """What a value of a turn is outside; None where its shape is not known."""
        if value is None or value in self._rows:
            return None if value is None else self._rows[value]
        if (held := get_const_tensor(value)) is not None:
            return Row(value, tuple(held.shape.numpy()), None)
        known = self._program.values.get(value.name or "")
        return None if known is None else Row(value, known.shape, None)

    def _results(self, body: ir.Graph, states: int) -> list[ir.Value] | None:
        """What a Scan gives; None where it takes not much more to compute it turn by turn."""
        given = [self._row(v) for v in body.outputs]
        rows = [r for i, r in enumerate(given) if r is not None and (r.turns is None) is (i < states)]
        apart = [r for r in self._rows.values() if r.turns is not None]
        if len(rows) < len(given) or len(rows) == states or not apart:
            return None
        fits = all(_elements(r, 1) <= MOST_AT_ONCE for r in apart)
        fits = fits and all(_elements(r, n) <= MOST_TIMES * _elements(rows[-1], n) for r in apart for n in SIZES)
        return [r.value for r in rows] if fits else None

    def _take(self, node: ir.Node) -> bool:
        """Compute a node in all turns; False where it is none that can be."""
        if node.op_type == "Constant" and (held := get_const_tensor(node.outputs[0])) is not None:
            value = self._new("Constant", [], list(node.attributes.values()))
            self._rows[node.outputs[0]] = Row(value, tuple(held.shape.numpy()), None)
            return True
        rows = [row for v in node.inputs if (row := self._row(v)) is not None]
        if node.domain not in _OWN or len(node.outputs) != 1 or not rows or len(rows) < len(node.inputs):
            return False
        made: Row | None = None
        if node.op_type == "Identity":
            made = rows[0]
        elif node.op_type in ELEMENTWISE:
            made = self._elementwise(node, rows)
        elif node.op_type in REDUCES:
            made = self._reduced(node, rows)
        if made is not None:
            self._rows[node.outputs[0]] = made
        return made is not None

    def _elementwise(self, node: ir.Node, rows: Sequence[Row]) -> Row | None:
        """What broadcasts does so behind the axis of turns."""
        rank = max(len(r.shape) for r in rows)
        shape = [_broadcast([r.shape[-a] for r in rows if len(r.shape) >= a]) for a in range(rank, 0, -1)]
        if None in shape:
            return None
        turns = next((r.turns for r in rows if r.turns is not None), None)
        inputs = [r.value if r.turns is None else self._aligned(r, rank) for r in rows]
        new = self._new(node.op_type, inputs, list(node.attributes.values()))
        return Row(new, tuple(d for d in shape if d is not None), turns)

    def _aligned(self, row: Row, rank: int) -> ir.Value:
        """A value of all turns whose turn has this rank."""
        more = rank - len(row.shape)
        return self._over(row.value, "Unsqueeze", range(1, more + 1), 13) if more else row.value

    def _reduced(self, node: ir.Node, rows: Sequence[Row]) -> Row | None:
        """What is reduced in each turn, along axes that are known."""
        row, rank, told = rows[0], len(rows[0].shape), node.attributes.get("axes")
        held = get_const_tensor(node.inputs[1]) if len(rows) > 1 and node.inputs[1] is not None else None
        if row.turns is None or (told is None and held is None):
            return None
        listed = told.as_ints() if told is not None else held.numpy().tolist() if held is not None else ()
        axes, kept = sorted(a % rank for a in listed), _number(node, "keepdims", 1)
        if not axes:
            return None
        shape = [1 if a in axes else d for a, d in enumerate(row.shape) if kept or a not in axes]
        since = 13 if node.op_type == "ReduceSum" else 18
        new = self._over(row.value, node.op_type, [a + 1 for a in axes], since, [ir.AttrInt64("keepdims", kept)])
        return Row(new, tuple(shape), row.turns)

    def _over(
        self, x: ir.Value, op_type: str, axes: Sequence[int], since: int, more: Sequence[ir.Attr] = ()
    ) -> ir.Value:
        """An operator along axes, which are an input since some opset."""
        if opset_of(self._model) < since:
            return self._new(op_type, [x], [ir.AttrInt64s("axes", list(axes)), *more])
        held = ir.AttrTensor("value", ir.tensor(np.array(axes, np.int64)))
        return self._new(op_type, [x, self._new("Constant", [], [held])], more)

    def _new(self, op_type: str, inputs: Sequence[ir.Value], attributes: Sequence[ir.Attr]) -> ir.Value:
        node = ir.Node("", op_type, inputs, attributes)
        self._nodes.append(node)
        made = node.outputs[0]
        made.name = "turns"
        rename(made, self._taken)
        return made


def _broadcast(dims: Sequence[Dim]) -> Dim | None:
    """The size along an axis of what broadcasts; None where these differ."""
    several = [d for d in dims if not is_one(d)]
    return None if any(not are_equal(d, several[0]) for d in several) else several[0] if several else 1


def _elements(row: Row, size: int) -> int:
    """The elements of all turns where symbolic sizes are this one."""
    whole = product((row.turns or 1, *row.shape))
    found = substitute(whole, dict.fromkeys(symbols(whole), size))
    assert isinstance(found, int)
    return found


def _number(node: ir.Node, name: str, default: int) -> int:
    return node.attributes[name].as_int() if name in node.attributes else default
