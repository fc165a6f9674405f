"""What enumeration starts from, as data: operators with attributes, variables and constants with shapes, sizes, depth.

A family is a text, see `families/`. Its operators are terms over holes: `(conv :pads (1 1 1 1) ?x ?k)`. Sizes are
symbols, and terms are typed over them, so that no two shapes are equal by an accident of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from superopt.arithmetic.carrier import Carrier
from superopt.arithmetic.field import FIELD, PARTIAL
from superopt.arithmetic.order import ORDER
from superopt.demands import assuming
from superopt.dim import Condition, Dim, Shape
from superopt.errors import ParseError, ShapeError
from superopt.operators.declare import CATALOGUE
from superopt.operators.reader import read_term
from superopt.operators.symbolic import conditions
from superopt.relations import are_equal
from superopt.substitution import substitute_condition, symbols
from superopt.term import Term, make, variable
from superopt.text import Atom, Form, Sexp, show

SIZES = 3
"""For each symbol: two small sizes that terms are evaluated at, and one unlike others that equations are stated at."""


@dataclass(frozen=True, eq=False)
class Pattern:
    """An operator to apply: a term over holes, in the order of their names' first use. It counts as one operator.

    Each is itself alone: whether two are equal could depend on sizes.
    """

    sexp: Sexp
    holes: tuple[str, ...]
    on: tuple[tuple[str, tuple[Dim | None, ...]], ...] = ()
    """The only shapes of holes that it is applied to; None is any size."""

    @property
    def free(self) -> bool:
        """Whether it counts as no operator: broadcasting alone."""
        return all(CATALOGUE[name].free for name in heads(self.sexp))

    def over(self, shapes: Sequence[Shape]) -> list[Term | None]:
        """Its terms over variables of these shapes, that are called as the holes; None for those that do not fit.

        What they ask of sizes is assumed.
        """
        of = dict(zip(self.holes, shapes, strict=True))
        if any(len(of[hole]) != len(only) or not all(map(_is, of[hole], only)) for hole, only in self.on):
            return []
        names = {hole: variable(hole, shape) for hole, shape in of.items()}
        if isinstance(self.sexp, Form):
            return [_made(partial(read_term, self.sexp, names))]
        operators = CATALOGUE[str(self.sexp.value)].samples(*shapes)
        return [_made(partial(make, op, tuple(names.values()))) for op in operators]

    def __str__(self) -> str:
        return show(self.sexp)


@dataclass(frozen=True)
class Family:
    """What terms are made of. `sizes` gives each symbol its `SIZES` numbers; `depth` is how many levels are usual."""

    name: str
    sizes: Mapping[str, tuple[int, ...]]
    given: tuple[Term, ...]
    constants: tuple[Term, ...]
    operators: tuple[Pattern, ...]
    depth: int

    def numbers(self, choice: int) -> dict[str, int]:
        """The sizes of one of the `SIZES` choices."""
        return {name: sizes[choice] for name, sizes in self.sizes.items()}

    def fits(self, term: Term) -> bool:
        """Whether what a term asks of sizes holds at all numbers of the family.

        How sizes of different symbols compare is no matter of numbers.
        """
        asked = conditions(term)
        choices = [self.numbers(i) for i in range(SIZES)]
        if any(c.relation == "=" or _compares(c) for c in asked):
            return False
        return all(substitute_condition(c, n) is True for c in asked for n in choices)

    def carriers(self) -> tuple[Carrier, ...]:
        """The carriers in which its terms are compared: the field, and ordered integers where something needs order."""
        names = {head for pattern in self.operators for head in heads(pattern.sexp)}
        return (PARTIAL, ORDER) if any(CATALOGUE[n].needs - FIELD.has for n in names) else (PARTIAL,)


def _compares(condition: Condition) -> bool:
    """Whether a condition is about how sizes of different symbols compare; of what both sides have it is not."""
    difference = condition.right - condition.left
    sides = {symbols(condition.left), symbols(condition.right), frozenset()}
    return len(sides) > 2 and not (condition.relation == "<=" and len(symbols(difference)) <= 1)


def heads(sexp: Sexp) -> set[str]:
    """The names of the operators of a pattern."""
    if isinstance(sexp, Atom):
        return {str(sexp.value)} if str(sexp.value) in CATALOGUE else set()
    inner = (heads(item) for item in sexp.items[1:] if isinstance(item, Form) and _is_term(item))
    return {sexp.head}.union(*inner)


def _is_term(sexp: Form) -> bool:
    first = sexp.items[0] if sexp.items else None
    return isinstance(first, Atom) and first.value in CATALOGUE


def _made(make_it: Callable[[], Term]) -> Term | None:
    try:
        with assuming():
            return make_it()
    except (ParseError, ShapeError):
        return None


def _is(size: Dim, only: Dim | None) -> bool:
    return only is None or are_equal(size, only)
