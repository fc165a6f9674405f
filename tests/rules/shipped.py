"""The shipped rules, those about any rank at each of some, for all tests of a process."""

from functools import cache

from superopt.rules.format import load_rules
from superopt.rules.ranks import at_ranks
from superopt.rules.rule import Rule
from superopt.shipped import shipped_rules


@cache
def at_some_ranks() -> tuple[Rule, ...]:
    """All of them, made once: that takes as long as reading them."""
    return tuple(at_ranks([rule for path in shipped_rules() for rule in load_rules(path).rules]))
