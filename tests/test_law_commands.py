"""`superopt laws`, run as a user runs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from superopt.operators.files import apart
from superopt.operators.laws.collected import forget_laws, written_laws
from superopt.operators.pointwise import Relu
from superopt.verify.law_scope import families
from tests.commands import Ran, assert_refused

Command = Callable[..., Ran]

OURS = '''
from superopt.operators.declare import operator
from superopt.operators.pointwise import UnaryReal


@operator("cube")
class Cube(UnaryReal):
    """`y = x³`."""

    laws = """
    (law cube-mul (given (?x *)) (= (cube ?x) (mul ?x (mul ?x ?x))))
    """

    def eval(self, ring, x):
        return ring.mul(x, ring.mul(x, x))
'''


def test_every_law_is_listed_with_its_operator_origin_and_text(inside: Command, tmp_path: Path) -> None:
    ran = inside("laws", "list", cwd=tmp_path)
    rows = [line.split("\t") for line in ran.out.splitlines()]
    assert ran.code == 0
    assert [name for name, *_ in rows] == list(families())
    assert all(operator for _, operator, _, _ in rows)
    assert {name for name, _, origin, _ in rows if origin == "written"} == {name for name, _ in written_laws()}
    assert ["matmul-concat-sum", "matmul", "named axes"] in [row[:3] for row in rows]
    assert all(text.startswith(("(law ", "(lemma ")) for *_, text in rows)


def test_listed_laws_are_of_the_names_asked_for(inside: Command, tmp_path: Path) -> None:
    ran = inside("laws", "list", "sub-*", "matmul-assoc", "--json", cwd=tmp_path)
    rows = {row["law"]: row for row in json.loads(ran.out)}
    assert {"sub-neg", "sub-concat", "matmul-assoc"} <= set(rows)
    assert all(name.startswith("sub-") or name == "matmul-assoc" for name in rows)
    assert [rows["sub-neg"][key] for key in ("operator", "derived", "lemma")] == ["sub", False, False]
    assert [rows["sub-concat"][key] for key in ("operator", "derived", "lemma")] == ["sub", True, True]
    assert rows["matmul-assoc"]["text"].startswith("(law matmul-assoc (given (?x ")


def test_laws_that_are_in_order_are_a_table_with_a_line_each(inside: Command, tmp_path: Path) -> None:
    ran = inside("laws", "check", "sub-*", "sqrt-mul", "--limit", 40, "--workers", 1, cwd=tmp_path)
    assert ran.code == 0
    lines = {line.split()[0]: line for line in ran.out.splitlines()[2:]}
    assert {"sub-neg", "sub-concat", "sqrt-mul"} <= set(lines)
    assert "exact: field, order" in lines["sub-neg"]
    assert "not shown" in lines["sub-neg"]
    assert "lemma, proved" in lines["sub-concat"]
    assert "compared: float" in lines["sqrt-mul"]
    assert ran.err.startswith(f"{len(lines)} of {len(lines)} laws are in order, ")


def test_what_was_found_is_told_as_json(inside: Command, tmp_path: Path) -> None:
    settings = ("--limit", 40, "--workers", 1, "--seed", 3, "--json")
    ran = inside("laws", "check", "div-div", "sub-concat", *settings, cwd=tmp_path)
    second, first = json.loads(ran.out) if json.loads(ran.out)[0]["law"] == "sub-concat" else json.loads(ran.out)[::-1]
    assert (first["law"], first["carriers"], first["instances"]) == ("div-div", {"exact": {"field": 5}}, 5)
    assert (first["follows"], first["by"], first["fault"]) == ("not shown", [], None)
    assert (second["follows"], second["lemma"]) == ("proved", True)
    assert "sub-neg" in second["by"]


@pytest.mark.parametrize(
    ("law", "said"),
    [
        ("(law mine (given (?x n)) (= (relu ?x) (neg ?x)))", "law mine: its sides differ (order, seed 0): (law mine"),
        ("(law mine (given (?x n)) (if (<= n 0)) (= (relu ?x) ?x))", "law mine: no shape fits it"),
        ("(law mine (given (?x n)) (= (relu (relu ?x)) (relu ?x)))", "law mine: it follows from relu-"),
    ],
    ids=["wrong", "vacuous", "redundant"],
)
def test_a_law_that_is_not_in_order_ends_it_by_name(
    inside: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, law: str, said: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Relu, "laws", f"{Relu.laws}\n{law}")
        forget_laws()
        ran = inside("laws", "check", "mine", "--limit", 40, "--workers", 1, cwd=tmp_path)
    forget_laws()
    assert ran.code == 2
    assert ran.err.splitlines()[-1].startswith(f"superopt: {said}")
    assert ran.out.splitlines()[-1].startswith("mine ")


def test_laws_of_a_users_operator_are_checked_too(inside: Command, tmp_path: Path) -> None:
    (tmp_path / "ours.py").write_text(OURS)
    with apart():
        ran = inside("laws", "check", "cube-*", "--operators", "ours.py", "--limit", 40, "--workers", 1, cwd=tmp_path)
    assert ran.code == 0, ran.err
    names = [line.split()[0] for line in ran.out.splitlines()[2:]]
    assert {"cube-mul", "cube-concat", "cube-transpose"} <= set(names)


def test_a_law_that_there_is_not_is_refused(inside: Command, tmp_path: Path) -> None:
    for command in ("list", "check"):
        assert_refused(inside("laws", command, "no-such-*", cwd=tmp_path), 2, "no-such-*", "superopt laws list")
