"""Models in which products of columns that are joined are computed side by side: all first factors times all second.

`PolynomialFeatures` is exported by skl2onnx as one choice of columns and one product for each feature, hundreds of
nodes that compute one number each, and a join of these. Of twenty columns the 210 products of two take 110 µs in
onnxruntime 1.32; two gathers of 210 columns and one product take 5. Pieces of models are far shorter than such joins,
so this is told by the whole program.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import groupby
from typing import NamedTuple

import onnx_ir as ir

from superopt.dim import are_equal, is_one
from superopt.errors import InvalidModel
from superopt.onnx_io.files import load
from superopt.onnx_io.naming import deep_values
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.program import Program, Step
from superopt.onnx_io.skeleton import clone
from superopt.onnx_io.surgery import bury, let_go, pass_on
from superopt.operators.layout import Reshape
from superopt.operators.picks import Slice, Take
from superopt.operators.pointwise import Mul
from superopt.term import Term

FEWEST, MOST_FACTORS, DEEPEST = 4, 8, 32
"""So many products are worth it; what multiplies more columns, or more of one after the other, is none."""


class Column(NamedTuple):
    """One column of a value with rows."""

    of: str
    number: int


def monomials(program: Program) -> ir.Model | None:
    """The model with what it joins of products of columns computed side by side, in a copy; None where there is no such
    join. The interface stays as it is.
    """
    joins = [s for s in program.steps if s.node.op_type == "Concat" and s.terms and len(s.node.inputs) >= FEWEST]
    columns = _Columns(program) if joins else None
    found = {id(s.node): parts for s in joins if columns and (parts := _parts(columns, s)) is not None}
    if not found:
        return None
    model = clone(program.model)
    pairs = list(zip(program.model.graph, model.graph, strict=True))
    values = {v.name or "": v for v in deep_values(model.graph)}
    taken = set(values)
    for old, node in pairs:
        if id(old) in found:
            _join_anew(model, node, found[id(old)], values, taken)
    try:
        return load(model)
    except InvalidModel:
        return None  # a form that is not foreseen; the join stays


Parts = list[tuple[Column, ...]]
"""The columns that each part of a join multiplies; none of a part that is something else."""


def _parts(columns: _Columns, step: Step) -> Parts | None:
    """What a join of columns joins; None of others, and where too few neighbours are products of as many columns."""
    at = step.node.attributes["axis"].as_int() if "axis" in step.node.attributes else 1
    if step.terms[0].type.rank != 2 or at not in (1, -1):
        return None
    parts = [columns.of_value(v.name or "") for v in step.node.inputs if v is not None]
    return parts if any(len(run) >= FEWEST and kind[1] > 1 for kind, run in _runs(parts)) else None


def _runs(parts: Sequence[tuple[Column, ...]]) -> list[tuple[tuple[str, int], list[tuple[Column, ...]]]]:
    """Parts that are products of as many columns of the same value, in a row."""
    return [(kind, list(run)) for kind, run in groupby(parts, lambda p: (p[0].of if p else "", len(p)))]


class _Columns:
    """Which columns the values of a program multiply."""

    def __init__(self, program: Program) -> None:
        self._made, self._values = program.made, program.values
        self._known: dict[Term, tuple[Column, ...]] = {}

    def of_value(self, name: str) -> tuple[Column, ...]:
        """The columns that make up a single one, multiplied; none of what is something else."""
        return self._of(self._values[name], DEEPEST) if name in self._values else ()

    def _of(self, term: Term, deepest: int) -> tuple[Column, ...]:
        if term not in self._known:
            found = self._found(term, deepest - 1) if deepest else ()
            self._known[term] = found if len(found) <= MOST_FACTORS else ()
        return self._known[term]

    def _found(self, term: Term, deepest: int) -> tuple[Column, ...]:
        op = term.operator
        if term.is_variable:
            return self._of(self._made[term.label], deepest) if term.label in self._made else ()
        if isinstance(op, Reshape):
            before, after = term.inputs[0].shape, term.shape
            rows = bool(before and after) and are_equal(before[0], after[0])
            return self._of(term.inputs[0], deepest) if rows and all(map(is_one, (*before[1:], *after[1:]))) else ()
        if isinstance(op, Mul):
            both = [self._of(i, deepest) for i in term.inputs]
            return (*both[0], *both[1]) if all(both) and both[0][0].of == both[1][0].of else ()
        column = self._column(term, 0) if len(term.shape) == 2 and is_one(term.shape[1]) else None
        return () if column is None else (column,)

    def _column(self, term: Term, number: int) -> Column | None:
        """Where a column of what is chosen of columns was; None of what is none that the model names."""
        chosen = self._made.get(term.label, term) if term.is_variable else term
        op = chosen.operator
        if isinstance(op, Take) and op.axis == 1:
            return self._column(chosen.inputs[0], op.indices[number])
        if isinstance(op, Slice) and op.axis == 1 and isinstance(op.start, int):
            return self._column(chosen.inputs[0], op.start + number)
        return Column(term.label, number) if term.is_variable else None


def _join_anew(model: ir.Model, node: ir.Node, parts: Parts, values: dict[str, ir.Value], taken: set[str]) -> None:
    """Let what gives the products that are in a row side by side be joined instead of each of them."""
    made, place, inputs = NewNodes("products", taken), 0, list[ir.Value | None]()
    for (of, factors), run in _runs(parts):
        given = node.inputs[place : place + len(run)]
        place += len(run)
        inputs += [_beside_each_other(made, values[of], run)] if factors and len(run) >= FEWEST else given
    joined = made.node("Concat", [v for v in inputs if v is not None], [ir.AttrInt64("axis", 1)])
    model.graph.insert_before(node, made.nodes)
    (old,), read = node.outputs, let_go(node)
    name = old.name
    pass_on(old, joined)
    old.replace_all_uses_with(joined, replace_graph_outputs=True)
    model.graph.remove(node)
    joined.name = name
    bury(model, dict.fromkeys(read))


def _beside_each_other(made: NewNodes, x: ir.Value, run: Sequence[tuple[Column, ...]]) -> ir.Value:
    """The products of columns of a value, in one matrix."""
    numbers = zip(*([column.number for column in part] for part in run), strict=True)
    axis = ir.AttrInt64("axis", 1)
    factors = [made.node("Gather", [x, made.integers(each)], [axis]) for each in numbers]
    return reduce(lambda a, b: made.node("Mul", [a, b]), factors)
