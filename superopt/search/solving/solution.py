"""A piece and what replaces it, as text that reads back: printed as a rule is, over the piece's canonical variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from superopt.dim import assuming, equal_shapes
from superopt.errors import SuperoptError
from superopt.rules.format import parse_file, print_rule
from superopt.rules.rule import Rule
from superopt.term import Term, replace_all

NAME = "piece"

Terms: TypeAlias = tuple[Term, ...]


def solution_text(before: Terms, after: Terms, variables: Sequence[Term]) -> str | None:
    """Terms and what replaces them; None where that has no text that reads back (sizes with odd names have none)."""
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
    if len(new) < len(rule.given) or not all(_are_of_one_shape(v, w) for v, w in new.items()):
        return None
    try:
        with assuming():  # sizes are those of the piece, which was read
            before, after = (replace_all(side, new) for side in (rule.source, rule.target))
    except SuperoptError:  # of other types
        return None
    return before, after


def _are_of_one_shape(a: Term, b: Term) -> bool:
    """Whether two terms have the same sizes, whatever their symbols are."""
    return equal_shapes(a.shape, b.shape)
