"""Rules about stacks of matrices, stated of stacks of stacks: each proves, and applies to products of four axes."""

from __future__ import annotations

import pytest

from superopt.operators.layout import Expand
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Mul
from superopt.rules.format import load_rules
from superopt.rules.match import rewrites
from superopt.rules.rule import Rule
from superopt.rules.stacked import stacked
from superopt.shipped import shipped_rules
from superopt.term import variable
from superopt.verify.check import verify
from superopt.verify.prove import Proved
from tests.rules.texts import rule_of

STACKED = [s for path in shipped_rules() for rule in load_rules(path).rules for s in stacked(rule)]

SCALE = """(rule scale (given (?x b n c) (?w b c d) (?s d)) (from (mul (matmul ?x ?w) (expand (2) ?s)))
  (to (matmul ?x (mul ?w (expand (2) ?s)))))"""


@pytest.mark.parametrize("rule", STACKED, ids=lambda r: r.name)
def test_what_is_stated_of_stacks_of_stacks_proves(rule: Rule) -> None:
    assert all(t.type.rank == 4 for t in (*rule.source, *rule.target))
    assert isinstance(verify(rule), Proved)


def test_the_scale_of_a_layer_over_four_axes_moves_into_its_weight() -> None:
    x, w, s = variable("x", (2, 7, 5, 3)), variable("w", (3, 4), constant=True), variable("s", (4,), constant=True)
    layer = Mul()(MatMul()(x, Expand((2, 3), (2, 7, 3, 4))(w)), Expand((3,), (2, 7, 5, 4))(s))
    assert not list(rewrites(rule_of(SCALE), layer))
    ((rule,),) = [list(stacked(rule_of(SCALE)))]
    (found,) = rewrites(rule, layer)
    assert (found.operator.name, found.inputs[0], found.inputs[1].constant) == ("matmul", x, True)


@pytest.mark.parametrize(
    "text",
    [
        "(rule r (given (?x n c) (?y c d)) (from (matmul ?x (relu ?y))) (to (matmul ?x (relu (relu ?y)))))",
        "(rule r (given (?x b n c)) (from (relu (relu ?x))) (to (relu ?x)))",
        "(rule r (given (?x b n n)) (from (concat 0 (matmul ?x ?x) ?x)) (to (concat 0 (matmul ?x ?x) ?x)))",
        "(rule r (given (?x b b b)) (from (matmul ?x (transpose (1 0 2) ?x))) (to (matmul ?x (transpose (1 0 2) ?x))))",
    ],
    ids=["matrices", "no product", "the stack is joined", "a stack is read along two axes"],
)
def test_what_is_about_no_stack_of_matrices_is_left(text: str) -> None:
    assert not list(stacked(rule_of(text)))
