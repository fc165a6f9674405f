"""What a search takes no step by."""

from __future__ import annotations

import pytest

from superopt.rules.format import parse_file
from superopt.rules.idle import is_idle
from superopt.rules.rule import Rule

KERNEL = "(given (?x n c h w) (?k o c i j))"


def rule(body: str) -> Rule:
    (found,) = parse_file(f"(rule r {body})").rules
    return found


IDLE = {
    "it says one operator in several": "(given (?x n c) (?y n c)) (from (add ?x ?y)) (to (sub ?x (neg ?y)))",
    "it puts zeros around a kernel": f"""{KERNEL}
      (from (conv ?x ?k)) (to (conv :pads (1 1 1 1) ?x (pad (0 0 1 1 0 0 1 1) ?k)))""",
    "it puts zeros around what a kernel is made of": f"""{KERNEL}
      (from (conv ?x (relu ?k))) (to (conv :pads (1 1 1 1) ?x (relu (pad (0 0 1 1 0 0 1 1) ?k))))""",
    "it looks into what is made of constants": """(given (?x n c))
      (from (matmul ?x (mul (band c) (band c)))) (to (matmul ?x (band c)))""",
}

AT_WORK = {
    "kernels are merged of which one is enlarged": f"""{KERNEL[:-1]} (?l o c (- i 2) (- j 2)))
      (from (add (conv :pads (1 1 1 1) ?x ?k) (conv ?x ?l)))
      (to (conv :pads (1 1 1 1) ?x (add ?k (pad (0 0 1 1 0 0 1 1) ?l))))""",
    "zeros become pads": f"""{KERNEL}
      (from (conv (pad (0 0 1 1 0 0 1 1) ?x) ?k)) (to (conv :pads (1 1 1 1) ?x ?k))""",
    "zeros are put around an image, or around both parts of a sum": """(given (?x n c) (?y n c))
      (from (pad (a b d e) (add ?x ?y))) (to (add (pad (a b d e) ?x) (pad (a b d e) ?y)))""",
    "something is cut off": """(given (?x n c) (?y n d))
      (from (slice 1 0 c (relu (concat 1 ?x ?y)))) (to (slice 1 0 c (concat 1 (relu ?x) (relu ?y))))""",
    "several operators become two": "(given (?x n c)) (from (neg (neg (relu ?x)))) (to (relu (relu ?x)))",
}


@pytest.mark.parametrize("case", IDLE)
def test_a_rule_is_idle_where(case: str) -> None:
    assert is_idle(rule(IDLE[case]))


@pytest.mark.parametrize("case", AT_WORK)
def test_a_rule_is_not_idle_where(case: str) -> None:
    assert not is_idle(rule(AT_WORK[case]))
