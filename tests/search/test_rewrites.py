"""Which of the rules the search is given."""

from __future__ import annotations

from superopt.rules.format import load_rules
from superopt.search.rewrites import rewrites_of
from superopt.shipped import shipped_rules

ENLARGED = next(path for path in shipped_rules() if path.stem == "enlarged")


def test_what_does_nothing_but_enlarge_kernels_is_left_out_and_what_merges_with_them_is_not() -> None:
    rules = load_rules(ENLARGED).rules
    searched = {rewrite.name for rewrite in rewrites_of(rules, [])}
    left_out = [rule for rule in rules if rule.name not in searched]
    assert {rule.name.rstrip("0123456789-") for rule in left_out} == {"conv-to-conv-pad"}
    assert any(name.startswith("add-conv-conv-to-conv-add-pad") for name in searched)
