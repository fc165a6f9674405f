"""Rules about tensors of any rank: what is point-wise stands once; it matches at each; nothing else says `*`."""

from __future__ import annotations

import pytest

from superopt.errors import RuleError
from superopt.operators.layout import Expand
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.rules.exchange.json_form import parse_json, print_json
from superopt.rules.exchange.onnxscript_source import to_onnxscript
from superopt.rules.format import RuleFile, parse_file, print_rule
from superopt.rules.match import instance_of, rewrites
from superopt.rules.ranks import at_any_rank, at_rank, at_ranks
from superopt.rules.rule import Rule
from superopt.term import variable
from superopt.verify.check import verify
from superopt.verify.prove import Proved

FACTOR = """(rule factor
  (given (?x *) (?y *) (?a))
  (from (mul (add ?x ?y) (expand () ?a)))
  (to (add (mul ?x (expand () ?a)) (mul ?y (expand () ?a)))))
"""


def rule(text: str) -> Rule:
    (found,) = parse_file(text).rules
    return found


def test_such_a_rule_is_printed_as_it_is_read() -> None:
    assert print_rule(rule(FACTOR)) == FACTOR.strip() + "\n"


@pytest.mark.parametrize("rank", range(6))
def test_it_rewrites_graphs_of_every_rank(rank: int) -> None:
    x, y, a = (variable(n, [2, 7, 3, 4, 5][:r]) for n, r in (("p", rank), ("q", rank), ("r", 0)))
    number = Expand((), x.shape)(a) if rank else a
    given = rule(FACTOR) if rank else _without_broadcast()
    assert Add()(Mul()(x, number), Mul()(y, number)) in list(rewrites(given, Mul()(Add()(x, y), number)))


def _without_broadcast() -> Rule:
    text = "(rule r (given (?x *) (?y *) (?z *)) (from (mul (add ?x ?y) ?z)) (to (add (mul ?x ?z) (mul ?y ?z))))"
    return rule(text)


def test_in_json_it_is_the_same() -> None:
    file = RuleFile((rule(FACTOR),), {})
    assert parse_json(print_json(file)) == file


def test_it_asks_for_one_shape() -> None:
    x, y = variable("x", (2, 3)), variable("y", (3,))
    two = rule("(rule r (given (?x *) (?y *)) (from (add ?x (relu ?y))) (to (add (relu ?y) ?x)))")
    assert list(rewrites(two, Add()(x, Relu()(Expand((1,), (2, 3))(y)))))
    other = rule("(rule r (given (?x *) (?y *)) (from (relu ?x) (relu ?y)) (to (relu ?x) (relu ?y)))")
    assert not instance_of(
        rule("(rule r (given (?x m) (?y n)) (from (relu ?x) (relu ?y)) (to (relu ?x) (relu ?y)))"), other
    )


def test_a_rule_at_one_rank_is_an_instance_of_it_and_not_the_other_way_round() -> None:
    general = rule(FACTOR)
    for rank in (1, 2, 5):
        assert instance_of(at_rank(general, rank), general)
        assert not instance_of(general, at_rank(general, rank))
        assert at_any_rank(at_rank(general, rank)) == general
    assert [r.name for r in at_ranks([general])] == [f"factor-rank-{n}" for n in (1, 2, 3, 4)]


def test_it_is_proved() -> None:
    assert isinstance(verify(rule(FACTOR)), Proved)


@pytest.mark.parametrize(
    "text",
    [
        "(rule r (given (?x * n)) (from (relu (relu ?x))) (to (relu ?x)))",
        "(rule r (given (?x *)) (from (softmax 0 ?x)) (to (softmax 0 ?x)))",
        "(rule r (given (?x *)) (from (relu (slice 0 1 2 ?x))) (to (slice 0 1 2 (relu ?x))))",
        "(rule r (given (?x *) (?y m n)) (from (add (expand (0) ?x) ?y)) (to (add ?y (expand (0) ?x))))",
    ],
)
def test_star_stands_for_nothing_but_all_axes_of_what_is_point_wise(text: str) -> None:
    with pytest.raises(RuleError, match=r"\*"):
        rule(text)


def test_what_is_no_rule_about_any_rank_stays_as_it_is() -> None:
    for text in (
        "(rule r (given (?x m n) (?y n)) (from (add (relu ?x) (expand (1) ?y))) (to (add (expand (1) ?y) (relu ?x))))",
        "(rule r (given (?x m n)) (from (relu (transpose (1 0) ?x))) (to (transpose (1 0) (relu ?x))))",
    ):
        assert at_any_rank(rule(text)) == rule(text)


def test_another_format_gets_it_at_each_rank() -> None:
    source = to_onnxscript([rule(FACTOR)])
    assert all(f"factor-rank-{n}" in source for n in (1, 2, 3, 4))
