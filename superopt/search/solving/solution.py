"""A piece and what replaces it, as text that reads back: printed as a rule is, over the piece's canonical variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from superopt.demands import assuming
from superopt.errors import SuperoptError
from superopt.operators import Declared
from superopt.relations import equal_shapes
from superopt.rules.format import parse_file, print_rule
from superopt.rules.rule import Rule
from superopt.term import Term, replace_all, subterms

NAME = "piece"

MOST_NUMBERS = 20_000
"""Terms whose attributes hold more have no text: it would take seconds to write and to read again. As the indices of a
take are, by which exporters write strides out.
"""

Terms: TypeAlias = tuple[Term, ...]


def solution_text(before: Terms, after: Terms, variables: Sequence[Term]) -> str | None:
    """Terms and what replaces them; None where that has no text that reads back (sizes with odd names have none), and
    where it would be very long.
    """
    if _count_numbers((*before, *after)) > MOST_NUMBERS:
        return None
    try:
        text = print_rule(Rule(NAME, before, after))
        same = read_solution(text, variables) == (before, after)
    except SuperoptError:
        return None
    return text if same else None


def read_solution(text: str, variables: Sequence[Term]) -> tuple[Terms, Terms] | None:
    """What stands in a text, over variables of these labels; None where those are others, or of other shapes.

    Raises `RuleError` or `ValueError` for a text that is none.
    """
    (rule,) = parse_file(text).rules
    own = {v.label: v for v in variables}
    new = {v: own[v.label] for v in rule.given if v.label in own}
    if len(new) < len(rule.given) or not all(equal_shapes(v.shape, w.shape) for v, w in new.items()):
        return None
    try:
        with assuming():  # sizes are those of the piece, which was read
            before, after = (replace_all(side, new) for side in (rule.source, rule.target))
    except SuperoptError:  # of other types
        return None
    return before, after


def _count_numbers(terms: Terms) -> int:
    """How many numbers stand in tuples among the attributes."""
    ops = [t.operator for t in subterms(*terms) if isinstance(t.operator, Declared)]
    values = [getattr(op, f.name) for op in ops for f in op.fields]
    return sum(len(value) for value in values if isinstance(value, tuple))
