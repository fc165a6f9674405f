"""What a witness is, and what is none: rounding made large, overflow, truth values, sizes that may be 0."""

from __future__ import annotations

import pytest

from superopt.rules.match import rewrites
from superopt.term import variable
from superopt.verify.check import Refuted, verify
from superopt.verify.conditions import learn
from superopt.verify.prove import Proved
from superopt.verify.witness import find_witness
from tests.rules.texts import rule_of_body

X, XY = "(given (?x n))", "(given (?x n) (?y n))"
TENTH, SEVEN, HUGE = (f"(expand () (n) (scalar {v}))" for v in ("0.1", "0.7", "1e18"))
DIFFERENCE = f"(sub (mul (mul ?x {TENTH}) {SEVEN}) (mul ?x (mul {TENTH} {SEVEN})))"
NO_WITNESS = {
    "rounding made large": f"{X} (from (mul {DIFFERENCE} {HUGE})) (to (sub ?x ?x))",
    "rounding that is cut": f"{X} (from (sign {DIFFERENCE})) (to (sign (sub ?x ?x)))",
    "what overflows in 32 bits": f"{X} (from (mul ?x {HUGE})) (to (mul ?x (mul {HUGE} (mul {HUGE} {HUGE}))))",
    "numbers taken for truth values": f"{XY} (from (and ?x ?y)) (to (or ?x ?y))",
    "a source that is not finite": f"{XY} (from (div ?x (sub ?y ?y))) (to (sub ?x ?x))",
}


@pytest.mark.parametrize("what", NO_WITNESS)
def test_what_no_runtime_need_show_is_no_witness(what: str) -> None:
    rule = rule_of_body(NO_WITNESS[what])
    assert find_witness(rule) is None
    assert not isinstance(verify(rule), Refuted)


def test_a_size_that_may_be_zero_is_tried_at_zero() -> None:
    rule = rule_of_body(
        """(given (?a)) (if (= (* p n) (* 2 p)))
           (from (relu (pad (p p) (expand () (n) (sum (0) (expand () (n) ?a))))))
           (to (relu (pad (p p) (expand () (n) (sum (0) (expand () (2) ?a))))))"""
    )
    assert isinstance(verify(rule), Refuted)
    learned = learn(rule)
    assert learned is None or learned.condition


@pytest.mark.parametrize(
    "text",
    [
        "(given (?x)) (from (relu (transpose () ?x))) (to (relu ?x))",
        "(given (?x 2 3)) (from (relu (transpose (1 0) ?x))) (to (transpose (1 0) (relu ?x)))",
    ],
)
def test_a_rule_of_one_shape_is_executed_on_that(text: str) -> None:
    assert isinstance(verify(rule_of_body(text)), Proved)


def test_a_condition_that_divides_by_a_size_that_is_0_does_not_hold_there() -> None:
    rule = rule_of_body("(given (?x n)) (if (<= (div n p) 3)) (from (relu (pad (p p) ?x))) (to (pad (p p) (relu ?x)))")
    assert isinstance(verify(rule), Proved)
    (source,) = rule.source
    inner = source.inputs[0]
    for pads, count in ((0, 0), (1, 1)):
        x = variable("z", (3,))
        term = source.operator(inner.operator.with_sizes([pads, pads])(x))  # type: ignore[operator, attr-defined]
        assert len(list(rewrites(rule, term))) == count


def test_a_number_of_which_something_is_known_has_a_witness_too() -> None:
    text = "(given (?x n) (?a)) (if (nonnegative ?a)) (from (mul ?x (expand () ?a))) (to (add ?x (expand () ?a)))"
    assert find_witness(rule_of_body(text)) is not None


def test_sizes_that_are_all_numbers_leave_nothing_to_learn() -> None:
    assert learn(rule_of_body("(given (?x 2) (?y 2)) (from (div ?x ?y)) (to (div ?y ?x))")) is None


def test_infinities_as_numbers_end_in_a_verdict() -> None:
    verify(rule_of_body(f"{X} (from (add ?x (expand () (scalar inf)))) (to (add (expand () (n) (scalar inf)) ?x))"))
