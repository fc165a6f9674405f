"""What tests of folding have in common: graphs as texts of rules, and what they fold to."""

from __future__ import annotations

from superopt.api import definitions
from superopt.demands import assuming
from superopt.operators.meanings import SPELLINGS
from superopt.rules.format import parse_file
from superopt.search.rewriting.fold import Folding
from superopt.search.rewriting.rewrites import Fold
from superopt.term import Term, replace_all, variable, variables


def folded(term: Term, *names: str) -> list[Term]:
    return [made for _, made in Folding([Fold(n) for n in names or (*definitions(), *SPELLINGS)]).at(term)]


def terms(text: str) -> tuple[Term, Term]:
    """The sides of a rule, over 32-bit floats."""
    (rule,) = parse_file(text).rules
    typed = {v: variable(v.label, v.shape, "float32") for v in variables(*rule.source, *rule.target)}
    with assuming():
        before, after = replace_all((*rule.source, *rule.target), typed)
    return before, after


def rules_in(text: str) -> list[str]:
    return [f"(rule {part}" for part in text.split("(rule ")[1:]]


def named(text: str) -> str:
    return text.split()[1]
