"""What `docs/rule-format.md` says of the rule file is so, block by block."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from superopt.errors import ParseError, SuperoptError
from superopt.operators import CATALOGUE
from superopt.operators.reader import RELATIONS, dim_sexp, read_dim
from superopt.rules.exchange.json_form import parse_json, print_json
from superopt.rules.format import RuleFile, parse_file, print_file
from superopt.shipped import shipped_rules
from superopt.term import FACTS
from superopt.text import Atom, Sexp, read, show
from superopt.verify.check import verify
from superopt.verify.prove import Proved
from superopt.verify.trusted import sealed

PAGE = (Path(__file__).parents[2] / "docs" / "rule-format.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
(RULES,) = [body for language, body in BLOCKS if language == "rules"]
DOCUMENT, CONDITIONS, ATTRIBUTES = [body for language, body in BLOCKS if language == "json"]
FILE = parse_file(RULES)
TEXTS = [RULES, *(path.read_text(encoding="utf-8") for path in shipped_rules())]


def _plain(sexp: Sexp) -> Any:
    """An expression as the reader on the page gives it."""
    return sexp.value if isinstance(sexp, Atom) else [_plain(item) for item in sexp.items]


def _row(text: str) -> str:
    """The first cell of the one row of a table that holds some text."""
    (row,) = [line for line in PAGE.splitlines() if line.startswith("| ") and text in line]
    return row.split("|")[1]


def test_no_block_of_the_page_is_without_a_test() -> None:
    assert [language for language, _ in BLOCKS] == ["rules", "ebnf", "python", "json", "json", "json", ""]


def test_the_file_on_the_page_is_as_it_would_be_printed() -> None:
    assert print_file(FILE) == RULES
    assert len(FILE.rules) == 2
    assert all(rule.comment and rule.by for rule in FILE.rules)


@pytest.mark.parametrize("rule", FILE.rules, ids=lambda r: r.name)
def test_a_rule_on_the_page_proves(rule: Any) -> None:
    assert isinstance(verify(rule), Proved)


def test_the_reader_on_the_page_reads_what_superopt_reads() -> None:
    names: dict[str, Callable[[str], Any]] = {}
    (code,) = [body for language, body in BLOCKS if language == "python"]
    exec(code, names)  # type: ignore[arg-type]
    odd = '(a "b \\" (c" -1 +2 1.5 .5 1e3 -inf nan + - ?x :y) ; d "\n(()) 7'
    for text in [*TEXTS, odd]:
        assert repr(names["expressions"](text)) == repr([_plain(sexp) for sexp in read(text)])


def test_the_grammar_names_what_the_reader_tells_apart() -> None:
    (grammar,) = [body for language, body in BLOCKS if language == "ebnf"]
    defined = [line.split(" = ")[0].strip() for line in grammar.splitlines() if " = " in line]
    assert defined == ["file", "expression", "integer", "real", "string", "word", "comment"]


def test_the_header_has_the_facts_of_the_table() -> None:
    file = sealed(FILE.rules, {"solver": "z3", "settings": ""})
    assert [f for f in file.header if f"| `:{f}` |" in PAGE] == list(file.header)
    assert PAGE.count("\n| `:") == len(file.header)
    assert {len(file.header[name]) for name in ("operators", "laws")} == {16}


def test_the_seal_is_the_digest_that_the_page_says() -> None:
    file = sealed(FILE.rules, {"solver": "z3"})
    rest = "\n".join(print_file(file).split("\n")[2:])
    digest = hashlib.sha256(f"{file.header['operators']}\n{file.header['laws']}\n{rest}".encode()).hexdigest()
    assert file.header["seal"] == digest[:32]


def test_a_newer_version_is_refused_in_the_words_of_the_page() -> None:
    with pytest.raises(SuperoptError) as raised:
        parse_file("(rules :format 2)", "f.rules")
    assert f"`{str(raised.value).removeprefix('f.rules:1:1: ')}`" in PAGE


def test_the_size_on_the_page_is_as_it_would_be_printed() -> None:
    (size,) = re.findall(r"without `-`: `(.*?)`", PAGE)
    (sexp,) = read(size)
    assert show(dim_sexp(read_dim(sexp))) == size


def test_the_conditions_of_the_table_are_those_that_there_are() -> None:
    named = re.findall(
        r"`\((\S+) (?:a b|\?x)\)`", "".join(map(_row, ("compare so", "a multiple of", "below 0", "is 0 |", "infinite")))
    )
    assert sorted(named) == sorted([*RELATIONS, *FACTS])


def test_the_types_of_the_table_are_those_of_attributes() -> None:
    used = {cls.__dataclass_fields__[f.name].type for cls in CATALOGUE.values() for f in cls.fields}  # type: ignore[attr-defined]
    table = PAGE[PAGE.index("| type | value |") :].split("\n\n")[0]
    assert set(re.findall(r"^\| `(.*?)` \|", table, re.MULTILINE)) == used


def test_a_short_expand_stands_for_what_the_page_says() -> None:
    short, full = re.findall(r"`(\(expand \(1\) .*?\?v\))`", PAGE)
    assert print_file(FILE).count(short) == 2
    assert parse_file(RULES.replace(short, full)) == FILE


def test_the_file_in_json_is_that_at_the_top_without_its_second_rule() -> None:
    assert parse_json(DOCUMENT) == RuleFile(FILE.rules[:1], FILE.header)
    assert json.loads(print_json(RuleFile(FILE.rules[:1], FILE.header))) == json.loads(DOCUMENT)


def test_the_second_rule_in_json_has_what_the_page_shows_of_it() -> None:
    rule = json.loads(print_json(FILE))["rules"][1]
    assert rule["if"] == json.loads(CONDITIONS)
    assert json.dumps(json.loads(ATTRIBUTES)) in json.dumps(rule)


def test_errors_read_as_on_the_page() -> None:
    text, document = BLOCKS[-1][1].splitlines()
    with pytest.raises(ParseError) as raised:
        parse_file("(rules :format 1)\n(rule r (given (?x m k) (?y k n))\n  (from (matmil ?x ?y)) (to ?x))", "f.rules")
    assert str(raised.value) == text
    with pytest.raises(ParseError) as raised:
        parse_json(DOCUMENT.replace('"matmul"', '"matmil"', 1), "f.json")
    assert str(raised.value) == document
