"""Families: what is wrong in one is said with its place, and what comes with superopt can be enumerated."""

from __future__ import annotations

from pathlib import Path

import pytest

from superopt.enumerate.family import Pattern
from superopt.enumerate.family_text import load_family, read_family, shipped_families, with_operators
from superopt.enumerate.grow import grow
from superopt.enumerate.table import Table
from superopt.errors import ParseError, UsageError
from superopt.term import variable
from superopt.text import Form, word

SIZES = "(sizes (n 2 3 5))"
GIVEN = "(given (?x n n))"
WHOLE = f"(family f {SIZES} {GIVEN} (operators (relu ?x)))"

WRONG = {
    "no family": ("(rules)", "f:1:1: expected one"),
    "two families": (WHOLE + WHOLE, "f:1:1: expected one"),
    "a part that is unknown": ("(family f (things))", r"f:1:11: expected one of \(sizes"),
    "no sizes": (f"(family f {GIVEN} (operators (relu ?x)))", r"f:1:1: the family has no \(sizes"),
    "two sizes of a symbol": (
        f"(family f (sizes (n 2 3)) {GIVEN} (operators relu))",
        "f:1:18: expected a symbol and 3",
    ),
    "a size that is too large": (f"(family f (sizes (n 2 3 99)) {GIVEN} (operators relu))", "from 1 to 64"),
    "a symbol without sizes": (f"(family f {SIZES} (given (?x m)) (operators relu))", "f:1:36: the size m is not"),
    "no operators": (f"(family f {SIZES} {GIVEN})", r"the family has no \(operators"),
    "an unknown operator": (
        f"(family f {SIZES} {GIVEN} (operators (sinh ?x)))",
        r"f:1:\d+: expected an operator .*\(sinh",
    ),
    "an operator without holes": (f"(family f {SIZES} {GIVEN} (operators (scalar 1.0)))", "of one or two inputs"),
    "a depth that nothing reaches": (
        f"(family f {SIZES} {GIVEN} (operators relu) (depth 9))",
        "a number of operators from 1 to 6, found 9",
    ),
    "a variable that is given twice": (
        f"(family f {SIZES} (given (?x n) (?x n)) (operators relu))",
        r"f:1:\d+: the variable \?x is given twice",
    ),
    "a depth that is none": (f"(family f {SIZES} {GIVEN} (operators relu) (depth deep))", "the depth is a number"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_in_a_family_is_said_with_its_place(case: str) -> None:
    text, said = WRONG[case]
    with pytest.raises(ParseError, match=said):
        read_family(text, "f")


def test_a_family_that_is_neither_shipped_nor_a_file_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"no family is called nothing.*core"):
        load_family("nothing")


def test_a_family_is_read_from_a_file_of_the_users(tmp_path: Path) -> None:
    (tmp_path / "mine.family").write_text(WHOLE, encoding="utf-8")
    assert load_family(str(tmp_path / "mine.family")).name == "f"


@pytest.mark.parametrize("name", shipped_families())
def test_every_operator_of_a_shipped_family_applies_somewhere(name: str) -> None:
    """What fits nothing at two levels was written in vain."""
    family = load_family(name)
    table = Table(family, 0, 2)
    for level in range(2):
        grow(table, level, last=False)
    grow(table, 2, last=True)
    used = {table.types.kinds[a.kind].pattern for a in table.types.applications}
    assert [str(p) for p in family.operators if p not in used] == []


@pytest.mark.parametrize("name", shipped_families())
def test_every_variable_of_a_shipped_family_is_used(name: str) -> None:
    table = Table(load_family(name), 0, 2)
    found = grow(table, 0, last=False), grow(table, 1, last=False)
    used = {i for met in found for column in (met.rows.left, met.rows.right) for i in column.tolist()}
    assert [v.label for i, v in enumerate(table.leaves) if i not in used] == []


def test_operators_that_are_listed_are_kept_and_broadcasts_with_them() -> None:
    family = with_operators(load_family("core"), ["add"])
    texts = {str(p) for p in family.operators}
    assert "(add ?x ?y)" in texts
    assert all(t.startswith("(add ") for t in texts)
    assert any("expand" in t for t in texts)


def test_an_operator_that_is_not_in_the_family_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"operator sinh is not in family core; choose from .*matmul"):
        with_operators(load_family("core"), ["add", "sinh"])


def test_a_hole_with_sizes_takes_those_shapes_only() -> None:
    pattern = read_family(WHOLE.replace("(relu ?x)", "(on ((?x n *)) (relu ?x))"), "f").operators[0]
    (x,) = read_family(WHOLE, "f").given
    assert pattern.over([x.shape])
    assert not pattern.over([(x.shape[0],)])
    assert not pattern.over([(x.shape[0] * 2, x.shape[0])])


def test_sizes_that_are_equal_by_accident_are_not_equal() -> None:
    """Two symbols of the same numbers: what would need them equal fits nowhere."""
    text = "(family f (sizes (m 2 3 5) (n 2 3 5)) (given (?x m) (?y n)) (operators (add ?a ?b)))"
    family = read_family(text, "f")
    (pattern,), (x, y) = family.operators, family.given
    for other, fits in ((y, False), (x, True), (y, False)):
        (term,) = pattern.over([x.shape, other.shape])
        assert term is not None
        assert family.fits(term) == fits


def test_an_operators_name_alone_applies_it_with_the_attributes_of_its_declaration() -> None:
    terms = Pattern(word("transpose"), ("a",)).over([(2, 3)])
    assert [str(t) for t in terms if t is not None] == ["(transpose (1 0) ?a)"]
    (whole,) = Pattern(Form((word("transpose"), Form((word(1), word(0))), word("?a"))), ("a",)).over([(2, 3)])
    assert whole in terms
    assert whole is not None
    assert variable("a", (2, 3)) in whole.inputs
