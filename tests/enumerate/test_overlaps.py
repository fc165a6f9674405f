"""What two rewrites come to of which the first leads uphill: stated as one, and only then."""

from __future__ import annotations

import pytest

from superopt.dim import symbol
from superopt.enumerate.overlaps import overlaps
from superopt.enumerate.prune import MUCH
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Add, Relu
from superopt.rules.derive import Rules
from superopt.rules.format import load_rules, parse_file, print_rule
from superopt.rules.match import instance_of
from superopt.rules.rule import Rule
from superopt.rules.work import kinds_of_sizes, work
from superopt.shipped import shipped_rules
from superopt.term import variable
from superopt.verify.check import verify
from superopt.verify.prove import Proved

ASSOCIATED, SUMMED, SHARED, TRANSPOSED, ADAPTED, CONDITIONAL = parse_file("""
(rule associated (given (?x n c) (?y c h) (?z h w))
  (from (matmul (matmul ?x ?y) ?z)) (to (matmul ?x (matmul ?y ?z))))
(rule summed (given (?x n c) (?y c h) (?z c h))
  (from (add (matmul ?x ?y) (matmul ?x ?z))) (to (matmul ?x (add ?y ?z))))
(rule shared (given (?x n c) (?y c h))
  (from (add (matmul ?x ?y) (matmul ?x ?y))) (to (matmul ?x (add ?y ?y))))
(rule transposed (given (?x n c) (?y c h))
  (from (transpose (1 0) (matmul ?x ?y))) (to (matmul (transpose (1 0) ?y) (transpose (1 0) ?x))))
(rule adapted (given (?x n c) (?w c h) (?a c r) (?b r h))
  (from (add (matmul ?x ?w) (matmul (matmul ?x ?a) ?b))) (to (matmul ?x (add ?w (matmul ?a ?b)))))
(rule conditional (given (?x n c) (?y c h) (?z h w)) (if (= n c))
  (from (matmul (matmul ?x ?y) ?z)) (to (matmul ?x (matmul ?y ?z))))
""").rules
"""Of which `adapted`: adapters of low rank (Hu et al. 2022) are merged into the weight beside them."""


def test_products_of_low_rank_are_merged_into_the_weight_beside_them() -> None:
    found = overlaps([ASSOCIATED, SUMMED], [], [], most=4)
    assert any(instance_of(ADAPTED, rule) for rule in found)


@pytest.mark.parametrize("rules", [([ASSOCIATED], [SUMMED]), ([SUMMED], [ASSOCIATED])], ids=["climbing", "saving"])
def test_one_of_the_rules_may_stand_beside(rules: tuple[list[Rule], list[Rule]]) -> None:
    own, beside = rules
    assert any(instance_of(ADAPTED, rule) for rule in overlaps(own, [], beside, most=4))
    assert not overlaps([], [], [*own, *beside], most=4)


def test_the_second_may_be_an_equation_that_is_no_rule() -> None:
    x, y, z = variable("x", (2, 3)), variable("y", (3, 5)), variable("z", (3, 5))
    summed = (MatMul()(x, Add()(y, z)), Add()(MatMul()(x, y), MatMul()(x, z)))
    assert any(instance_of(ADAPTED, rule) for rule in overlaps([ASSOCIATED], [summed], [], most=4))


def test_nothing_larger_than_allowed_is_stated() -> None:
    assert not overlaps([ASSOCIATED, SUMMED], [], [], most=3)


def test_what_does_not_lead_uphill_is_left_to_the_search() -> None:
    assert overlaps([ASSOCIATED, SUMMED], [], [], most=4)
    assert not overlaps([TRANSPOSED, SUMMED], [], [], most=6)


def test_a_variable_never_stands_for_what_it_is_in() -> None:
    """x·y and x·y of one y: no y is a·b and a at once."""
    assert overlaps([ASSOCIATED, SHARED], [], [], most=6) == []


def test_overlaps_of_shipped_rules_prove_and_are_replayed_over_a_peak_only() -> None:
    (batches,) = (load_rules(path).rules for path in shipped_rules() if path.name == "batches.rules")
    rules = [rule for rule in batches if len(rule.source) == 1][::2]
    found = overlaps(rules, [], [], most=4)
    assert len(found) >= 3
    for rule in found:
        assert isinstance(verify(rule), Proved), print_rule(rule)
        kinds = kinds_of_sizes(rule.source)
        before, after = work(rule.source, kinds), work(rule.target, kinds)
        assert any(b < a for a, b in zip(before, after, strict=True)), print_rule(rule)
        assert Rules(rules).steps(rule.source, rule.target, 2, more=2) is not None, print_rule(rule)


ENLARGED, RINGED = parse_file("""
(rule enlarged (given (?x n c h w) (?y o c i j)) (from (conv ?x ?y))
  (to (conv :pads (1 1 1 1) ?x (pad (0 0 1 1 0 0 1 1) ?y))))
(rule ringed (given (?x n c h w) (?y o c i j) (?z o c (+ i (* -2 a) (* 2 b)) (+ j (* -2 p) (* 2 q))))
  (if (<= 0 (- a b)) (<= 0 (- p q))) (from (add (conv :pads (a p a p) ?x ?y) (conv :pads (b q b q) ?x ?z)))
  (to (conv :pads (a p a p) ?x (add ?y (pad (0 0 (- a b) (- p q) 0 0 (- a b) (- p q)) ?z)))))
""").rules


def test_what_holds_where_attributes_are_legal_may_be_a_part_and_says_so() -> None:
    """A kernel of more rows beside one of more columns: both are enlarged before they are one."""
    found = overlaps([ENLARGED, RINGED], [], [], most=4)
    assert any(rule.conditions for rule in found)
    for rule in found:
        assert {c.relation for c in rule.conditions} <= {"<="}
        assert isinstance(verify(rule), Proved)


def test_what_holds_at_some_sizes_only_is_never_a_part() -> None:
    assert not overlaps([CONDITIONAL, SUMMED], [], [], most=4)


def test_a_replay_is_bounded_also_where_no_sizes_that_are_tried_fit() -> None:
    """Of two tensors of n − m and m − n rows, one is always empty."""
    n, m = symbol("n"), symbol("m")
    empty = tuple(Relu()(variable(label, (size,))) for label, size in (("p", n - m), ("q", m - n)))
    before, after = (*ADAPTED.source, *empty), (*ADAPTED.target, *empty)
    assert not kinds_of_sizes(before)
    rules = Rules([ASSOCIATED, SUMMED])
    assert rules.steps(before, after, 2) is not None
    assert rules.steps(before, after, 2, much=MUCH) is None
