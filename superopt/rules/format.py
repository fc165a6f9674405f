"""The rule file: text that a person reads and a program parses; parsing what was printed gives the same rules.

    (rules :format 1 :operators "…" :laws "…" :solver "…" :settings "…")
    ; A comment belongs to the rule that follows it.
    (rule matmul-assoc
      (given (?x m k) (?y k n) (?z n r))
      (from (matmul (matmul ?x ?y) ?z))
      (to (matmul ?x (matmul ?y ?z)))
      (by matmul-assoc))

`(if condition …)` states what must hold of sizes, or of all elements of a variable (`(nonnegative ?x)`), `(where (?w
term) …)` names a shared part of the right-hand side. The reference is `docs/rule-format.md`; as JSON: `json_form.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from pathlib import Path

from superopt.errors import ParseError, RuleError
from superopt.operators.reader import condition_sexp, dim_sexp, fact_sexp, term_sexp
from superopt.rules.parser import parse_rule, shown, word_of
from superopt.rules.rule import Rule
from superopt.term import Term, subterms
from superopt.text import Atom, Form, Place, Sexp, form, read, show

FORMAT = 1
_DIGESTS = ("operators", "laws", "seal")


@dataclass(frozen=True)
class RuleFile:
    """A header of facts, and rules."""

    rules: tuple[Rule, ...]
    header: Mapping[str, str] = field(default_factory=dict)


def print_file(file: RuleFile) -> str:
    """The text of a rule file."""
    facts = " ".join(f":{key} {show(Atom(value, quoted=True))}" for key, value in file.header.items())
    return "\n".join([f"(rules :format {FORMAT}{' ' + facts if facts else ''})", "", *map(print_rule, file.rules)])


def print_rule(rule: Rule) -> str:
    """The text of a rule, a line for each of its parts."""
    lines = [form("given", *(form(f"?{v.label}", *map(dim_sexp, v.shape)) for v in rule.given))]
    asked = [*map(condition_sexp, rule.conditions), *map(fact_sexp, rule.facts)]
    lines += [form("if", *asked)] if asked else []
    lines += [form("from", *map(term_sexp, rule.source))]
    names: dict[Term, str] = {}
    where: list[Sexp] = []
    for term, name in shared_parts(rule).items():
        where.append(form(f"?{name}", term_sexp(term, names)))
        names[term] = name
    lines += [form("where", *where)] if where else []
    lines += [form("to", *(term_sexp(t, names) for t in rule.target))]
    lines += [form("by", *rule.by)] if rule.by else []
    comment = "".join(f"; {line}\n" for line in rule.comment.split("\n")) if rule.comment else ""
    return f"{comment}(rule {rule.name}\n  " + "\n  ".join(map(show, lines)) + ")\n"


def shared_parts(rule: Rule) -> dict[Term, str]:
    """Names for what is used more than once on the right, inputs before users; variables and numbers need none."""
    uses = Counter(i for t in subterms(*rule.target) for i in t.inputs) + Counter(rule.target)
    shared = [t for t in subterms(*rule.target) if uses[t] > 1 and t.inputs and not t.operator.free]  # type: ignore[attr-defined]
    taken = {v.label for v in rule.given}
    names = (name for i in count() if (name := f"w{i}") not in taken)
    return dict(zip(shared, names, strict=False))


def load_rules(path: Path) -> RuleFile:
    """Read a rule file. Raises `ParseError` with file, line and column, `RuleError` for one of another format, or that
    has neither a header nor a rule.
    """
    found = _parsed(read_rules(path), str(path))
    if not found.rules and not found.header:
        raise RuleError(f"{path}: there is no rule in this file")
    return found


def load_all_rules(path: Path) -> tuple[Rule, ...]:
    """The rules of a file, or of all `.rules` files of a folder, by name. Raises as `load_rules`; `RuleError` where a
    folder has none.
    """
    if not path.is_dir():
        return tuple(load_rules(path).rules)
    files = sorted(path.glob("*.rules"))
    if not files:
        raise RuleError(f"{path}: no .rules file in this folder")
    return tuple(rule for file in files for rule in load_rules(file).rules)


def read_rules(path: Path) -> str:
    """The text of a rule file. Raises `RuleError`."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise RuleError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise RuleError(f"{path}: not a rule file: no text in UTF-8 at byte {error.start}") from None


@lru_cache(maxsize=64)
def _parsed(text: str, source: str) -> RuleFile:
    """What a file holds is read once, however often models are optimized: of all shipped files that takes a second."""
    return parse_file(text, source)


def parse_file(text: str, source: str = "<text>") -> RuleFile:
    """The rules of a text; see `load_rules` for the errors raised."""
    comments = _comments(text)
    return file_of((sexp, comments.get(sexp.place.line, "")) for sexp in read(text, source))


def file_of(commented: Iterable[tuple[Sexp, str]]) -> RuleFile:
    """A file from its expressions, each with the comment above it. Raises `ParseError` or `RuleError`."""
    header: dict[str, str] | None = None
    rules: dict[str, tuple[Rule, Place]] = {}
    for sexp, comment in commented:
        part = _read_part(sexp, comment)
        if not isinstance(part, Rule):
            if header is not None or rules:
                raise ParseError(f"{sexp.place}: expected one header, before all rules")
            header = part
        elif part.name in rules:
            first = rules[part.name][1]
            raise RuleError(f"{sexp.place}: expected another name, the rule at {first} is called {part.name} too")
        else:
            rules[part.name] = part, sexp.place
    return RuleFile(tuple(rule for rule, _ in rules.values()), header or {})


def _read_part(sexp: Sexp, comment: str) -> Rule | dict[str, str]:
    try:
        if isinstance(sexp, Form) and sexp.head == "rules":
            return _read_header(sexp)
        if isinstance(sexp, Form) and sexp.head == "rule":
            return parse_rule(sexp, comment)
        raise ParseError(f"{sexp.place}: expected (rule name …), found {shown(sexp)}")
    except RecursionError:
        raise ParseError(f"{sexp.place}: expected a rule, found forms that are nested too deeply") from None


def _read_header(sexp: Form) -> dict[str, str]:
    opening, items = sexp.items[1:3], sexp.items[3:]
    if len(opening) < 2 or opening[0] != Atom(":format"):
        raise ParseError(f"{sexp.place}: expected (rules :format {FORMAT} …), found {shown(sexp)}")
    if show(opening[1]) != str(FORMAT):
        raise RuleError(f"{sexp.place}: rule format {shown(opening[1])}; this version reads format {FORMAT}")
    header: dict[str, str] = {}
    for key, value in zip(items[::2], [*items[1::2], None], strict=False):
        name = word_of(key, ':name "value"')
        fact = name.removeprefix(":")
        if fact in ("", name, "format", *header):
            raise ParseError(f'{key.place}: expected :name "value", each name once, found {name}')
        if not isinstance(value, Atom) or not isinstance(value.value, str) or not value.quoted:
            found = "nothing" if value is None else shown(value)
            raise ParseError(f"{(value or key).place}: expected a string in double quotes after {name}, found {found}")
        if fact in _DIGESTS and not re.fullmatch("[0-9a-f]+", value.value):
            raise ParseError(f"{value.place}: expected a digest in digits 0-9a-f after {name}, found {shown(value)}")
        header[fact] = value.value
    return header


def _comments(text: str) -> dict[int, str]:
    """The comment lines that stand directly above a line, by that line's number."""
    found: dict[int, str] = {}
    block: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith(";"):
            block.append(line[1:].removesuffix("\r").removeprefix(" "))
        else:
            if block:
                found[number] = "\n".join(block)
            block = []
    return found
