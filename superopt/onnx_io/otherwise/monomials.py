"""Models in which products of columns that are joined are computed side by side: all first factors times all second.

`PolynomialFeatures` is exported by skl2onnx as one choice of columns and one product for each feature, hundreds of
nodes that compute one number each, and a join of these. Of twenty columns the 210 products of two take 110 µs in
onnxruntime 1.32; two gathers of 210 columns and one product take 5. Pieces of models are far shorter than such joins,
so this is told by the whole program. Each product is multiplied in the order in which it was, so it is the same number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple, TypeAlias

import onnx_ir as ir

from superopt.onnx_io.naming import by_name
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.program import Program, Step
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import concat_axis
from superopt.operators.layout import Reshape
from superopt.operators.picks import Slice, Take
from superopt.operators.pointwise import Mul
from superopt.relations import are_equal, is_one
from superopt.term import Term

FEWEST, MOST_FACTORS, DEEPEST = 4, 8, 32
"""So many products are worth it; what multiplies more columns, or more of one after the other, is none."""


class Column(NamedTuple):
    """One column of a value with rows."""

    of: str
    number: int


class Product(NamedTuple):
    """Two columns, or products of columns of one value, that are multiplied."""

    one: Column | Product
    other: Column | Product


Part: TypeAlias = Column | Product | None
"""What a part of a join is; None of one that is something else."""


def monomials(program: Program) -> dict[int, Put]:
    """How to compute side by side what is joined of products of columns, by the places of such joins."""
    joins = {s.node: s for s in program.steps if s.node.op_type == "Concat" and s.terms}
    joins = {node: s for node, s in joins.items() if len(node.inputs) >= FEWEST}
    columns = _Columns(program) if joins else None
    puts: dict[int, Put] = {}
    for i, node in enumerate(program.model.graph):
        if columns is not None and node in joins and (parts := _parts(columns, joins[node])) is not None:
            puts[i] = partial(_join_anew, parts)
    return puts


def _parts(columns: _Columns, step: Step) -> list[Part] | None:
    """What a join of columns joins; None of others, and where too few neighbours are products in the same order."""
    at = concat_axis(step.node)
    if step.terms[0].type.rank != 2 or at not in (1, -1):
        return None
    parts = [columns.of_value(v.name or "") for v in step.node.inputs if v is not None]
    return parts if any(len(run) >= FEWEST and isinstance(run[0], Product) for run in _runs(parts)) else None


def _runs(parts: Sequence[Part]) -> list[list[Part]]:
    """Parts that multiply columns of the same value in the same order, in a row."""
    return [list(run) for _, run in groupby(parts, lambda part: part and (_leaves(part)[0].of, _order(part)))]


def _leaves(part: Column | Product) -> list[Column]:
    return [part] if isinstance(part, Column) else [*_leaves(part.one), *_leaves(part.other)]


def _order(part: Column | Product) -> tuple[object, ...]:
    """In which order a part is multiplied."""
    return () if isinstance(part, Column) else (_order(part.one), _order(part.other))


class _Columns:
    """Which columns the values of a program multiply."""

    def __init__(self, program: Program) -> None:
        self._made, self._values = program.made, program.values
        self._known: dict[Term, Part] = {}

    def of_value(self, name: str) -> Part:
        """The columns that make up a single one, multiplied; None of what is something else."""
        return self._of(self._values[name], DEEPEST) if name in self._values else None

    def _of(self, term: Term, deepest: int) -> Part:
        if term not in self._known:
            found = self._found(term, deepest - 1) if deepest else None
            self._known[term] = found if found and len(_leaves(found)) <= MOST_FACTORS else None
        return self._known[term]

    def _found(self, term: Term, deepest: int) -> Part:
        op = term.operator
        if term.is_variable:
            return self._of(self._made[term.label], deepest) if term.label in self._made else None
        if isinstance(op, Reshape):
            before, after = term.inputs[0].shape, term.shape
            rows = bool(before and after) and are_equal(before[0], after[0])
            return self._of(term.inputs[0], deepest) if rows and all(map(is_one, (*before[1:], *after[1:]))) else None
        if isinstance(op, Mul):
            one, other = (self._of(i, deepest) for i in term.inputs)
            alike = one is not None and other is not None and _leaves(one)[0].of == _leaves(other)[0].of
            return Product(one, other) if one is not None and other is not None and alike else None
        return self._column(term, 0) if len(term.shape) == 2 and is_one(term.shape[1]) else None

    def _column(self, term: Term, number: int) -> Column | None:
        """Where a column of what is chosen of columns was; None of what is none that the model names."""
        chosen = self._made.get(term.label, term) if term.is_variable else term
        op = chosen.operator
        if isinstance(op, Take) and op.axis == 1:
            return self._column(chosen.inputs[0], op.indices[number])
        if isinstance(op, Slice) and op.axis == 1 and isinstance(op.start, int):
            return self._column(chosen.inputs[0], op.start + number)
        return Column(term.label, number) if term.is_variable else None


def _join_anew(parts: Sequence[Part], draft: Draft, node: ir.Node) -> bool:
    """Let what gives the products that are in a row side by side be joined instead of each of them."""
    made, named = draft.nodes("products"), by_name(draft.model.graph)
    given, inputs = iter(node.inputs), list[ir.Value | None]()
    for run in _runs(parts):
        own = [next(given) for _ in run]
        alike = [part for part in run if part is not None]
        inputs += [_beside_each_other(made, named, alike)] if len(alike) >= FEWEST else own
    joined = made.joined([v for v in inputs if v is not None], 1)
    return draft.replace(node, made, [joined])


def _beside_each_other(made: NewNodes, named: Mapping[str, ir.Value], run: Sequence[Column | Product]) -> ir.Value:
    """Columns of a value, or products of such that are multiplied in the same order, in one matrix."""
    products = [part for part in run if isinstance(part, Product)]
    if products:
        sides = [part.one for part in products], [part.other for part in products]
        return made.node("Mul", [_beside_each_other(made, named, side) for side in sides])
    columns = [part for part in run if isinstance(part, Column)]
    numbers = made.integers([column.number for column in columns])
    return made.node("Gather", [named[columns[0].of], numbers], [ir.AttrInt64("axis", 1)])
