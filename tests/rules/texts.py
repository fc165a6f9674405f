"""Rules as tests write them."""

from superopt.rules.format import parse_file
from superopt.rules.rule import Rule


def rule_of(text: str) -> Rule:
    """The one rule of a file of this text."""
    (rule,) = parse_file(text).rules
    return rule


def rule_of_body(text: str) -> Rule:
    """A rule of this body, whose name does not matter."""
    return rule_of(f"(rules :format 1) (rule r {text})")
