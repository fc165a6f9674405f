"""What pairs of equal terms come to that hold under a condition only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from superopt.enumerate.checkpoint import Verdict
from superopt.enumerate.climb import REFUTED, learn_conditions, refute
from superopt.enumerate.judges import first_learned, first_refuted
from superopt.operators.pointwise import Relu
from superopt.operators.reader import read_term
from superopt.rules.match import instance_of
from superopt.term import Term, variable
from superopt.text import read
from superopt.verify.check import verify
from superopt.verify.prove import Proved

SHAPES = {"x": (7, 10, 8, 9), "y": (7, 5, 8, 9), "f": (10, 5, 3, 3), "g": (5, 5, 3, 3), "a": (3, 5), "b": (3, 5)}
NAMES = {label: variable(label, shape) for label, shape in SHAPES.items()}


def term(text: str) -> Term:
    (sexp,) = read(text)
    return read_term(sexp, NAMES)


GROUPS = (
    term("(concat 1 (conv :pads (1 1 1 1) :group 2 ?x ?f) (conv :pads (1 1 1 1) ?y ?g))"),
    term("(conv :pads (1 1 1 1) :group 3 (concat 1 ?x ?y) (concat 0 ?f ?g))"),
)
"""Convolutions beside each other are one where all groups have as many channels that go out."""

UNTRUE = (term("(add ?a ?b)"), term("(mul ?a ?b)"))


def learned(texts: Sequence[str]) -> Iterable[Verdict]:
    return map(first_learned, texts)


def test_a_condition_is_learned_for_what_does_not_prove_without() -> None:
    counts: dict[str, int] = {}
    found, left = learn_conditions({GROUPS: "the laws do not tell"}, learned, counts, None)
    assert not left
    assert counts == {"proved under a condition": 1, "refuted": 0, "unknown": 0}
    assert [c.relation for c in found[0].conditions] == ["divides", "="]
    assert isinstance(verify(found[0]), Proved)
    assert not isinstance(verify(replace(found[0], conditions=found[0].conditions[:1])), Proved)


def test_a_rule_is_an_instance_of_one_under_the_same_conditions_only() -> None:
    (rule,), _ = learn_conditions({GROUPS: REFUTED}, learned, {}, None)
    assert instance_of(rule, rule)
    assert not instance_of(replace(rule, conditions=rule.conditions[:1]), rule)


def test_what_has_a_witness_is_refuted_and_nothing_is_learned_of_it() -> None:
    open_ = refute({UNTRUE: "the laws do not tell"}, lambda texts: map(first_refuted, texts), None)
    assert open_ == {UNTRUE: REFUTED}
    counts: dict[str, int] = {}
    assert learn_conditions(open_, learned, counts, None) == ([], open_)
    assert counts == {"proved under a condition": 0, "refuted": 1, "unknown": 0}


def test_of_very_many_the_smallest_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("superopt.enumerate.climb.MOST_LEARNED", 1)
    larger = (Relu()(GROUPS[0]), Relu()(GROUPS[1]))
    found, left = learn_conditions({larger: REFUTED, GROUPS: REFUTED}, learned, {}, None)
    assert (len(found), list(left)) == (1, [larger])
