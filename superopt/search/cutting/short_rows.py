"""What is computed in short rows for each number, which is turned as a whole (`rewriting/finders/fronted.py`)."""

from __future__ import annotations

from superopt.onnx_io.program import Program, Step
from superopt.operators.declared import Declared
from superopt.operators.definitions.short_rows import SHORT
from superopt.operators.layout import Expand
from superopt.operators.picks import Slice
from superopt.term import Term


def short_rows(program: Program, run: range) -> frozenset[int]:
    """The steps of a run, by number, that compare a number with a short constant row, and those that compute something
    of each element of what these give, or take a part of each row.
    """
    found, made = set[int](), set[str]()
    for number in run:
        step = program.steps[number]
        if all(map(_is_of_short_rows, step.terms)) and (made.intersection(step.inputs) or _begins(step)):
            found.add(number)
            made.update(step.outputs)
    return frozenset(found)


def _is_of_short_rows(x: Term) -> bool:
    op, size = x.operator, x.shape[-1] if x.type.rank > 1 else None
    if not isinstance(op, Declared) or not isinstance(size, int) or not 1 < size < SHORT:
        return False
    return op.pointwise or (isinstance(op, Slice) and op.axis == x.type.rank - 1)


def _begins(step: Step) -> bool:
    """Whether a number is repeated for its row, beside a constant with a number for each place in it."""
    return any(
        any(not i.constant and _is_repeated(i) for i in term.inputs)
        and any(i.constant and not _is_repeated(i) for i in term.inputs)
        for term in step.terms
    )


def _is_repeated(x: Term) -> bool:
    """Whether all places of a row have the same."""
    return isinstance(x.operator, Expand) and x.type.rank - 1 not in x.operator.axes
