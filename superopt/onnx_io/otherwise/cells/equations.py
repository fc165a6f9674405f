"""The equations of ONNX's LSTM, GRU and RNN, however a model spells them.

Those are Hochreiter and Schmidhuber's (1997) with a gate that forgets (Gers et al. 2000), or with one gate for both
(Greff et al. 2017), Cho's et al. (2014), with what resets before or behind the product, and Elman's (1990).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import onnx_ir as ir

from superopt.onnx_io.otherwise.cells.affine import Affine, NotRows
from superopt.onnx_io.otherwise.cells.cell import Cell
from superopt.onnx_io.otherwise.cells.polynomial import Polynomial, operands, polynomial, product_of
from superopt.onnx_io.otherwise.cells.rows import Rows
from superopt.onnx_io.said import is_a

GATES, BOUNDS = ("Sigmoid",), ("Tanh", "Relu")
"""What gates are given by, and what bounds the other rows."""

Way: TypeAlias = "Callable[[Rows, ir.Value, ir.Value], Iterator[Cell]]"


def ways(value: ir.Value) -> tuple[Way, list[ir.Value]]:
    """What cells of one kind a value may be the state of, and what each may begin with: none where gates or candidates
    are not there, itself where that is not told by what gives the value.
    """
    node = value.producer()
    if is_a(node, *BOUNDS):
        return _rnns, [value]
    inner = _of_bounded(value) if is_a(node, "Mul") else value
    befores = list(dict.fromkeys(operands(inner))) if inner is not None and is_a(node, "Mul", "Add", "Sub") else []
    has_both = all(any(_is_given_by(v, kinds) for v in befores) for kinds in (GATES, BOUNDS))
    return _lstms if is_a(node, "Mul") else _grus, befores if has_both else []


def _of_bounded(h: ir.Value) -> ir.Value | None:
    """The memory of which a state is the product of what bounds it and a gate."""
    (one, other), bounded = _read(h), None
    for gate, value in ((one, other), (other, one)):
        if _is_given_by(gate, GATES) and _is_given_by(value, BOUNDS):
            bounded = value
    return _of(bounded)


def _lstms(rows: Rows, h: ir.Value, before: ir.Value) -> Iterator[Cell]:
    c, (o, bounded) = _of_bounded(h), _read(h)
    if c is None:
        return
    if _is_given_by(bounded, GATES):
        o, bounded = bounded, o
    found = _input_and_forget(rows, polynomial(rows, c, [before]), before)
    if found is not None:
        i, f, g = found
        gates = (i, rows.before(o), f, rows.before(g))
        for state in _may_be_states(rows, gates, h):
            yield Cell("LSTM", (h, c), (state, before), gates, (_kind(g), _kind(bounded)))


def _input_and_forget(rows: Rows, made: Polynomial, before: ir.Value) -> tuple[Affine, Affine, ir.Value] | None:
    """What gives the input and the forget gate, and the candidates, of a state of memory."""
    for g in _factors(made, BOUNDS):
        gates = _factors(made, GATES)
        for i in gates:
            for f in gates:
                if made == {product_of(f, before): 1.0, product_of(i, g): 1.0}:
                    return rows.before(i), rows.before(f), g
            if made == {(before,): 1.0, product_of(i, before): -1.0, product_of(i, g): 1.0}:
                return rows.before(i), rows.before(i).negated(), g
            if made == {(g,): 1.0, product_of(i, g): -1.0, product_of(i, before): 1.0}:
                return rows.before(i).negated(), rows.before(i), g
    return None


def _grus(rows: Rows, h: ir.Value, before: ir.Value) -> Iterator[Cell]:
    made = polynomial(rows, h, [before])
    for g in _factors(made, BOUNDS):
        for z in _factors(made, GATES):
            if made == {(g,): 1.0, product_of(g, z): -1.0, product_of(before, z): 1.0}:
                yield from _resetting(rows, h, before, rows.before(z), g)
            if made == {(before,): 1.0, product_of(before, z): -1.0, product_of(g, z): 1.0}:
                yield from _resetting(rows, h, before, rows.before(z).negated(), g)


def _resetting(rows: Rows, h: ir.Value, before: ir.Value, update: Affine, g: ir.Value) -> Iterator[Cell]:
    """Cells whose candidates are made of the state as a gate resets it."""
    candidates = rows.before(g)
    if before in candidates.parts:  # of which not all is reset
        return
    for reset in candidates.parts:
        if not is_a(reset.producer(), "Mul"):
            continue
        one, another = _read(reset)
        for r, other in ((one, another), (another, one)):
            if not _is_given_by(r, GATES):
                continue
            others = {v: m for v, m in candidates.parts.items() if v is not reset}
            rest, bounds = Affine(others, candidates.more), (_kind(g),)
            gates, matrix = (update, rows.before(r)), candidates.parts[reset]
            if other is before and matrix is not None:
                whole = Affine({**others, before: matrix}, candidates.more)
                yield Cell("GRU", (h,), (before,), (*gates, whole), bounds)
            behind = rows.of(other)
            if matrix is None and set(behind.parts) == {before}:
                yield Cell("GRU", (h,), (before,), (*gates, rest), bounds, behind)


def _rnns(rows: Rows, h: ir.Value, _: ir.Value) -> Iterator[Cell]:
    gates = (rows.before(h),)
    for state in _may_be_states(rows, gates, h):
        yield Cell("RNN", (h,), (state,), gates, (_kind(h),))


def _may_be_states(rows: Rows, gates: tuple[Affine, ...], h: ir.Value) -> list[ir.Value]:
    """What gates multiply by matrices, which is as wide as the state that they give."""
    return [v for v, m in gates[0].parts.items() if m is not None and rows.width(v) == rows.width(h)]


def _factors(made: Polynomial, kinds: tuple[str, ...]) -> list[ir.Value]:
    """What is multiplied that nodes of some kinds give."""
    return [v for v in dict.fromkeys(v for key in made for v in key) if _is_given_by(v, kinds)]


def _is_given_by(value: ir.Value | None, kinds: tuple[str, ...]) -> bool:
    return value is not None and is_a(_function(value), *kinds)


def _of(value: ir.Value | None) -> ir.Value | None:
    """What the node that gives a value reads."""
    node = None if value is None else value.producer()
    return None if node is None else node.inputs[0]


def _read(value: ir.Value) -> tuple[ir.Value, ir.Value]:
    """What the node that gives a product reads. Raises `NotRows`."""
    node = value.producer()
    read = [] if node is None else [v for v in node.inputs if v is not None]
    if len(read) != 2:
        raise NotRows
    return read[0], read[1]


def _kind(value: ir.Value) -> str:
    node = _function(value)
    assert node is not None
    return node.op_type


def _function(value: ir.Value) -> ir.Node | None:
    """The node that gives a value, or that of which it is some columns."""
    node = value.producer()
    if is_a(node, "Split", "Slice") and node.inputs[0] is not None:
        return node.inputs[0].producer()
    return node
