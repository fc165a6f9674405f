"""Rules as JSON: what prints parses to the same, the schema knows it, and what is malformed is refused at its path."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator, meta

from superopt.demands import assuming
from superopt.errors import ParseError, RuleError
from superopt.operators import CATALOGUE
from superopt.operators.reader import RELATIONS
from superopt.rules.exchange.json_form import json_schema, parse_json, print_json
from superopt.rules.format import RuleFile, load_rules, parse_file, print_file
from superopt.rules.rule import Rule
from superopt.shipped import shipped_rules
from superopt.term import FACTS, variable
from tests.operators.general import general_terms

CASES = sorted((Path(__file__).parents[1] / "verify" / "cases").glob("*.rules"))
FILES = [*shipped_rules(), *CASES]
SCHEMA = Draft202012Validator(json_schema())

FILE = parse_file("""
(rules :format 1 :operators "0a" :settings "by hand")
; Two products with one factor,
;   cut in two.
(rule share
  (given (?a m k) (?b k n) (?c k r))
  (if (<= n r) (divides 2 (+ n (* 3 (div r 2)))) (nonnegative ?a) (nonzero ?b))
  (from (matmul ?a ?b) (matmul ?a ?c))
  (where (?w (matmul ?a (concat 1 ?b ?c))) (?v (relu ?w)))
  (to (slice 1 0 n ?v) (slice 1 n (+ n r) (add ?v ?w)))
  (by one two))
(rule plain
  (given (?x n c h w) (?k o c i 3) (?s))
  (from (mul (conv :strides (2 2) ?x ?k) (expand () ?s)))
  (to (conv :strides (2 2) (mul ?x (expand () (scalar 1e400))) ?k)))
""")


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_a_file_that_is_printed_parses_to_the_same_rules_and_header(path: Path) -> None:
    file = load_rules(path)
    assert file.rules
    assert parse_json(print_json(file)) == file


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_what_is_printed_is_valid_under_the_schema(path: Path) -> None:
    SCHEMA.validate(json.loads(print_json(load_rules(path))))


def test_a_file_with_every_part_keeps_all_of_them() -> None:
    read = parse_json(print_json(FILE))
    assert read == FILE
    assert read.rules[0].comment == "Two products with one factor,\n  cut in two."
    assert (len(read.rules[0].conditions), len(read.rules[0].facts), read.rules[0].by) == (2, 2, ("one", "two"))
    assert print_json(read) == print_json(FILE)
    SCHEMA.validate(json.loads(print_json(FILE)))


@pytest.mark.parametrize("name", [n for n, c in CATALOGUE.items() if c.arity])
def test_a_rule_of_any_operator_prints_and_parses(name: str) -> None:
    for term in general_terms(name):
        with assuming():
            file = RuleFile((Rule("r", (term,), (CATALOGUE["cast"]()(term),)),))
        assert parse_json(print_json(file)) == file
        SCHEMA.validate(json.loads(print_json(file)))


LINES = st.characters(exclude_characters="\r\0", exclude_categories=["Cs"])
"""What lines of text are made of."""


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.text(LINES, max_size=20), st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), st.text(max_size=9)))
def test_comments_and_facts_are_kept_whatever_they_contain(comment: str, header: dict[str, str]) -> None:
    header = {k: v for k, v in header.items() if k not in ("seal", "laws", "format")}
    file = RuleFile((replace(FILE.rules[0], comment=comment),), header)
    assert parse_json(print_json(file)) == file


def test_a_part_that_is_used_twice_is_written_once() -> None:
    (rule, *_) = json.loads(print_json(FILE))["rules"]
    assert [part["name"] for part in rule["where"]] == ["w0", "w1"]
    assert rule["where"][1]["term"]["inputs"] == rule["to"][1]["inputs"][0]["inputs"][1:] == [{"tensor": "w0"}]
    parsed = parse_json(print_json(FILE)).rules[0]
    assert parsed.target[0].inputs[0] is parsed.target[1].inputs[0].inputs[0]


def test_a_part_is_not_named_as_a_tensor_that_is_given() -> None:
    (x,) = (variable("w0", (2, 3)),)
    relu, add = CATALOGUE["relu"](), CATALOGUE["add"]()
    file = RuleFile((Rule("r", (relu(x),), (add(relu(relu(x)), relu(relu(x))),)),))
    assert parse_json(print_json(file)) == file
    assert parse_file(print_file(file)).rules == file.rules


def test_every_attribute_and_every_shape_is_there() -> None:
    (source,) = json.loads(print_json(FILE))["rules"][1]["from"]
    conv, expand = source["inputs"]
    assert conv["attributes"] == {"strides": [2, 2], "pads": [0, 0, 0, 0], "dilations": [1, 1], "group": 1}
    assert len(expand["attributes"]["to"]) == 4


def test_attributes_with_a_default_may_be_left_out() -> None:
    document = json.loads(print_json(FILE))
    for side in ("from", "to"):
        conv = document["rules"][1][side][0]
        conv = conv["inputs"][0] if side == "from" else conv
        conv["attributes"] = {"strides": [2, 2]}
    assert parse_json(json.dumps(document)) == FILE


def test_the_schema_is_one_and_knows_each_condition() -> None:
    meta.validate(json_schema())
    assert set(json_schema()["$defs"]["condition"]["properties"]) == {*RELATIONS, *FACTS}


def test_the_schema_knows_no_operator_by_name() -> None:
    text = json.dumps(json_schema()["$defs"]["application"])
    assert not [name for name in CATALOGUE if f'"{name}"' in text]


Change = Callable[[Any], object]

BROKEN: dict[str, tuple[Change, str, str]] = {
    "an unknown operator": (lambda r: r["from"][0].update(operator="foo"), "from[0].operator", "unknown operator foo"),
    "an operator that is no word": (lambda r: r["from"][0].update(operator="a b"), "from[0].operator", "a word"),
    "a term without inputs": (lambda r: r["from"][1].pop("inputs"), "from[1]", "expected an object with inputs"),
    "a term that is a list": (lambda r: r["from"].append([]), "from[2]", "expected an object, found []"),
    "a term that is two": (lambda r: r["from"][0].update(tensor="a"), "from[0].operator", "unknown key"),
    "an unbound tensor": (lambda r: r["to"].append({"tensor": "q"}), "to[2].tensor", "was given, found ?q"),
    "too few inputs": (lambda r: r["from"][0]["inputs"].pop(), "from[0]", "matmul: takes 2 inputs, got 1"),
    "no attribute": (lambda r: r["to"][0]["attributes"].pop("axis"), "to[0]", "slice needs its attribute axis"),
    "an unknown attribute": (
        lambda r: r["from"][0]["attributes"].update(slope=1),
        "from[0].attributes.slope",
        "matmul has no attribute slope",
    ),
    "an attribute of another kind": (
        lambda r: r["to"][0]["attributes"].update(axis="one"),
        "to[0].attributes.axis",
        'slice axis is a number, found "one"',
    ),
    "a truth value as attribute": (
        lambda r: r["to"][0]["attributes"].update(axis=True),
        "to[0].attributes.axis",
        "expected a whole number",
    ),
    "a size that is a string": (lambda r: r["given"][0]["shape"].append("m"), "given[0].shape[2]", 'found "m"'),
    "a size of nothing": (lambda r: r["given"][0]["shape"].append(0), "given[0].shape[2]", "at least 1, found 0"),
    "a size of two symbols": (
        lambda r: r["given"][0]["shape"].append({"symbol": "a", "tensor": "b"}),
        "given[0].shape[2]",
        'expected a whole number, {"symbol": name} or {operation: [size, …]}',
    ),
    "an unknown operation": (
        lambda r: r["given"][0]["shape"].append({"+": [{"^": [2, 2]}]}),
        'given[0].shape[2]["+"][0]',
        "expected a size made with +, *, - or div",
    ),
    "a symbol that is a number": (
        lambda r: r["given"][0]["shape"].append({"symbol": "12"}),
        "given[0].shape[2].symbol",
        "a word",
    ),
    "a condition unknown": (lambda r: r["if"].append({">": [1, 2]}), "if[4]", "expected a relation of two sizes"),
    "a part of itself": (
        lambda r: r["where"][0]["term"]["inputs"].append({"tensor": "w0"}),
        "where[0].term.inputs[2].tensor",
        "expected a tensor that was given or a part named before ?w0, found ?w0",
    ),
    "a name given twice": (lambda r: r["given"].append(r["given"][0]), "given[3]", "?a is taken already"),
    "an unknown key": (
        lambda r: r.update(when=1),
        "when",
        "unknown key; expected name, given, from, to, comment, if, where, by",
    ),
    "no target": (lambda r: r.pop("to"), "", "expected an object with to"),
    "a target too few": (lambda r: r["to"].pop(), "", "rule share: 2 sources and 1 targets"),
    "a comment that is none": (lambda r: r.update(comment=["one"]), "comment", 'expected a string, found ["one"]'),
    "a law that is none": (lambda r: r["by"].append("a b"), "by[2]", "expected a word"),
    "a name with a line end": (lambda r: r.update(name="a\n"), "name", "expected a word without spaces"),
}


@pytest.mark.parametrize(("change", "path", "expected"), BROKEN.values(), ids=BROKEN)
def test_a_malformed_rule_is_refused_at_its_path(change: Change, path: str, expected: str) -> None:
    document = json.loads(print_json(FILE))
    change(document["rules"][0])
    with pytest.raises((ParseError, RuleError)) as raised:
        parse_json(json.dumps(document), "f.json")
    complaint = str(raised.value)
    assert complaint.startswith(f"f.json: rules[0]{'.' if path else ''}{path}: ")
    assert expected in complaint
    assert "\n" not in complaint


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "f.json:1:1: expected JSON: "),
        ('{"format": 1,\n "rules": [}', "f.json:2:12: expected JSON: "),
        ("[" * 100_000, "f.json: expected JSON: "),
        ('{"format": NaN}', "f.json: expected JSON: NaN is none"),
        ("1", "f.json: expected an object, found 1"),
        ("{}", "f.json: expected an object with format 1, found {}"),
        ('{"format": 2, "all": "new"}', "f.json: format: rule format 2; this version reads format 1"),
        ('{"format": "1"}', 'f.json: format: rule format "1"; this version reads format 1'),
        ('{"format": true}', "f.json: format: rule format true; this version reads format 1"),
        ('{"format": 1}', "f.json: expected an object with rules"),
        ('{"format": 1, "rules": {}}', "f.json: rules: expected a list, found {}"),
        ('{"format": 1, "rules": [1]}', "f.json: rules[0]: expected an object, found 1"),
        ('{"format": 1, "rules": [], "rule": 1}', "f.json: rule: unknown key; expected format, rules, header"),
        ('{"format": 1, "rules": [], "rules": []}', "f.json: rules: expected this key once"),
        ('{"format": 1, "rules": [], "header": []}', "f.json: header: expected an object, found []"),
        ('{"format": 1, "rules": [], "header": {"a": 1}}', "f.json: header.a: expected a string, found 1"),
        ('{"format": 1, "rules": [], "header": {"a b": ""}}', 'f.json: header["a b"]: expected a word'),
        ('{"format": 1, "rules": [], "header": {"seal": "?"}}', "f.json: header.seal: expected a digest"),
        ('{"format": 1, "rules": [], "header": {"format": "1"}}', "f.json: header.format: expected :name"),
    ],
)
def test_a_malformed_document_is_refused_where_it_stands(text: str, complaint: str) -> None:
    with pytest.raises((ParseError, RuleError)) as raised:
        parse_json(text, "f.json")
    assert str(raised.value).startswith(complaint)
    assert "\n" not in str(raised.value)


def test_two_rules_of_one_name_are_refused() -> None:
    document = json.loads(print_json(FILE))
    document["rules"][1]["name"] = "share"
    with pytest.raises(
        RuleError, match=r"^f\.json: rules\[1\]: .*the rule at f\.json: rules\[0\] is called share too$"
    ):
        parse_json(json.dumps(document), "f.json")


@pytest.mark.parametrize("depth", [400, 100_000])
def test_terms_without_end_are_refused(depth: int) -> None:
    term = '{"operator": "relu", "inputs": [' * depth + '{"tensor": "x"}' + "]}" * depth
    rule = f'{{"name": "r", "given": [{{"name": "x", "shape": []}}], "from": [{term}], "to": [{{"tensor": "x"}}]}}'
    with pytest.raises(
        (ParseError, RuleError), match=r"^f\.json: .*(nested too deeply|recursion|more than 200 one above)"
    ):
        parse_json(f'{{"format": 1, "rules": [{rule}]}}', "f.json")


REFUSED_BY_SCHEMA: dict[str, Change] = {
    "another format": lambda d: d.update(format=2),
    "no rules": lambda d: d.pop("rules"),
    "an unknown key": lambda d: d.update(version=1),
    "a digest that is none": lambda d: d["header"].update(seal="?"),
    "a fact that is no string": lambda d: d["header"].update(seeds=1),
    "a rule without a name": lambda d: d["rules"][0].pop("name"),
    "a rule from nothing": lambda d: d["rules"][0].update({"from": [], "to": []}),
    "a size that is a string": lambda d: d["rules"][0]["given"][0]["shape"].append("m"),
    "a size of nothing": lambda d: d["rules"][0]["given"][0]["shape"].append(0),
    "a symbol that is a number": lambda d: d["rules"][0]["given"][0]["shape"].append({"symbol": "1e3"}),
    "a difference of three": lambda d: d["rules"][0]["given"][0]["shape"].append({"-": [1, 2, 3]}),
    "a relation of one size": lambda d: d["rules"][0]["if"].append({"=": [1]}),
    "a fact of a size": lambda d: d["rules"][0]["if"].append({"nonzero": [{"symbol": "m"}]}),
    "a term without inputs": lambda d: d["rules"][0]["from"][0].pop("inputs"),
    "a term of two kinds": lambda d: d["rules"][0]["from"][0].update(tensor="a"),
    "an attribute that is an object": lambda d: d["rules"][0]["from"][0]["attributes"].update(a={"b": 1}),
}


@pytest.mark.parametrize("change", REFUSED_BY_SCHEMA.values(), ids=REFUSED_BY_SCHEMA)
def test_what_the_schema_refuses_is_refused_when_it_is_read(change: Change) -> None:
    document = json.loads(print_json(FILE))
    change(document)
    assert not SCHEMA.is_valid(document)
    with pytest.raises((ParseError, RuleError)):
        parse_json(json.dumps(document))


MANGLED = [RuleFile((rule,), {"seal": "1a"}) for path in CASES for rule in load_rules(path).rules] + [FILE]
ODD: list[Any] = [
    *(None, True, 0, -1, 1.5, 10**30, "", "x", "m", "?x", ":axis", "a b", "inf", "relu", "expand", [], {}),
    *({"tensor": "x"}, {"symbol": "m"}, {"+": [1, {"symbol": "n"}]}, {"nonzero": [{"tensor": "x"}]}),
    {"operator": "relu", "inputs": [{"tensor": "x"}]},
]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _places(value[key])


@settings(max_examples=600, deadline=None, derandomize=True)
@given(st.data())
def test_a_mangled_document_parses_to_what_prints_or_is_refused_never_crashes(data: st.DataObject) -> None:
    document = json.loads(print_json(data.draw(st.sampled_from(MANGLED))))
    for _ in range(data.draw(st.integers(1, 2))):
        holder, key = data.draw(st.sampled_from(list(_places(document))))
        match data.draw(st.sampled_from(["replace", "take away", "copy"])):
            case "replace":
                holder[key] = copy.deepcopy(data.draw(st.sampled_from(ODD)))
            case "take away":
                del holder[key]
            case _:
                other, at = data.draw(st.sampled_from(list(_places(document))))
                holder[key] = copy.deepcopy(other[at])
    try:
        file = parse_json(json.dumps(document), "f.json")
    except (ParseError, RuleError) as error:
        complaint = str(error)
    else:
        complaint = "f.json: "
        assert SCHEMA.is_valid(document)
        assert parse_json(print_json(file)) == file
        assert parse_file(print_file(file)) == file
    assert complaint.startswith("f.json: ")
    assert "\n" not in complaint
