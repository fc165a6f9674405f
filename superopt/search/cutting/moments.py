"""What norms are made of where they are written out: means on their way to what they were taken of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from superopt.onnx_io.program import Program, Step
from superopt.operators.declared import Declared
from superopt.operators.layout import Expand, Reshape
from superopt.operators.reductions import Reduction
from superopt.term import subterms

NEAR = 20
"""How many steps apart a value and its mean meet at most: further apart they are in no piece together."""


@dataclass(frozen=True)
class _Made:
    """What a value is made of element by element, or what was reduced for it; and those on the way since, if it was."""

    of: frozenset[str]
    way: frozenset[str] = frozenset()
    met: bool = False
    """Whether it is made, element by element, of what met what it is a reduction of."""


def moments(program: Program, run: range) -> tuple[set[str], set[str]]:
    """The values of a run from reductions on up to where they meet, element by element, what they are reductions of;
    and what is made element by element after that.

    An image whose channels are scaled by what a network makes of their means is no such place.
    """
    made: dict[str, _Made] = {}
    made_at = {name: number for number in run for name in program.steps[number].outputs}
    found, after = set[str](), set[str]()
    for number in run:
        step = program.steps[number]
        inputs = [n for n in step.inputs if n in program.values and not program.values[n].constant]
        given = [made.get(name, _Made(frozenset([name]))) for name in inputs]
        result, met = _after(step, given)
        found |= met
        near = frozenset(name for name in result.of if number - made_at.get(name, run.start) <= NEAR)
        made.update((name, _Made(near, result.way, result.met)) for name in step.outputs)
        after.update(step.outputs if result.met else ())
    return found, after


def _after(step: Step, given: Sequence[_Made]) -> tuple[_Made, frozenset[str]]:
    """What a step's values are made of, and what met in it what it is a reduction of."""
    own = frozenset(step.outputs)
    reduced, others = [m for m in given if m.way], [m for m in given if not m.way]
    way = _all(m.way for m in reduced)
    if any(isinstance(t.operator, Reduction) for term in step.terms for t in subterms(term)):
        return _Made(_all(m.of for m in given), own), frozenset()
    operators = [term.operator for term in step.terms]
    if reduced and not others and all(isinstance(op, Reshape | Expand) for op in operators):
        return _Made(_all(m.of for m in reduced), way | own), frozenset()
    if not all(isinstance(op, Declared) and op.pointwise for op in operators):
        return _Made(own), frozenset()
    beside = _all(m.of for m in others)
    if reduced and beside.isdisjoint(_all(m.of for m in reduced)):
        return _Made(_all(m.of for m in reduced), way | own), frozenset()
    return _Made(own | beside, met=bool(reduced) or any(m.met for m in others)), way


def _all(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*sets)
