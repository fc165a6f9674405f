"""`superopt rules`, run as a user runs it."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from superopt.enumerate.grow import Met, OutOfMemory, grow
from superopt.enumerate.table import Table
from superopt.rules.format import load_rules, print_rule
from superopt.shipped import shipped_rules
from tests.commands import COMMAND, Ran, assert_refused, files, superopt

Command = Callable[..., Ran]

WRONG = "(rule mine (given (?x n)) (from (relu (relu ?x))) (to (add ?x ?x)))"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("found")


@pytest.fixture(scope="module")
def generated(folder: Path) -> Ran:
    """Rules over two operators, found and proved."""
    settings = ("--only", "relu,add", "--max-ops", 2, "--workers", 1)
    return superopt("rules", "generate", *settings, "--out", "f.rules", cwd=folder)


def test_found_rules_are_of_the_operators_asked_for(generated: Ran, folder: Path) -> None:
    assert (generated.code, generated.out) == (0, "")
    found = load_rules(folder / "f.rules").rules
    assert found
    assert {name for rule in found for name in rule.operators()} <= {"relu", "add", "expand"}
    assert set(files(folder)) == {"f.rules"}


def test_found_rules_prove_afresh(inside: Command, generated: Ran, folder: Path) -> None:
    ran = inside("rules", "verify", "f.rules", cwd=folder)
    count = len(load_rules(folder / "f.rules").rules)
    assert (generated.code, ran.code) == (0, 0)
    assert ran.err.startswith(f"{count} of {count} rules proved")
    assert ran.out.count(": proved by ") == count


def test_a_wrong_rule_fails_by_name_with_a_witness(inside: Command, tmp_path: Path) -> None:
    (tmp_path / "w.rules").write_text(WRONG)
    ran = inside("rules", "verify", "w.rules", cwd=tmp_path)
    assert ran.code == 2
    assert "superopt: w.rules: rule mine does not prove: refuted" in ran.err


def test_shipped_rules_are_listed_each_with_its_laws(inside: Command, tmp_path: Path) -> None:
    ran = inside("rules", "list", cwd=tmp_path)
    rules = [rule for path in shipped_rules() for rule in load_rules(path).rules]
    assert (ran.code, len(ran.out.splitlines())) == (0, len(rules))
    assert ran.out.splitlines()[0] == f"{rules[0].name}\t{', '.join(rules[0].by)}"


def test_a_rule_is_shown_as_it_stands_in_its_file(inside: Command, rules: Path, tmp_path: Path) -> None:
    ran = inside("rules", "show", "share-left", "--file", rules, cwd=tmp_path)
    (wanted,) = (r for r in load_rules(rules).rules if r.name == "share-left")
    assert (ran.code, ran.out.strip()) == (0, print_rule(wanted).strip())


IDLE = "(family idle (sizes (m 2 3 5) (n 3 5 7)) (given (?a m n)) (operators (matmul ?x ?y)) (depth 2))"

WIDE = "(family wide (sizes (m 64 64 64)) (given (?x m m m m m m)) (operators (relu ?x)) (depth 2))"

HALVES = """(family halves (sizes (m 2 3 5)) (given (?a m m) (?b m m))
  (operators (concat 0 ?x ?y) (slice 0 m (* 2 m) ?x)) (depth 2))"""

REFUSED = {
    "an unknown operator": (["generate", "--only", "relu,sinh", "--out", "f.rules"], "sinh"),
    "an unknown family": (["generate", "--family", "nothing", "--out", "f.rules"], "no family is called nothing"),
    "a family that is none": (["generate", "--family", "old", "--out", "f.rules"], "old:1:1"),
    "a family of which no operator applies": (
        ["generate", "--family", "idle.family", "--out", "f.rules"],
        "idle.family:1:70: the operator (matmul ?x ?y) applies to nothing in the family: it asks for (= n m), with",
    ),
    "operators of a family that apply only beside others": (
        ["generate", "--family", "halves.family", "--only", "slice", "--out", "f.rules"],
        "family halves: no operator takes any of its variables at its sizes: (slice 0 m (* 2 m) ?x)",
    ),
    "memory that is no number": (["generate", "--only", "relu", "--memory", "nan", "--out", "f.rules"], "--memory nan"),
    "variables larger than the memory": (
        ["generate", "--family", "wide.family", "--out", "f.rules"],
        "family wide: the values of its variables take ",
    ),
    "a file without a rule": (["verify", "empty.rules"], "empty.rules: there is no rule in this file"),
    "no memory": (["generate", "--only", "relu", "--memory", "-1", "--out", "f.rules"], "--memory -1"),
    "a run that did not stop": (["generate", "--only", "relu", "--resume", "--out", "f.rules"], "f.rules.proofs"),
    "too little memory": (["generate", "--only", "relu", "--memory", "0.01", "--out", "f.rules"], "--memory"),
    "a file that exists": (["generate", "--only", "relu", "--out", "old"], "old"),
    "a folder to write to": (["generate", "--only", "relu", "--overwrite", "--out", "a folder"], "a folder"),
    "a folder that is missing": (["generate", "--only", "relu", "--out", "none/f.rules"], "none"),
    "a file that is missing": (["verify", "none.rules"], "none.rules"),
    "a file that is no rules": (["verify", "old"], "old:1:1"),
    "an unknown rule": (["show", "nothing"], "nothing"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_refused(inside: Command, case: str, tmp_path: Path) -> None:
    arguments, named = REFUSED[case]
    (tmp_path / "a folder").mkdir()
    (tmp_path / "old").write_text("precious")
    (tmp_path / "idle.family").write_text(IDLE)
    (tmp_path / "halves.family").write_text(HALVES)
    (tmp_path / "wide.family").write_text(WIDE)
    (tmp_path / "empty.rules").write_text("; none yet\n")
    before = files(tmp_path)
    assert_refused(inside("rules", *arguments, cwd=tmp_path), 2, named)
    assert files(tmp_path) == before


def test_a_run_that_memory_ends_says_how_far_it_is_complete_and_goes_on_with_more(
    inside: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("rules", "generate", "--only", "relu,mul", "--max-ops", 3, "--workers", 1, "--out")
    assert inside(*arguments, "whole.rules", cwd=tmp_path).code == 0

    def short(table: Table, level: int, *_: Any) -> Met:
        if level == 3:
            raise OutOfMemory("terms of 3 operators take more than 8 GB")
        return grow(table, level, *_)

    with monkeypatch.context() as patch:
        patch.setattr("superopt.enumerate.equations.grow", short)
        ended = inside(*arguments, "f.rules", cwd=tmp_path)
    assert ended.code == 0
    assert "superopt: terms of 3 operators would take more than 8 GB; --resume --overwrite and more" in ended.err
    assert load_rules(tmp_path / "f.rules").header["settings"].endswith("max-ops=3 seed=0 complete-to=2")
    assert inside(*arguments, "f.rules", "--resume", "--overwrite", cwd=tmp_path).code == 0
    found = files(tmp_path)
    assert set(found) == {"whole.rules", "f.rules"}
    assert found["f.rules"] == found["whole.rules"]


def test_a_run_that_is_interrupted_keeps_its_proofs_and_goes_on_to_the_same_bytes(
    tmp_path: Path, inside: Command
) -> None:
    settings = ("rules", "generate", "--only", "relu,add,mul,matmul", "--max-ops", 2, "--workers", 1)
    whole = inside(*settings, "--out", "whole.rules", cwd=tmp_path)
    assert whole.code == 0
    arguments = [*COMMAND, *map(str, settings), "--out", "f.rules"]
    proofs = tmp_path / "f.rules.proofs"
    with subprocess.Popen(arguments, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as run:
        while run.poll() is None and not (proofs.exists() and proofs.read_text(encoding="utf-8").count("\n") > 3):
            time.sleep(0.005)
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "Traceback" not in said
    assert "superopt: f.rules.proofs keeps what was proved; --resume goes on with it" in said
    assert set(files(tmp_path)) == {"whole.rules", "f.rules.proofs"}
    kept = files(tmp_path)
    assert_refused(inside(*settings, "--out", "f.rules", cwd=tmp_path), 2, "f.rules.proofs")
    small = (*settings, "--out", "f.rules", "--resume", "--memory", "0.01")
    assert_refused(inside(*small, cwd=tmp_path), 2, "--memory")
    assert files(tmp_path) == kept
    resumed = inside(*settings, "--out", "f.rules", "--resume", cwd=tmp_path)
    assert resumed.code == 0, resumed.err
    found = files(tmp_path)
    assert set(found) == {"whole.rules", "f.rules"}
    assert found["f.rules"] == found["whole.rules"]


def test_a_family_of_the_users_is_enumerated_and_counted_for_machines(inside: Command, tmp_path: Path) -> None:
    family = "(family mine (sizes (n 2 3 5)) (given (?x n) (?y n)) (operators (add ?a ?b) (relu ?a)) (depth 2))"
    (tmp_path / "mine.family").write_text(family, encoding="utf-8")
    ran = inside("rules", "generate", "--family", "mine.family", "--out", "f.rules", "--json", cwd=tmp_path)
    assert ran.code == 0
    facts = json.loads(ran.out)
    assert (facts["family"], facts["complete to operators"]) == ("mine", 2)
    assert facts["graphs represented"] == 38
    assert facts["rules"] == len(load_rules(tmp_path / "f.rules").rules) > 0


def test_an_edited_rule_that_is_still_true_is_proved_and_used(inside: Command, tmp_path: Path, rules: Path) -> None:
    (tmp_path / "m.rules").write_text(rules.read_text(encoding="utf-8").replace("relu-relu", "renamed"))
    ran = inside("rules", "verify", "m.rules", cwd=tmp_path)
    assert (ran.code, "renamed: proved by" in ran.out) == (0, True)
