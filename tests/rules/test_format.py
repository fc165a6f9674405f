"""The rule file: what prints parses to the same rules, and what is malformed is refused where it stands."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superopt.demands import assuming
from superopt.dim import symbol
from superopt.errors import ParseError, RuleError
from superopt.operators import CATALOGUE
from superopt.rules.format import RuleFile, load_rules, parse_file, print_file, print_rule
from superopt.rules.rule import Rule
from superopt.shipped import shipped_rules
from superopt.term import Term, variable
from tests.operators.general import general_terms

CASES = sorted((Path(__file__).parents[1] / "verify" / "cases").glob("*.rules"))
FILES = [*shipped_rules(), *CASES]

GIVEN = "(given (?x m k) (?y k n))"
RULE = f"(rule r {GIVEN} (from (matmul ?x ?y)) (to (matmul ?x ?y)))"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_a_file_that_is_printed_parses_to_the_same_rules_and_header(path: Path) -> None:
    file = load_rules(path)
    assert file.rules
    assert parse_file(print_file(file)) == file


@pytest.mark.parametrize("path", shipped_rules(), ids=lambda p: p.name)
def test_a_shipped_file_is_as_it_would_be_printed(path: Path) -> None:
    assert print_file(load_rules(path)) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [n for n, c in CATALOGUE.items() if c.arity])
def test_a_rule_of_any_operator_prints_and_parses(name: str) -> None:
    for term in general_terms(name):
        with assuming():
            rule = Rule("r", (term,), (CATALOGUE["cast"]()(term),))
        assert parse_file(print_rule(rule)).rules == (rule,)


@st.composite
def _pointwise_terms(draw: st.DrawFn) -> Term:
    shape = tuple(map(symbol, "mn"))
    leaves = st.sampled_from([variable(v, shape) for v in "xyz"])
    unary = st.sampled_from(["relu", "sqrt"]).map(lambda n: CATALOGUE[n]())
    binary = st.sampled_from(["add", "mul", "div"]).map(lambda n: CATALOGUE[n]())
    terms = st.recursive(
        leaves,
        lambda t: st.builds(lambda op, a: op(a), unary, t) | st.builds(lambda op, a, b: op(a, b), binary, t, t),
        max_leaves=6,
    )
    return draw(unary)(draw(terms))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(_pointwise_terms(), min_size=1, max_size=3),
    st.from_regex(r"[a-z][a-z0-9-]{0,9}", fullmatch=True),
    st.lists(st.text("abc ;()", min_size=1).map(str.strip), max_size=2),
)
def test_random_rules_print_and_parse(source: list[Term], name: str, comment: list[str]) -> None:
    target = [t.inputs[0] for t in source]
    rule = Rule(name, tuple(source), tuple(target), by=("a", "b"), comment="\n".join(comment))
    assert parse_file(print_rule(rule)).rules == (rule,)


def test_shared_parts_of_the_right_are_named_once() -> None:
    (rule,) = (r for r in load_rules(CASES[0]).rules if r.name == "matmul-share-left")
    text = print_rule(rule)
    assert text.count("matmul ?a (concat") == 1
    assert "(where (?w0 (matmul ?a (concat 1 ?b ?c))))" in text
    assert rule.target[0].inputs[0] is rule.target[1].inputs[0]


def test_a_comment_above_a_rule_belongs_to_it() -> None:
    file = parse_file(f"; Not this one.\n\n; Two\n; lines.\n{RULE}")
    assert file.rules[0].comment == "Two\nlines."
    assert parse_file(print_file(file)) == file


def test_a_header_keeps_its_facts_whatever_they_contain() -> None:
    facts = {"settings": 'a "quoted" \\ text (with brackets) ; and more', "seal": "12", "empty": ""}
    file = RuleFile((), facts)
    assert parse_file(print_file(file)) == file


@pytest.mark.parametrize(
    ("text", "place", "complaint"),
    [
        (f"(rule r {GIVEN} (from (matmul ?x ?y)))", "1:1", r"rule r has no \(to …\)"),
        ("(rule r (from ?x) (to ?x))", "1:1", r"rule r has no \(given …\)"),
        ("(rule)", "1:1", r"expected \(rule name …\)"),
        ("(rule r (whither ?x))", "1:9", "expected given, if, from, where, to or by"),
        ("(rule r word)", "1:9", "expected given, if, from, where, to or by"),
        ("(axiom r)", "1:1", r"expected \(rule name …\)"),
        ("word", "1:1", r"expected \(rule name …\)"),
        ("()", "1:1", "expected a form that begins with a word"),
        ("(rule r (from) (to)\n (given x))", "2:9", r"expected \(\?tensor size …\)"),
        ("(rule r (from) (to)\n (given (x m)))", "2:9", r"expected \(\?tensor size …\)"),
        ("(rule r (from) (to)\n (given (?x (^ m 2))))", "2:13", r"expected a size made with"),
        (f"(rule r {GIVEN}\n (from (matmil ?x ?y)) (to ?x))", "2:8", "unknown operator matmil; near to it are matmul"),
        (f"(rule r {GIVEN}\n (from (matmul ?x ?z)) (to ?x))", "2:19", "expected a term or a tensor that was given"),
        (f"(rule r {GIVEN}\n (from (matmul ?x)) (to ?x))", "2:8", "matmul: takes 2 inputs, got 1"),
        (f"(rule r {GIVEN}\n (from (concat ?x ?y)) (to ?x))", "2:16", "concat axis is a number"),
        (f"(rule r {GIVEN}\n (from (concat 7 ?x ?y)) (to ?x))", "2:8", "concat: no axis 7"),
        (f"(rule r {GIVEN}\n (from (concat)) (to ?x))", "2:8", "concat needs its attribute axis"),
        (f"(rule r {GIVEN}\n (from (transpose (m n) ?x)) (to ?x))", "2:19", "part of its structure"),
        (f"(rule r {GIVEN}\n (from (relu :slope 1 ?x)) (to ?x))", "2:14", "relu has no attribute slope"),
        (f"(rule r {GIVEN}\n (from (expand (0) ?x)) (to ?x))", "2:8", "shape of this expand is not told"),
        (f"(rule r {GIVEN}\n (from (slice 0 3 2 ?x)) (to ?x))", "2:8", "slice: 3 to 2 is empty"),
        (f"(rule r {GIVEN}\n (if (= m m)) (from (relu ?x)) (to ?x))", "2:6", "this condition is always true"),
        (f"(rule r {GIVEN}\n (if (> m k)) (from (relu ?x)) (to ?x))", "2:6", "expected a relation"),
        (f"(rule r {GIVEN}\n (if m) (from (relu ?x)) (to ?x))", "2:6", "expected a relation"),
        (f"(rule r {GIVEN}\n (from (relu ?x)) (where ?w) (to ?x))", "2:26", r"expected \(\?name term\)"),
        (f"(rule r {GIVEN}\n (from (relu (div ?x) (to ?x))", "2:2", "'[(]' is never closed"),
        (f"(rule r {GIVEN}\n (from (slice 0 (div m 0) m ?x)) (to ?x))", "2:17", "divided by 0"),
    ],
)
def test_malformed_text_is_refused_with_file_line_and_column(text: str, place: str, complaint: str) -> None:
    with pytest.raises((ParseError, RuleError), match=complaint) as raised:
        parse_file(text, "f.rules")
    assert str(raised.value).startswith(f"f.rules:{place}: ")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f"(rule r {GIVEN} (from (relu ?x)) (to ?y))", r"unbound variable \?y on the right"),
        (f"(rule r {GIVEN} (from (relu ?x)) (to (slice 0 0 q ?x)))", "unbound size q on the right"),
        (f"(rule r {GIVEN} (if (= q 2)) (from (relu ?x)) (to ?x))", "unbound size q"),
        (f"(rule r {GIVEN} (from ?x) (to ?x))", "would match everything"),
        (f"(rule r {GIVEN} (from (relu ?x) (relu ?y)) (to ?x))", "2 sources and 1 targets"),
        (f"(rule r {GIVEN} (from) (to))", "0 sources and 0 targets"),
    ],
)
def test_a_rule_that_could_not_be_applied_is_refused_with_its_place(text: str, complaint: str) -> None:
    with pytest.raises(RuleError, match=rf"^f\.rules:2:1: rule r: .*{complaint}"):
        parse_file(f"; A comment.\n{text}", "f.rules")


def test_two_rules_of_one_name_are_refused() -> None:
    with pytest.raises(RuleError, match=r"^f\.rules:2:1: .*the rule at f\.rules:1:1 is called r too$"):
        parse_file(f"{RULE}\n{RULE}", "f.rules")


@pytest.mark.parametrize("version", ["2", "99", "0", "x", "1.1"])
def test_a_file_of_another_format_is_refused(version: str) -> None:
    complaint = re.escape(f"f.rules:1:1: rule format {version}; this version reads format 1")
    with pytest.raises(RuleError, match=complaint):
        parse_file(f"(rules :format {version}) {RULE}", "f.rules")


MANGLED = [rule for path in FILES for rule in load_rules(path).rules]
ODD = [
    "(",
    ")",
    "0",
    "-1",
    "1.5",
    "nan",
    "inf",
    "1e400",
    "?x",
    "?",
    ":",
    ":axis",
    '"s"',
    "m",
    "div",
    "expand",
    "scalar",
]


@settings(max_examples=600, deadline=None, derandomize=True)
@given(st.data())
def test_a_mangled_rule_parses_or_is_refused_as_text_never_crashes(data: st.DataObject) -> None:
    text = print_rule(data.draw(st.sampled_from(MANGLED)))
    tokens = re.findall(r"[()]|[^\s()]+", text)
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.integers(0, len(tokens) - 1))
        other = data.draw(st.sampled_from([*ODD, *sorted(set(tokens)), *CATALOGUE]))
        tokens[at : at + data.draw(st.integers(0, 1))] = data.draw(st.sampled_from([[other], []]))
    try:
        file = parse_file(" ".join(tokens), "f.rules")
    except (ParseError, RuleError) as error:
        complaint = str(error)
    else:
        complaint = "f.rules:"
        assert parse_file(print_file(file)) == file
    assert complaint.startswith("f.rules:")


def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    for name, content in {"binary.rules": b"\xff\xfe\x00", "folder.rules": None, "absent.rules": b""}.items():
        path = tmp_path / name
        if content is None:
            path.mkdir()
        elif content:
            path.write_bytes(content)
        with pytest.raises(RuleError, match=re.escape(str(path))):
            load_rules(path)


def test_a_file_without_a_header_has_no_facts() -> None:
    assert parse_file(RULE).header == {}
    assert replace(parse_file(RULE).rules[0], name="s").by == ()
