"""`superopt rules derive|covers|stats`, run as a user runs them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from superopt.rules.format import load_rules
from tests.commands import Ran, assert_refused

Command = Callable[..., Ran]

GIVEN = ("--given", "(?x s d) (?w d d) (?a d r) (?b r d)")
LOW_RANK = ("(add (matmul ?x ?w) (matmul (matmul ?x ?a) ?b))", "(matmul ?x (add ?w (matmul ?a ?b)))")
TURNED = (f"(transpose (1 0) {LOW_RANK[0]})", "(matmul (transpose (1 0) (add ?w (matmul ?a ?b))) (transpose (1 0) ?x))")
OTHER = """(rule twice (given (?x n m)) (from (relu (relu ?x))) (to (relu ?x)))
(rule thrice (given (?x n m)) (from (relu (relu (relu ?x)))) (to (relu ?x)))
(rule never (given (?x n m)) (from (tanh (tanh ?x))) (to (tanh ?x)))
"""


@pytest.fixture
def core() -> Path:
    return Path(__file__).parent.parent / "rules" / "core.rules"


def test_the_steps_of_a_derivation_are_shown_each_with_its_rule(inside: Command, core: Path, tmp_path: Path) -> None:
    ran = inside("rules", "derive", core, *TURNED, *GIVEN, cwd=tmp_path)
    first, *steps = ran.out.splitlines()
    assert (ran.code, first) == (0, TURNED[0])
    assert 1 < len(steps) <= 3
    names = {rule.name for rule in load_rules(core).rules}
    assert all(step.startswith("= (") and step.rpartition("by ")[2] in names for step in steps)
    assert steps[-1].startswith(f"= {TURNED[1]} ")


def test_the_order_of_inputs_that_commute_is_told_where_it_is_all_that_is_left(
    inside: Command, core: Path, tmp_path: Path
) -> None:
    sides = "(relu (relu (add ?x ?y)))", "(relu (add ?y ?x))"
    ran = inside("rules", "derive", core, *sides, "--given", "(?x n) (?y n)", cwd=tmp_path)
    assert ran.out.splitlines() == [
        sides[0],
        "= (relu (add ?x ?y))    by relu-relu-to-relu",
        "= (relu (add ?y ?x))    by inputs that commute",
    ]


def test_products_of_low_rank_are_merged_by_one_rule(inside: Command, core: Path, tmp_path: Path) -> None:
    ran = inside("rules", "derive", core, *LOW_RANK, *GIVEN, cwd=tmp_path)
    assert (ran.code, len(ran.out.splitlines())) == (0, 1 + 1), ran.out


def test_what_is_not_derived_exits_with_1(inside: Command, core: Path, tmp_path: Path) -> None:
    ran = inside("rules", "derive", core, LOW_RANK[0], "(matmul ?x ?w)", *GIVEN, cwd=tmp_path)
    assert (ran.code, ran.out) == (1, "not derived in 3 steps\n")


REFUSED = {
    "a term that does not parse": (("(add ?x", "?x"), "SRC:1:1"),
    "two terms": (("?x ?x", "?x"), "SRC"),
    "a tensor that is not given": (("(relu ?y)", "?x"), "SRC:1:7"),
    "sizes that would have to be equal": (("(matmul ?x ?b)", "?x"), "ill typed unless (= d r)"),
    "sides of two types": (("(matmul ?x ?a)", "?x"), "differ in type"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_derived_is_refused(inside: Command, core: Path, case: str, tmp_path: Path) -> None:
    sides, named = REFUSED[case]
    assert_refused(inside("rules", "derive", core, *sides, *GIVEN, cwd=tmp_path), 2, named)


def test_what_covers_each_rule_is_listed_and_counted(inside: Command, core: Path, tmp_path: Path) -> None:
    (tmp_path / "other.rules").write_text(OTHER, encoding="utf-8")
    ran = inside("rules", "covers", core, "other.rules", cwd=tmp_path)
    assert ran.code == 0
    found = {line.split("\t")[0]: line.split("\t")[1] for line in ran.out.splitlines()}
    assert found == {"twice": "one rule", "thrice": "steps", "never": "not covered"}
    assert ran.err.strip() == "3 rules: 1 by one rule, 1 by up to 3 steps, 1 not"


def test_rules_of_all_files_of_a_folder_cover(inside: Command, core: Path, tmp_path: Path) -> None:
    (tmp_path / "other.rules").write_text(OTHER, encoding="utf-8")
    with_all = inside("rules", "covers", core.parent, "other.rules", cwd=tmp_path)
    assert with_all.err == inside("rules", "covers", core, "other.rules", cwd=tmp_path).err
    (tmp_path / "empty").mkdir()
    assert_refused(inside("rules", "covers", "empty", "other.rules", cwd=tmp_path), 2, "no .rules file in this folder")


def test_a_rule_of_one_graph_on_both_sides_takes_no_step(inside: Command, core: Path, tmp_path: Path) -> None:
    same = "(rule same (given (?x n m) (?y n m)) (from (add ?x ?y)) (to (add ?y ?x)))"
    (tmp_path / "other.rules").write_text(same, encoding="utf-8")
    ran = inside("rules", "covers", core, "other.rules", cwd=tmp_path)
    assert ran.out.split("\t")[1] == "no step"
    assert ran.err.strip() == "1 rules: 0 by one rule, 1 with one graph on both sides, 0 by up to 3 steps, 0 not"


def test_one_rule_within_a_larger_term_is_one_rule(inside: Command, core: Path, tmp_path: Path) -> None:
    inner = "(rule inner (given (?x n m) (?y n m)) (from (add (relu (relu ?x)) ?y)) (to (add (relu ?x) ?y)))"
    (tmp_path / "other.rules").write_text(OTHER[: OTHER.index("(rule twice")] + inner, encoding="utf-8")
    (found,) = json.loads(inside("rules", "covers", core, "other.rules", "--json", cwd=tmp_path).out)
    assert [found["one"]] == found["steps"]


def test_what_covers_each_rule_is_told_to_machines(inside: Command, core: Path, tmp_path: Path) -> None:
    (tmp_path / "other.rules").write_text(OTHER, encoding="utf-8")
    twice, thrice, never = json.loads(inside("rules", "covers", core, "other.rules", "--json", cwd=tmp_path).out)
    assert twice["one"]
    assert (thrice["one"], thrice["steps"]) == (None, [twice["one"]] * 2)
    assert (never["one"], never["steps"]) == (None, None)


def test_the_numbers_of_a_rule_file_are_shown(inside: Command, tmp_path: Path) -> None:
    (tmp_path / "other.rules").write_text(OTHER, encoding="utf-8")
    ran = inside("rules", "stats", "other.rules", cwd=tmp_path)
    assert ran.code == 0
    (row,) = (line for line in ran.out.splitlines() if "other.rules" in line)
    assert [cell.strip() for cell in row.split("│")] == ["other.rules", "3", "3", "0", "0", "0", "0"]
