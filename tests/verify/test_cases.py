"""Rules as text, with the verdict that they must get; see the files beside this one."""

from __future__ import annotations

from pathlib import Path

import pytest

from superopt.rules.format import load_rules
from superopt.rules.rule import Rule
from superopt.verify.check import Refuted, verify
from superopt.verify.prove import Proved, Unknown

FOLDER = Path(__file__).parent / "cases"
VERDICTS = {"proved": Proved, "refuted": Refuted, "unknown": Unknown}
CASES = {verdict: load_rules(FOLDER / f"{verdict}.rules").rules for verdict in VERDICTS}


def test_every_file_of_cases_is_read_and_holds_some() -> None:
    assert {p.stem for p in FOLDER.iterdir()} == set(VERDICTS)
    assert all(CASES.values())


@pytest.mark.parametrize(
    ("verdict", "rule"),
    [pytest.param(verdict, rule, id=f"{verdict}-{rule.name}") for verdict, rules in CASES.items() for rule in rules],
)
def test_the_verdict_on_a_rule_is_that_of_its_file(verdict: str, rule: Rule) -> None:
    assert isinstance(verify(rule), VERDICTS[verdict])


@pytest.mark.parametrize("rule", CASES["proved"], ids=lambda r: r.name)
def test_a_proof_names_the_laws_that_it_uses(rule: Rule) -> None:
    verdict = verify(rule)
    assert isinstance(verdict, Proved)
    assert verdict.laws


@pytest.mark.parametrize("rule", CASES["refuted"], ids=lambda r: r.name)
def test_a_refutation_shows_the_sizes_at_which_the_sides_differ(rule: Rule) -> None:
    verdict = verify(rule)
    assert isinstance(verdict, Refuted)
    assert {name for name, _ in verdict.shapes} >= {v.label for v in rule.given}
    assert str(verdict).startswith("differs for ?")


@pytest.mark.parametrize(
    "rule", [r for v in ("proved", "refuted", "unknown") for r in CASES[v][::3]], ids=lambda r: r.name
)
def test_the_verdict_is_the_same_each_time(rule: Rule) -> None:
    assert verify(rule) == verify(rule)
