"""Rules stated of slices of one whole: each proves, and applies where the whole is a weight."""

from __future__ import annotations

import pytest

from superopt.operators.conv import Conv
from superopt.operators.layout import Concat
from superopt.rules.format import load_rules
from superopt.rules.match import rewrites
from superopt.rules.parted import parted
from superopt.rules.rule import Rule
from superopt.shipped import shipped_rules
from superopt.term import variable
from superopt.verify.check import verify
from superopt.verify.prove import Proved
from tests.rules.texts import rule_of

SUM = """(rule sum (given (?x n c h w) (?y n o h w) (?z i c j d) (?w i o j d))
  (from (conv (concat 1 ?x ?y) (concat 1 ?z ?w))) (to (add (conv ?x ?z) (conv ?y ?w))))"""
PARTED = [p for path in shipped_rules() for rule in load_rules(path).rules for p in parted(rule)]


@pytest.mark.parametrize("rule", PARTED[:: max(len(PARTED) // 25, 1)], ids=lambda r: r.name)
def test_what_is_stated_of_slices_proves(rule: Rule) -> None:
    assert isinstance(verify(rule), Proved)


def test_a_kernel_over_joined_channels_is_cut() -> None:
    x, y = variable("x", (1, 3, 8, 8), "float32"), variable("y", (1, 5, 8, 8), "float32")
    k = variable("k", (4, 8, 3, 3), "float32", constant=True)
    term = Conv()(Concat(1)(x, y), k)
    found = [new for rule in parted(rule_of(SUM)) for new in rewrites(rule, term)]
    assert len(found) == 1
    assert found[0].type == term.type
    assert repr(found[0]).count("slice") == 2


@pytest.mark.parametrize(
    "text",
    [
        SUM.replace("?w)", "?z)").replace("(?w i o j d)", "").replace("(?y n o h w)", "(?y n c h w)"),
        "(rule r (given (?x n c) (?y m c)) (from (relu (concat 0 ?x ?y))) (to (concat 0 (relu ?x) (relu ?y))))",
    ],
    ids=["a part is used twice", "nothing tells where to cut"],
)
def test_what_cannot_be_cut_is_left(text: str) -> None:
    wholes = [rule for rule in parted(rule_of(text)) if "slice" in repr(rule.target)]
    assert all(not rule.name.endswith("-0") for rule in wholes)
    assert not [rule for rule in wholes if len(rule.given) < 2]
