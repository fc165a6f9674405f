"""Sealed files are used as they stand, all others are proved first, and what is wrong is refused by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from superopt.enumerate.family_text import shipped_families
from superopt.errors import RuleError
from superopt.rules.digests import laws_hash, operators_hash
from superopt.rules.format import RuleFile, load_rules, print_file
from superopt.shipped import shipped_rules
from superopt.verify import trusted
from superopt.verify.prove import Proved
from superopt.verify.trusted import seal, sealed, trusted_rules

CASES = Path(__file__).parent / "cases" / "proved.rules"
RULES = [replace(rule, comment="") for rule in load_rules(CASES).rules][:4]


def _told(stage: str, done: float) -> None:
    """Nobody listens."""


@pytest.fixture
def proofs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the rules that are proved, in order."""
    names: list[str] = []

    def noted(rule: trusted.Rule) -> trusted.Verdict:
        names.append(rule.name)
        return verify(rule)

    verify = trusted.verify
    monkeypatch.setattr(trusted, "verify", noted)
    return names


def _written(folder: Path, text: str) -> Path:
    path = folder / "some.rules"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_sealed_file_is_not_proved_again(tmp_path: Path, proofs: list[str]) -> None:
    path = _written(tmp_path, print_file(sealed(RULES, {"settings": "by hand"})))
    assert trusted_rules([path], _told) == RULES
    assert proofs == []


def test_a_file_without_a_seal_is_proved_and_its_rules_say_by_what(proofs: list[str]) -> None:
    rules = trusted_rules([CASES], _told)
    assert proofs == [r.name for r in rules] == [r.name for r in load_rules(CASES).rules]
    assert all(r.by for r in rules)


def test_a_file_edited_by_hand_is_proved_again(tmp_path: Path, proofs: list[str]) -> None:
    text = print_file(sealed(RULES, {}))
    edited = text.replace("(rule matmul-associates", "(rule regrouped")
    assert edited != text
    rules = trusted_rules([_written(tmp_path, edited)], _told)
    assert proofs == [r.name for r in rules]
    assert "regrouped" in proofs


def test_proving_a_file_again_that_takes_long_is_told_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = _written(tmp_path, print_file(RuleFile(tuple(RULES), {})))
    trusted_rules([path], _told)
    assert caplog.messages == []
    monkeypatch.setattr(trusted, "AT_ONCE_S", 0.0)
    trusted_rules([path], _told)
    (told,) = caplog.messages
    assert f"superopt rules verify --seal {path}" in told
    assert "4 rules were proved again" in told


def test_a_file_whose_edited_rule_is_wrong_is_refused_by_name(tmp_path: Path) -> None:
    text = print_file(sealed(RULES, {}))
    edited = text.replace("(to (matmul ?x (matmul ?y ?z)))", "(to (matmul ?x (matmul ?y (relu ?z))))")
    assert edited != text
    with pytest.raises(
        RuleError,
        match=r"some\.rules: rule matmul-associates does not prove: refuted: .* on the left and .* on the right",
    ):
        trusted_rules([_written(tmp_path, edited)], _told)


def test_a_rule_taken_out_breaks_the_seal() -> None:
    assert seal(RULES) == seal(RULES)
    assert len({seal(RULES), seal(RULES[1:]), seal(RULES[::-1]), seal([])}) == 4


@pytest.mark.parametrize("what", ["operators_hash", "laws_hash"])
def test_other_declarations_break_the_seal(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = seal(RULES)
    monkeypatch.setattr(trusted, what, lambda *_: "another")
    assert seal(RULES) != before


def test_the_progress_of_proving_is_told_from_nothing_on(tmp_path: Path) -> None:
    told: list[tuple[str, float]] = []
    trusted_rules(
        [_written(tmp_path, print_file(replace(sealed(RULES, {}), header={})))], lambda s, d: told.append((s, d))
    )
    assert [d for _, d in told] == [i / len(RULES) for i in range(len(RULES))]
    assert {s for s, _ in told} == {"prove some.rules"}


def test_a_verdict_is_described_in_words() -> None:
    assert trusted.describe(Proved(("add-assoc",))) == "proved by add-assoc"
    assert trusted.describe(Proved(())) == "proved by congruence alone"


@pytest.mark.parametrize("path", shipped_rules(), ids=lambda p: p.name)
def test_a_shipped_file_is_sealed_under_the_declarations_and_laws_of_now(path: Path, proofs: list[str]) -> None:
    """Where this fails a declaration or a law changed: `make rules`."""
    header = load_rules(path).header
    assert header["operators"] == operators_hash()
    assert header["laws"] == laws_hash()
    assert trusted_rules([path], _told)
    assert proofs == []


def test_there_are_shipped_rules() -> None:
    assert {"core", "convolutions", "pointwise"} <= {p.stem for p in shipped_rules()} <= set(shipped_families())
