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

import hashlib
import inspect
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from types import ModuleType

from superopt.dim import assuming
from superopt.errors import ParseError, RuleError, SuperoptError
from superopt.operators.declare import CATALOGUE, is_shipped
from superopt.operators.laws import collected, derived, law, layout, reductions
from superopt.operators.laws.collected import declared_laws
from superopt.operators.reader import (
    condition_sexp,
    dim_sexp,
    fact_sexp,
    read_conditions,
    read_dim,
    read_term,
    term_sexp,
)
from superopt.rules.code import meaning
from superopt.rules.rule import Rule
from superopt.term import Term, subterms, variable
from superopt.text import Atom, Form, Place, Sexp, form, read, show

FORMAT = 1
LAW_MODULES = (law, collected, derived, layout, reductions)
"""What laws are derived by."""
_PARTS = ("given", "if", "from", "where", "to", "by")
_DIGESTS = ("operators", "laws", "seal")


@dataclass(frozen=True)
class RuleFile:
    """A header of facts, and rules."""

    rules: tuple[Rule, ...]
    header: Mapping[str, str] = field(default_factory=dict)


def operators_hash(rules: Iterable[Rule] = ()) -> str:
    """Changes whenever the meaning of a declaration may: a digest of the code of the modules that declare operators.

    Files of the user's count, with their laws, where rules are given that use an operator of theirs.
    """
    own = {name for name, cls in CATALOGUE.items() if not is_shipped(cls)}
    with_own = bool(own) and any(t.operator.name in own for r in rules for t in subterms(*r.source, *r.target))
    modules = {inspect.getmodule(cls) for cls in CATALOGUE.values() if with_own or is_shipped(cls)}
    return _digest(_code(m) for m in modules if m is not None)


def laws_hash() -> str:
    """Changes whenever a law of superopt's may: a digest of the written ones and of the code that derives the others.

    A law in a file of the user's proves only rules about the operators of such files: see `operators_hash`.
    """
    written = [show(sexp) for cls, _, sexp in declared_laws() if is_shipped(cls)]
    return _digest([*map(_code, LAW_MODULES), *written])


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()[:16]


@cache
def _code(module: ModuleType) -> str:
    return meaning(inspect.getsource(module))


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
    found = parse_file(read_rules(path), str(path))
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
        raise ParseError(f"{sexp.place}: expected (rule name …), found {_shown(sexp)}")
    except RecursionError:
        raise ParseError(f"{sexp.place}: expected a rule, found forms that are nested too deeply") from None


def parse_rule(sexp: Form, comment: str = "") -> Rule:
    """One rule, with the comment above it. Raises `ParseError` or `RuleError`."""
    if len(sexp.items) < 2:
        raise ParseError(f"{sexp.place}: expected (rule name …), found {_shown(sexp)}")
    name = _word(sexp.items[1], "(rule name …)")
    parts: dict[str, tuple[Sexp, ...]] = {}
    for part in sexp.items[2:]:
        if not isinstance(part, Form) or part.head not in _PARTS:
            raise ParseError(f"{part.place}: expected given, if, from, where, to or by, found {_shown(part)}")
        if part.head in parts:
            raise ParseError(f"{part.place}: expected one ({part.head} …), rule {name} has a second")
        parts[part.head] = part.items[1:]
    for needed in ("given", "from", "to"):
        if needed not in parts:
            raise ParseError(f"{sexp.place}: rule {name} has no ({needed} …)")
    with assuming():
        names = _read_given(parts["given"])
        source = tuple(read_term(s, names) for s in parts["from"])
        names = _read_where(parts.get("where", ()), names)
        target = tuple(read_term(t, names) for t in parts["to"])
        conditions, facts = read_conditions(parts.get("if", ()), names)
    by = tuple(_word(law, "the name of a law") for law in parts.get("by", ()))
    try:
        return Rule(name, source, target, conditions, by, comment, facts)
    except SuperoptError as error:
        raise RuleError(f"{sexp.place}: {error}") from None


def _read_header(sexp: Form) -> dict[str, str]:
    opening, items = sexp.items[1:3], sexp.items[3:]
    if len(opening) < 2 or opening[0] != Atom(":format"):
        raise ParseError(f"{sexp.place}: expected (rules :format {FORMAT} …), found {_shown(sexp)}")
    if show(opening[1]) != str(FORMAT):
        raise RuleError(f"{sexp.place}: rule format {_shown(opening[1])}; this version reads format {FORMAT}")
    header: dict[str, str] = {}
    for key, value in zip(items[::2], [*items[1::2], None], strict=False):
        name = _word(key, ':name "value"')
        fact = name.removeprefix(":")
        if fact in ("", name, "format", *header):
            raise ParseError(f'{key.place}: expected :name "value", each name once, found {name}')
        if not isinstance(value, Atom) or not isinstance(value.value, str) or not value.quoted:
            found = "nothing" if value is None else _shown(value)
            raise ParseError(f"{(value or key).place}: expected a string in double quotes after {name}, found {found}")
        if fact in _DIGESTS and not re.fullmatch("[0-9a-f]+", value.value):
            raise ParseError(f"{value.place}: expected a digest in digits 0-9a-f after {name}, found {_shown(value)}")
        header[fact] = value.value
    return header


def _read_given(sexps: Iterable[Sexp]) -> dict[str, Term]:
    names: dict[str, Term] = {}
    for sexp in sexps:
        name, sizes = _named(sexp, names, "(?tensor size …)")
        shape = [read_dim(item) for item in sizes]
        for item, size in zip(sizes, shape, strict=True):
            if isinstance(size, int) and size < 1:
                raise ParseError(f"{item.place}: expected a size of at least 1, found {size}")
        names[name] = variable(name, shape)
    return names


def _read_where(sexps: Iterable[Sexp], given: Mapping[str, Term]) -> dict[str, Term]:
    """What is given, and the parts that are named: each over what is given and the parts before it."""
    parts: dict[str, Sexp] = {}
    for sexp in sexps:
        name, terms = _named(sexp, {**given, **parts}, "(?name term)")
        if len(terms) != 1:
            raise ParseError(f"{sexp.place}: expected (?name term), found {_shown(sexp)}")
        parts[name] = terms[0]
    later, known = {f"?{name}" for name in parts}, dict(given)
    for name, part in parts.items():
        for atom in _atoms(part):
            if atom.value in later:
                raise ParseError(
                    f"{atom.place}: expected a tensor that was given or a part named before ?{name}, found {show(atom)}"
                )
        known[name] = read_term(part, known)
        later.remove(f"?{name}")
    return known


def _named(sexp: Sexp, taken: Container[str], what: str) -> tuple[str, tuple[Sexp, ...]]:
    """The name that a form gives to a tensor, and what follows it."""
    if not isinstance(sexp, Form) or not sexp.head.startswith("?") or sexp.head == "?":
        raise ParseError(f"{sexp.place}: expected {what}, found {_shown(sexp)}")
    if sexp.head[1:] in taken:
        raise ParseError(f"{sexp.place}: expected another name, {sexp.head} is taken already")
    return sexp.head[1:], sexp.items[1:]


def _atoms(sexp: Sexp) -> Iterator[Atom]:
    if isinstance(sexp, Atom):
        yield sexp
    else:
        for item in sexp.items:
            yield from _atoms(item)


def _word(sexp: Sexp, what: str) -> str:
    if isinstance(sexp, Atom) and isinstance(sexp.value, str) and not sexp.quoted:
        return sexp.value
    raise ParseError(f"{sexp.place}: expected {what}, found {_shown(sexp)}")


def _shown(sexp: Sexp) -> str:
    return show(sexp)[:60]


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
