"""What a rule asks of sizes besides the shapes of its variables: its own conditions, and that terms are well formed."""

from __future__ import annotations

from superopt.bounds import nonnegative
from superopt.dim import Condition, symbol_name
from superopt.operators.symbolic import conditions
from superopt.rules.rule import Rule
from superopt.substitution import symbols


def of_both_sides(rule: Rule) -> list[Condition]:
    """The rule's conditions, and what makes its terms well formed. Raises `ShapeError` where nothing would."""
    return _kept(rule, [*rule.conditions, *conditions(*rule.source, *rule.target)])


def of_the_right(rule: Rule) -> list[Condition]:
    """The rule's conditions, and what makes the right well formed wherever the left is. Raises `ShapeError`."""
    left = set(conditions(*rule.source))
    return _kept(rule, [*rule.conditions, *(c for c in conditions(*rule.target) if c not in left)])


def _kept(rule: Rule, asked: list[Condition]) -> list[Condition]:
    """Each once, without what is true of all tensors that are not empty."""
    positive = {symbol_name(d) for v in rule.given for d in v.shape}
    return [c for c in dict.fromkeys(asked) if not (symbols(c.left) | symbols(c.right) <= positive and _is_plain(c))]


def _is_plain(condition: Condition) -> bool:
    return condition.relation == "<=" and nonnegative(condition.right - condition.left)
