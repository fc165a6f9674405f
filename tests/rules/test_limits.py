"""Rules that no file, printer or machine could hold are refused by name, or end in `unknown`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from superopt.errors import ParseError, RuleError
from superopt.rules.exchange.json_form import parse_json, print_json
from superopt.rules.format import parse_file
from superopt.rules.rule import Rule
from superopt.verify.check import Refuted, verify
from superopt.verify.prove import Proved, Unknown
from tests.commands import Ran, assert_refused, files

BODY = "(given (?x n)) (from (relu (relu ?x))) (to (relu ?x))"
WRONG = "(given (?x n)) (from (relu ?x)) (to (sigmoid ?x))"
(GOOD,) = parse_file(f"(rules :format 1) (rule good {BODY})").rules
NAMES = (
    "../up",
    "/tmp/up",
    "a/b",
    "..",
    ".hidden",
    "a\\b",
    "1e3",
    "7",
    "a b",
    "a(b",
    'q"',
    "x" * 300,
    "",
    "\x1b[31m",
    "a\x00b",
)


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_name_that_a_file_could_not_have_is_refused(name: str) -> None:
    with pytest.raises(RuleError, match="its name is expected to be a word"):
        Rule(name, GOOD.source, GOOD.target)


@pytest.mark.parametrize("name", ["../up", "/tmp/up", "a/b"])
def test_no_name_leads_out_of_the_folder(name: str, tmp_path: Path, inside: Callable[..., Ran]) -> None:
    (tmp_path / "r.rules").write_text(f"(rules :format 1) (rule {name} {WRONG})")
    for command in (("verify", "r.rules", "--witnesses", "in/w"), ("obligations", "r.rules", "--out", "in/o")):
        ran = inside("rules", *command, cwd=tmp_path)
        assert_refused(ran, 2, "r.rules:1:19", "without slashes")
    assert set(files(tmp_path)) == {"r.rules"}


def test_nothing_of_the_users_is_removed_beside_a_witness(tmp_path: Path, inside: Callable[..., Ran]) -> None:
    (tmp_path / "r.rules").write_text(f"(rules :format 1) (rule b {WRONG}) (rule c {WRONG})")
    kept = tmp_path / "w" / ".b.partial" / "precious"
    kept.parent.mkdir(parents=True)
    kept.write_text("mine")
    assert "c: refuted" in inside("rules", "verify", "r.rules", "--witnesses", "w", cwd=tmp_path).out
    assert kept.read_text() == "mine"
    assert {p.name for p in (tmp_path / "w").iterdir()} == {".b.partial", "b", "c"}
    again = inside("rules", "verify", "r.rules", "--witnesses", "w", cwd=tmp_path)
    assert_refused(again, 2, "b: exists already; name another folder")


HUGE = {
    "a tensor of a billion": "(given (?x 1000000000)) (from (relu (relu ?x))) (to (relu ?x))",
    "a product of fourteen": f"(given (?x (* {'a ' * 14}))) (from (relu (relu ?x))) (to (relu ?x))",
    "wide pads": "(given (?x n)) (from (relu (pad (9000000000 0) ?x))) (to (pad (9000000000 0) (relu ?x)))",
    "a large matrix": "(given (?x n 1000000)) (from (matmul ?x (band 1000000))) (to ?x)",
    "a long range": f"(given (?x n)) (from (relu (cast (count {10**17})))) (to (cast (count {10**17})))",
    "an attribute past all numbers": f"(given (?x n c h w)) (from (avgpool (3 3) :whole {10**30} ?x)) (to ?x)",
    "an empty window": "(given (?x n c h w)) (from (lrn 0 ?x)) (to (relu ?x))",
}


@pytest.mark.parametrize("what", HUGE)
def test_what_no_memory_holds_ends_in_a_verdict(what: str) -> None:
    try:
        (rule,) = parse_file(f"(rules :format 1) (rule r {HUGE[what]})").rules
    except (ParseError, RuleError):
        return
    assert isinstance(verify(rule), Proved | Refuted | Unknown)


TEXTS = {
    "a product of thousands": f"(given (?x (* {'a ' * 5000}))) (from (relu ?x)) (to ?x)",
    "sums multiplied out": f"(given (?x (* {' '.join(f'(+ a{i} b{i})' for i in range(25))}))) (from (relu ?x)) (to ?x)",
    "a number past what ONNX can say": "(given (?x (* 9000000000000000000 9))) (from (relu ?x)) (to ?x)",
    "an axis below 0": "(given (?x n) (?y n)) (from (concat -1 ?x ?y)) (to ?x)",
    "a part doubled forty times": "(given (?x n)) (from (relu ?x)) (where (?w0 (add ?x ?x)) "
    + " ".join(f"(?w{i} (add ?w{i - 1} ?w{i - 1}))" for i in range(1, 40))
    + ") (to ?w39)",
    "a part three hundred deep": "(given (?x n)) (from (relu ?x)) (where (?w0 (relu ?x)) "
    + " ".join(f"(?w{i} (relu ?w{i - 1}))" for i in range(1, 300))
    + ") (to ?w299)",
}


@pytest.mark.parametrize("what", TEXTS)
def test_what_grows_without_end_is_refused_with_its_place(what: str) -> None:
    with pytest.raises((ParseError, RuleError), match=r"<text>:1:\d+"):
        parse_file(f"(rules :format 1) (rule r {TEXTS[what]})")


def test_a_file_of_many_parts_is_read_soon() -> None:
    parts = " ".join(f"(?w{i} (relu ?x))" for i in range(20_000))
    (rule,) = parse_file(f"(rules :format 1) (rule r (given (?x n)) (from (relu ?x)) (where {parts}) (to ?w7))").rules
    assert rule.target == rule.source


@pytest.mark.parametrize("comment", ["a\rb", "x\x00", "\ud800"], ids=ascii)
def test_a_comment_that_is_no_line_of_text_is_refused(comment: str) -> None:
    text = print_json(parse_file(f"(rules :format 1)\n; here\n(rule r {BODY})"))
    with pytest.raises((ParseError, RuleError), match="comment"):
        parse_json(text.replace('"here"', ascii(comment).replace("'", '"').replace("\\x", "\\u00")), "f.json")
