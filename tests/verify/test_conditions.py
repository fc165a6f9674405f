"""Conditions that rules lack are learned, weakest first, and proved."""

from __future__ import annotations

import pytest

from superopt.verify.check import execute, verify
from superopt.verify.conditions import learn
from superopt.verify.prove import Proved
from tests.rules.texts import rule_of_body

X, XY, V = "(given (?x n))", "(given (?x n) (?y n))", "(given (?x n c) (?v c))"
LEARNED: dict[str, tuple[str, set[str]]] = {
    "equal widths": (
        """(given (?a m n) (?b m r) (?c m s) (?d m (+ n r (* -1 s))))
           (from (add (concat 1 ?a ?b) (concat 1 ?c ?d))) (to (add (concat 1 ?c ?b) (concat 1 ?a ?d)))""",
        {"(= s n)"},
    ),
    "equal strides": (
        """(given (?x n c h w) (?k o c 1 1) (?l r c 1 1))
           (from (concat 1 (conv :strides (s t) ?x ?k) (conv :strides (u v) ?x ?l)))
           (to (conv :strides (s t) ?x (concat 0 ?k ?l)))""",
        {"(= s u)", "(= t v)"},
    ),
    "one group": (
        """(given (?x n (* g c) h w) (?k o c i j) (?l r c i j))
           (from (concat 1 (conv :group g ?x ?k) (conv :group g ?x ?l)))
           (to (conv :group g ?x (concat 0 ?k ?l)))""",
        {"(= g 1)"},
    ),
    "equal ratios of channels to groups": (
        """(given (?x n (* g c) h w) (?k o c i j) (?y n (* e c) h w) (?l r c i j))
           (from (concat 1 (conv :group g ?x ?k) (conv :group e ?y ?l)))
           (to (conv :group (+ g e) (concat 1 ?x ?y) (concat 0 ?k ?l)))""",
        {"(divides (+ e g) (+ o r))", "(= (* e o) (* g r))"},
    ),
    "one group, and no negative zeros beside a kernel": (
        """(given (?x n (* g c) h w) (?k o c 3 3) (?l r c a 3))
           (if (= (+ (* 2 (div (+ a -1) 2)) (* -1 a) 1) 0))
           (from (concat 1 (conv :pads (1 1 1 1) :group g ?x ?k)
                           (conv :pads ((div (+ a -1) 2) 1 (div (+ a -1) 2) 1) :group g ?x ?l)))
           (to (conv :pads (1 1 1 1) :group g ?x
                 (concat 0 ?k (pad (0 0 (div (+ 3 (* -1 a)) 2) 0 0 0 (div (+ 3 (* -1 a)) 2) 0) ?l))))""",
        {"(= g 1)", "(<= 0 (+ (div (+ (* -1 a) 1) 2) 1))", "(= (+ (* 2 (div (+ (* -1 a) 1) 2)) a 2) 3)"},
    ),
    "no sign": (f"{X} (from (abs ?x)) (to (relu ?x))", {"(nonnegative ?x)"}),
    "one sign of two": (f"{XY} (from (relu (mul ?x ?y))) (to (mul (relu ?x) ?y))", {"(nonnegative ?y)"}),
    "two signs": (
        f"{XY} (from (sqrt (mul ?x ?y))) (to (mul (sqrt ?x) (sqrt ?y)))",
        {"(nonnegative ?x)", "(nonnegative ?y)"},
    ),
    "no infinity": (f"{XY} (from (add ?y (mul ?x (expand () (scalar 0.0))))) (to ?y)", {"(finite ?x)"}),
    "no zero": (f"{XY} (from (div (mul ?x ?y) ?y)) (to ?x)", {"(nonzero ?y)"}),
}
HOPELESS = {
    "a sum under a root": f"{XY} (from (sqrt (add ?x ?y))) (to (add (sqrt ?x) (sqrt ?y)))",
    "factors in another order": "(given (?x n n) (?y n n)) (from (matmul ?x ?y)) (to (matmul ?y ?x))",
}


@pytest.mark.parametrize("what", LEARNED)
def test_the_weakest_condition_is_learned(what: str) -> None:
    text, expected = LEARNED[what]
    rule = rule_of_body(text)
    assert not isinstance(verify(rule), Proved)
    learned = learn(rule)
    assert learned is not None
    assert {str(c) for c in learned.condition} == expected


@pytest.mark.parametrize("what", LEARNED)
def test_what_is_learned_proves_and_agrees_on_other_examples(what: str) -> None:
    learned = learn(rule_of_body(LEARNED[what][0]))
    assert learned is not None
    rule = learned.rule
    verdict = verify(rule, seed=5)
    assert isinstance(verdict, Proved)
    assert verdict.laws == rule.by
    done = execute(rule.source, rule.target, rule.conditions, 6, 7, rule.facts)
    assert isinstance(done, int)
    assert done >= 3


@pytest.mark.parametrize("what", HOPELESS)
def test_where_no_condition_helps_none_is_invented(what: str) -> None:
    assert learn(rule_of_body(HOPELESS[what])) is None


def test_what_already_holds_needs_no_condition() -> None:
    learned = learn(rule_of_body(f"{XY} (from (add ?x ?y)) (to (add ?y ?x))"))
    assert learned is not None
    assert learned.condition == ()
