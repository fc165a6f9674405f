"""Rows that the turns of a loop read of outer values, each turn its own one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

import onnx_ir as ir

from superopt.dim import Dim
from superopt.errors import InvalidModel
from superopt.onnx_io.naming import itself, rename
from superopt.onnx_io.program import Program
from superopt.onnx_io.said import held, is_a, number, scanned
from superopt.relations import are_equal


class Slice(NamedTuple):
    """What a turn has of an outer value, along an axis of that."""

    value: ir.Value
    outer: ir.Value
    axis: int


class Slices(ABC):
    """The slices of the outer values of a loop, of which each turn reads its own."""

    def __init__(self, loop: ir.Node, body: ir.Graph, found: Sequence[Slice]) -> None:
        self._loop, self._body, self.found = loop, body, found

    def give(self, taken: set[str], rows: Mapping[ir.Value, ir.Value], without: Container[ir.Node]) -> None:
        """Let all nodes but some read slices of values along their first axes in the place of a turn's own values."""
        for value, outer in rows.items():
            new = self._given(outer)
            new.name, new.type = value.name, value.type
            rename(new, taken)
            for user, index in tuple(value.uses()):
                if user not in without:
                    user.replace_input_with(index, new)

    @abstractmethod
    def _given(self, outer: ir.Value) -> ir.Value:
        """A slice of an outer value along its first axis."""

    @abstractmethod
    def drop_unread(self) -> None:
        """Give a turn no slices that it does not read."""


def slices_of(program: Program, graph: ir.Graph, loop: ir.Node, body: ir.Graph) -> Slices | None:
    """The slices of a loop of a main graph; None where it has none, or they may be more than it has turns."""
    made = _of_scan(program, loop, body) if loop.op_type == "Scan" else _of_loop(program, graph, loop, body)
    return made if made is not None and made.found else None


class _Scanned(Slices):
    """Slices that a Scan takes itself, all from the same end and surely as many."""

    def __init__(self, loop: ir.Node, body: ir.Graph, found: Sequence[Slice], backwards: int) -> None:
        super().__init__(loop, body, found)
        self._backwards = backwards

    def _given(self, outer: ir.Value) -> ir.Value:
        new = ir.Value()
        self._body.inputs.append(new)
        self._loop.resize_inputs(len(self._loop.inputs) + 1)
        self._loop.replace_input_with(len(self._loop.inputs) - 1, outer)
        self._say("scan_input_axes", [*_said(self._loop, "scan_input_axes"), 0])
        self._say("scan_input_directions", [*_said(self._loop, "scan_input_directions"), self._backwards])
        self._count(scanned(self._loop) + 1)
        return new

    def drop_unread(self) -> None:
        first = len(self._loop.inputs) - scanned(self._loop)
        outputs = set(self._body.outputs)
        kept = [i for i, v in enumerate(self._body.inputs) if i < first or v.uses() or v in outputs]
        inputs, given = [self._loop.inputs[i] for i in kept], [self._body.inputs[i] for i in kept]
        for name in ("scan_input_axes", "scan_input_directions"):
            told = _said(self._loop, name)
            self._say(name, [told[i - first] for i in kept if i >= first])
        for index, value in enumerate(inputs):
            self._loop.replace_input_with(index, value)
        self._loop.resize_inputs(len(inputs))
        self._body.inputs.clear()
        self._body.inputs.extend(given)
        self._count(len(inputs) - first)

    def _say(self, name: str, numbers: Sequence[int]) -> None:
        self._loop.attributes[name] = ir.AttrInt64s(name, numbers)

    def _count(self, number: int) -> None:
        self._loop.attributes["num_scan_inputs"] = ir.AttrInt64("num_scan_inputs", number)


def _said(scan: ir.Node, name: str) -> list[int]:
    """What is said of each of a Scan's slices; 0 where nothing is."""
    return list(scan.attributes[name].as_ints()) if name in scan.attributes else [0] * scanned(scan)


def _of_scan(program: Program, scan: ir.Node, body: ir.Graph) -> Slices | None:
    count = scanned(scan)
    axes, directions = _said(scan, "scan_input_axes"), _said(scan, "scan_input_directions")
    first, found, lengths = len(scan.inputs) - count, list[Slice](), list[Dim]()
    if not count or len(body.inputs) != len(scan.inputs) or {len(axes), len(directions)} != {count}:
        return None
    for i, outer in enumerate(scan.inputs[first:]):
        known = program.term(outer)
        if outer is None or known is None or not -known.type.rank <= axes[i] < known.type.rank:
            return None
        lengths.append(known.shape[axes[i]])
        if directions[i] == directions[0] and are_equal(lengths[i], lengths[0]):
            found.append(Slice(body.inputs[first + i], outer, axes[i] % known.type.rank))
    return _Scanned(scan, body, found, directions[0])


class _Taken(Slices):
    """Slices that a Loop takes by the number of its turn, of values of which these are all."""

    def _given(self, outer: ir.Value) -> ir.Value:
        node = ir.Node("", "Gather", [outer, self._body.inputs[0]], [ir.AttrInt64("axis", 0)])
        self._body.insert_before(self._body[0], node)
        return node.outputs[0]

    def drop_unread(self) -> None:
        for slice_ in self.found:
            node = slice_.value.producer()
            if node is not None and not slice_.value.uses() and not slice_.value.is_graph_output():
                self._body.remove(node, safe=True)


def _of_loop(program: Program, graph: ir.Graph, loop: ir.Node, body: ir.Graph) -> Slices | None:
    turns = turns_of(program, graph, loop, body)
    turn = body.inputs[0] if body.inputs else None
    if turns is None or turn is None or turn.shape is None or len(turn.shape):
        return None
    found = list[Slice]()
    for node in body:
        if not is_a(node, "Gather") or None in node.inputs:
            continue
        outer, at = node.inputs
        assert outer is not None
        assert at is not None
        known = program.term(outer) if outer.graph is graph else None
        axis = number(node, "axis", 0)
        if known is None or itself(at) is not turn or not -known.type.rank <= axis < known.type.rank:
            continue
        if are_equal(known.shape[axis], turns):
            found.append(Slice(node.outputs[0], outer, axis % known.type.rank))
    return _Taken(loop, body, found)


def turns_of(program: Program, graph: ir.Graph, loop: ir.Node, body: ir.Graph) -> Dim | None:
    """How many turns a Loop surely takes; None where that is not known, or a turn may say that it is the last."""
    times, goes_on = loop.inputs[0], loop.inputs[1]
    if times is None or (goes_on is not None and not _is_true(program, graph, goes_on)) or len(body.inputs) < 2:
        return None
    told = itself(body.outputs[0])
    if told is not body.inputs[1] and not _is_true(program, graph, told):
        return None
    if (name := times.name or "") in program.sizes:
        return program.sizes[name].dims.item() if program.sizes[name].dims.size == 1 else None
    numbers = _numbers(program, graph, times)
    return max(0, numbers[0]) if numbers is not None and len(numbers) == 1 else None


def _is_true(program: Program, graph: ir.Graph, value: ir.Value) -> bool:
    """Whether a value is a constant that is true."""
    numbers = _numbers(program, graph, value)
    return numbers is not None and all(numbers)


def _numbers(program: Program, graph: ir.Graph, value: ir.Value) -> list[int] | None:
    """The integers that a constant holds, of a model or of a body; None where it is none."""
    if (data := held(value)) is not None:
        return [int(n) for n in data.numpy().flat]
    if value.graph is not graph or not program.is_constant(value):
        return None
    try:
        return [int(n) for n in program.data(value.name or "").flat]
    except InvalidModel:
        return None
