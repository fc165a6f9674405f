"""Whether each operator of a family takes something, and something takes each of its variables: else they were written
in vain.

Types alone tell, so nothing is evaluated. What an operator takes may be made by another one first, as halves are cut
from what was joined; no further is looked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from superopt.demands import assuming
from superopt.enumerate.family import Family, Pattern
from superopt.enumerate.types import Types
from superopt.errors import ParseError, SuperoptError, UsageError
from superopt.operators.reader import read_term
from superopt.operators.symbolic import conditions
from superopt.term import Term, variable
from superopt.text import Form


def demand_applicable(family: Family) -> None:
    """Raise `ParseError`, with its place and what is wrong with it, for an operator that applies neither to what is
    given, nor to what one other operator makes of that; and `UsageError` for a variable that none takes beside these.
    """
    types = Types(family)
    leaves = [types.number(leaf.shape) for leaf in (*family.given, *family.constants)]
    for free in (True, False):  # what counts as no operator first: others take what it makes
        patterns = [p for p in family.operators if p.free is free]
        leaves = list(dict.fromkeys([*leaves, *_made(types, patterns, leaves)]))
    for pattern in family.operators:
        if next(_made(types, [pattern], leaves), None) is None:
            why = next(_refusals(pattern, family), "it asks for sizes that no tensor has")
            raise ParseError(f"{pattern.sexp.place}: the operator {pattern} applies to nothing in the family: {why}")
    for given in family.given:
        own = types.number(given.shape)
        if not any(own in a.inputs for a in types.applications) and not _is_taken(types, own, leaves):
            raise UsageError(f"family {family.name}: no operator takes ?{given.label} of {_sizes(given)}")


def _is_taken(types: Types, own: int, known: Sequence[int]) -> bool:
    """Whether an operator takes a type beside another one that is known."""
    pairs = [pair for other in known for pair in ((own, other), (other, own))]
    return any(types.applied(p, pair) for p in types.family.operators if len(p.holes) == 2 for pair in pairs)


def _made(types: Types, patterns: Sequence[Pattern], known: Sequence[int]) -> Iterator[int]:
    """The types of what operators make of terms of the known ones."""
    for pattern in patterns:
        for inputs in product(known, repeat=len(pattern.holes)):
            yield from (types.applications[i].result for i in types.applied(pattern, inputs))


def _refusals(pattern: Pattern, family: Family) -> Iterator[str]:
    """What is wrong with an operator over what is given, that of the highest ranks first."""
    if not isinstance(pattern.sexp, Form):
        return
    shapes = sorted(dict.fromkeys(leaf.shape for leaf in family.given), key=len, reverse=True)
    unmet = []
    for chosen in product(shapes, repeat=len(pattern.holes)):
        names = {hole: variable(hole, shape) for hole, shape in zip(pattern.holes, chosen, strict=True)}
        given = ", ".join(f"?{hole} of {_sizes(v)}" for hole, v in names.items())
        try:
            with assuming():
                asked = conditions(read_term(pattern.sexp, names))
            unmet.append(f"it asks for {' and '.join(map(str, asked))}, with {given}")
        except SuperoptError as error:
            yield f"{str(error).removeprefix(f'{pattern.sexp.place}: ')}, with {given}"
    yield from () if pattern.on else unmet


def _sizes(term: Term) -> str:
    return f"({' '.join(map(str, term.shape))})"
