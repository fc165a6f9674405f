"""What is wrong with a rule file is said on one line: file, line, column, and what was expected there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from superopt.errors import ParseError, RuleError
from superopt.rules.format import load_rules, parse_file
from tests.commands import Ran

GIVEN = "(given (?x m k) (?y k n))"
RULE = f"(rule r {GIVEN} (from (matmul ?x ?y)) (to (matmul ?x ?y)))"
FROM = f"(rule r {GIVEN}\n (from (relu ?x))"
"""A rule whose second line goes on at column 18."""

SYNTAX = {
    "a rule that is never closed": (f"{RULE}\n(rule s", "2:1", "'(' is never closed"),
    "a bracket too many": (f"{RULE})", "1:77", "')' without '(' before it"),
    "a string that is never closed": (f'(rules :format 1 :seal "12)\n{RULE}', "1:24", "string in double quotes is not"),
    "a string with an unknown escape": (r'(rules :format 1 :settings "\q")', "1:28", r'not a string: "\q"'),
    "a word on its own": (f"{RULE}\nrule", "2:1", "expected (rule name …), found rule"),
    "a form of another kind": (f"{RULE}\n(law r)", "2:1", "expected (rule name …), found (law r)"),
    "forms without end": (f"{'(' * 5000}{')' * 5000}", "1:1", "nested too deeply"),
    "a term without end": (f"(rule r {GIVEN} (from {'(relu ' * 5000}?x{')' * 5000}) (to ?x))", "1:1", "too deeply"),
}

HEADER = {
    "no version": ("(rules)", "1:1", "expected (rules :format 1 …), found (rules)"),
    "a version that is not first": ('(rules :seal "12" :format 1)', "1:1", "expected (rules :format 1 …), found"),
    "a version without its number": ("(rules :format)", "1:1", "expected (rules :format 1 …), found (rules :format)"),
    "a newer version of another layout": (
        "(rules :format 2 (new))",
        "1:1",
        "rule format 2; this version reads format 1",
    ),
    "a version in quotes": ('(rules :format "1")', "1:1", 'rule format "1"; this version reads format 1'),
    "a fact without a colon": (
        '(rules :format 1 seal "12")',
        "1:18",
        'expected :name "value", each name once, found seal',
    ),
    "a fact that is a form": ("(rules :format 1 (seal))", "1:18", 'expected :name "value", found (seal)'),
    "a fact without a value": (
        "(rules :format 1 :seal)",
        "1:18",
        "a string in double quotes after :seal, found nothing",
    ),
    "a fact that is no string": (
        "(rules :format 1 :seal 12)",
        "1:24",
        "a string in double quotes after :seal, found 12",
    ),
    "a fact that stands twice": ('(rules :format 1 :by "a" :by "a")', "1:26", "each name once, found :by"),
    "a second version": ('(rules :format 1 :format "1")', "1:18", "each name once, found :format"),
    "a seal that is no digest": (
        '(rules :format 1 :seal "none")',
        "1:24",
        "expected a digest in digits 0-9a-f after :seal",
    ),
    "a digest of laws that is none": ('(rules :format 1\n :laws "")', "2:8", "expected a digest in digits 0-9a-f"),
    "a digest of operators in capitals": (
        '(rules :format 1 :operators "AB")',
        "1:29",
        "expected a digest in digits 0-9",
    ),
    "two headers": ("(rules :format 1)\n(rules :format 1)", "2:1", "expected one header, before all rules"),
    "a header below a rule": (f"{RULE}\n(rules :format 1)", "2:1", "expected one header, before all rules"),
}

PARTS = {
    "no name": ("(rule)", "1:1", "expected (rule name …), found (rule)"),
    "a number as name": (f"(rule 1.50 {GIVEN})", "1:7", "expected (rule name …), found 1.5"),
    "a string as name": (f'(rule "r" {GIVEN})', "1:7", 'expected (rule name …), found "r"'),
    "a part as name": (f"(rule {GIVEN})", "1:7", "expected (rule name …), found (given"),
    "no given": ("(rule r (from ?x) (to ?x))", "1:1", "rule r has no (given …)"),
    "no from": (f"(rule r {GIVEN} (to ?x))", "1:1", "rule r has no (from …)"),
    "no to": (f"{FROM})", "1:1", "rule r has no (to …)"),
    "an unknown part": (f"{FROM} (too ?x))", "2:19", "expected given, if, from, where, to or by, found (too ?x)"),
    "two of given": (f"{FROM} {GIVEN} (to ?x))", "2:19", "expected one (given …), rule r has a second"),
    "two of if": (f"{FROM}\n (if (<= 2 m))\n (if (<= 2 k)) (to ?x))", "4:2", "expected one (if …)"),
    "two of from": (f"{FROM} (from (relu ?x)) (to ?x))", "2:19", "expected one (from …)"),
    "two of where": (f"{FROM} (where) (where) (to ?x))", "2:27", "expected one (where …)"),
    "two of to": (f"{FROM} (to ?x) (to ?x))", "2:27", "expected one (to …)"),
    "two of by": (f"{FROM} (to ?x) (by a) (by a))", "2:34", "expected one (by …)"),
    "a form in by": (f"{FROM} (to ?x) (by (a)))", "2:31", "expected the name of a law, found (a)"),
    "a number in by": (f"{FROM} (to ?x) (by 7))", "2:31", "expected the name of a law, found 7"),
    "an option in place of a part": (f"{FROM} (to ?x) :by a)", "2:27", "expected given, if, from, where, to or by"),
    "two rules of one name": (f"{RULE}\n\n{RULE}", "3:1", "the rule at f.rules:1:1 is called r too"),
}

NAMES = {
    "a tensor given twice": (
        "(rule r (from) (to)\n (given (?x m) (?x n)))",
        "2:16",
        "another name, ?x is taken already",
    ),
    "a tensor without a sign": ("(rule r (from) (to)\n (given (x m)))", "2:9", "(?tensor size …), found (x m)"),
    "a tensor without a name": ("(rule r (from) (to)\n (given (? m)))", "2:9", "(?tensor size …), found (? m)"),
    "a tensor without a shape": ("(rule r (from) (to)\n (given ?x))", "2:9", "(?tensor size …), found ?x"),
    "a size that is a tensor": ("(rule r (from) (to)\n (given (?x ?m)))", "2:13", "expected a size, found ?m"),
    "a size that is a string": ('(rule r (from) (to)\n (given (?x "m")))', "2:13", 'expected a size, found "m"'),
    "a size of nothing": ("(rule r (from) (to)\n (given (?x 2 0)))", "2:15", "expected a size of at least 1, found 0"),
    "a tensor that is not given": (f"{FROM} (to ?z))", "2:23", "expected a term or a tensor that was given, found ?z"),
    "a tensor that from leaves unbound": (f"{FROM} (to ?y))", "1:1", "rule r: unbound variable ?y on the right"),
    "a size that from leaves unbound": (f"{FROM} (to (slice 0 0 q ?x)))", "1:1", "unbound size q on the right"),
    "a condition on no size of it": (f"{FROM} (if (= q 2)) (to ?x))", "1:1", "unbound size q on the right or in the"),
    "a condition on no tensor of it": (f"{FROM} (if (nonzero ?y)) (to ?x))", "1:1", "is about no variable of the left"),
    "a condition on a tensor unknown": (
        f"{FROM} (if (nonzero ?z)) (to ?x))",
        "2:32",
        "a tensor that was given, found ?z",
    ),
    "a condition unknown": (
        f"{FROM} (if (negative ?x)) (to ?x))",
        "2:23",
        "(=, <=, divides, !=) or a fact about a tensor",
    ),
    "a condition always false": (f"{FROM} (if (= m (+ m 1))) (to ?x))", "2:23", "this condition is always false"),
}

WHERE = {
    "a part of itself": (f"{FROM} (where (?w (relu ?w))) (to ?w))", "2:36", "named before ?w, found ?w"),
    "parts of each other": (
        f"{FROM}\n (where (?v (relu ?w))\n        (?w (relu ?v))) (to ?w))",
        "3:19",
        "expected a tensor that was given or a part named before ?v, found ?w",
    ),
    "a part named later": (f"{FROM} (where (?v (relu ?w)) (?w ?x)) (to ?v))", "2:36", "named before ?v, found ?w"),
    "a part that is not named": (f"{FROM} (where (?v (relu ?u))) (to ?v))", "2:36", "tensor that was given, found ?u"),
    "a name given twice": (f"{FROM} (where (?w ?x) (?w ?x)) (to ?w))", "2:34", "another name, ?w is taken already"),
    "a name of what is given": (f"{FROM} (where (?x (relu ?x))) (to ?x))", "2:26", "another name, ?x is taken already"),
    "a name without a sign": (f"{FROM} (where (w ?x)) (to ?x))", "2:26", "expected (?name term), found (w ?x)"),
    "a name without a term": (f"{FROM} (where (?w)) (to ?x))", "2:26", "expected (?name term), found (?w)"),
    "a part in from": (f"(rule r {GIVEN}\n (from (relu ?w)) (where (?w ?x)) (to ?w))", "2:14", "was given, found ?w"),
}

TERMS = {
    "an unknown operator": (f"{FROM} (to (rely ?x)))", "2:23", "unknown operator rely; near to it are relu"),
    "too few inputs": (f"{FROM} (to (add ?x)))", "2:23", "add: takes 2 inputs, got 1"),
    "too many inputs": (f"{FROM} (to (relu ?x ?x)))", "2:23", "relu: takes 1 inputs, got 2"),
    "no attribute": (f"{FROM} (to (concat)))", "2:23", "concat needs its attribute axis"),
    "an attribute of another kind": (f"{FROM} (to (concat m ?x ?x)))", "2:31", "concat axis is a number, found m"),
    "an attribute that is unknown": (f"{FROM} (to (relu :slope 1 ?x)))", "2:29", "relu has no attribute slope"),
    "shapes that never fit": (f"{FROM} (to (concat 5 ?x ?x)))", "2:23", "concat: no axis 5 in (m, k) and (m, k)"),
    "a shape that nothing tells": (f"{FROM} (to (expand (0) ?x)))", "2:23", "shape of this expand is not told"),
}

CASES = {**SYNTAX, **HEADER, **PARTS, **NAMES, **WHERE, **TERMS}


def test_no_two_cases_have_one_name() -> None:
    assert len(CASES) == sum(map(len, (SYNTAX, HEADER, PARTS, NAMES, WHERE, TERMS)))


@pytest.mark.parametrize(("text", "place", "expected"), CASES.values(), ids=CASES)
def test_it_is_refused_with_its_place_and_what_was_expected(text: str, place: str, expected: str) -> None:
    with pytest.raises((ParseError, RuleError)) as raised:
        parse_file(text, "f.rules")
    complaint = str(raised.value)
    assert complaint.startswith(f"f.rules:{place}: ")
    assert expected in complaint
    assert "\n" not in complaint


def test_a_file_is_refused_under_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "my own.rules"
    path.write_text(f"{RULE}\n{RULE}", encoding="utf-8")
    with pytest.raises(RuleError) as raised:
        load_rules(path)
    assert str(raised.value).startswith(f"{path}:2:1: ")


def test_the_command_says_it_on_one_line_and_ends_with_2(inside: Callable[..., Ran], tmp_path: Path) -> None:
    (tmp_path / "f.rules").write_text(WHERE["a part of itself"][0], encoding="utf-8")
    ran = inside("rules", "list", "f.rules", cwd=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert "f.rules:2:36: expected a tensor that was given or a part named before ?w, found ?w" in ran.err


def test_a_comment_after_a_strange_line_end_still_belongs_to_its_rule() -> None:
    """To the reader of expressions a line ends at a line feed alone, so it has to where comments are counted."""
    strange = "\u2028\u0085\f"
    (rule,) = parse_file(f"; One{strange}line.\n; Two.\n{RULE}").rules
    assert rule.comment == f"One{strange}line.\nTwo."
