"""The rule file: text that a person reads and a program parses; parsing what was printed gives the same rules.

    (rules :format 1 :operators "…" :laws "…" :solver "…" :settings "…")
    ; A comment belongs to the rule that follows it.
    (rule matmul-assoc
      (given (?x m k) (?y k n) (?z n r))
      (from (matmul (matmul ?x ?y) ?z))
      (to (matmul ?x (matmul ?y ?z)))
      (by matmul-assoc))

`(if condition …)` states what must hold of sizes, `(where (?w term) …)` names a shared part of the right-hand side.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType

from superopt.dim import Condition, assuming, relate
from superopt.errors import ParseError, RuleError, SuperoptError
from superopt.operators import laws as derived_laws
from superopt.operators.declare import CATALOGUE, is_shipped
from superopt.operators.laws import declared_laws
from superopt.operators.reader import dim_sexp, read_dim, read_term, term_sexp
from superopt.rules.rule import Rule
from superopt.term import Term, subterms, variable
from superopt.text import Atom, Form, Sexp, form, read, show

FORMAT = 1
_RELATIONS = ("=", "<=", "divides", "!=")


@dataclass(frozen=True)
class RuleFile:
    """A header of facts, and rules."""

    rules: tuple[Rule, ...]
    header: Mapping[str, str] = field(default_factory=dict)


def operators_hash(rules: Iterable[Rule] = ()) -> str:
    """Changes whenever the meaning of a declaration may: a digest of the code of the modules that declare operators.

    Files of the user's count, with their laws, where rules are given that use an operator of theirs.
    """
    used = {t.operator.name for rule in rules for t in subterms(*rule.source, *rule.target) if not t.is_variable}
    with_own = any(not is_shipped(cls) for name, cls in CATALOGUE.items() if name in used)
    modules = {inspect.getmodule(cls) for cls in CATALOGUE.values() if with_own or is_shipped(cls)}
    return _digest(_code(m) for m in modules if m is not None)


def laws_hash() -> str:
    """Changes whenever a law of superopt's may: a digest of the written ones and of the code that derives the others.

    A law in a file of the user's proves only rules about the operators of such files: see `operators_hash`.
    """
    written = [show(sexp) for cls, _, sexp in declared_laws() if is_shipped(cls)]
    return _digest([_code(derived_laws), *written])


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()[:16]


def _code(module: ModuleType) -> str:
    """The code of a module without comments, docstrings and layout, which mean nothing."""
    tree = ast.parse(inspect.getsource(module))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            body[0] = ast.Pass()
    return ast.unparse(tree)


def print_file(file: RuleFile) -> str:
    """The text of a rule file."""
    facts = " ".join(f":{key} {show(Atom(value, quoted=True))}" for key, value in file.header.items())
    return "\n".join([f"(rules :format {FORMAT}{' ' + facts if facts else ''})", "", *map(print_rule, file.rules)])


def print_rule(rule: Rule) -> str:
    """The text of a rule, a line for each of its parts."""
    shared = _shared(rule.target)
    names = {t: f"w{i}" for i, t in enumerate(shared)}
    lines = [form("given", *(form(f"?{v.label}", *map(dim_sexp, v.shape)) for v in rule.given))]
    lines += [form("if", *(_condition_sexp(c) for c in rule.conditions))] if rule.conditions else []
    lines += [form("from", *map(term_sexp, rule.source))]
    if shared:
        where = []
        for i, t in enumerate(shared):
            inner = {u: n for u, n in names.items() if u is not t and int(n[1:]) < i}
            where.append(form(f"?w{i}", term_sexp(t, inner)))
        lines += [form("where", *where)]
    lines += [form("to", *(term_sexp(t, names) for t in rule.target))]
    lines += [form("by", *rule.by)] if rule.by else []
    comment = "".join(f"; {line}\n" for line in rule.comment.splitlines())
    return f"{comment}(rule {rule.name}\n  " + "\n  ".join(map(show, lines)) + ")\n"


def load_rules(path: Path) -> RuleFile:
    """Read a rule file. Raises `ParseError` with file, line and column, `RuleError` for one of another format."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise RuleError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise RuleError(f"{path}: not a rule file: no text in UTF-8 at byte {error.start}") from None
    return parse_file(text, str(path))


def parse_file(text: str, source: str = "<text>") -> RuleFile:
    """The rules of a text; see `load_rules` for the errors raised."""
    header: dict[str, str] = {}
    rules: list[Rule] = []
    comments = _comments(text)
    for sexp in read(text, source):
        if isinstance(sexp, Form) and sexp.head == "rules":
            header = _read_header(sexp)
        elif isinstance(sexp, Form) and sexp.head == "rule":
            rules.append(replace(parse_rule(sexp), comment=comments.get(sexp.place.line, "")))
        else:
            raise ParseError(f"{sexp.place}: expected (rule name …), found {show(sexp)[:60]}")
    names = Counter(rule.name for rule in rules)
    for name, count in names.items():
        if count > 1:
            raise RuleError(f"{source}: {count} rules are called {name}")
    return RuleFile(tuple(rules), header)


def parse_rule(sexp: Form) -> Rule:
    """One rule. Raises `ParseError` or `RuleError`."""
    if len(sexp.items) < 2 or not isinstance(sexp.items[1], Atom):
        raise ParseError(f"{sexp.place}: expected (rule name …)")
    name, parts = str(sexp.items[1].value), {}
    for part in sexp.items[2:]:
        if not isinstance(part, Form) or part.head not in ("given", "if", "from", "where", "to", "by"):
            raise ParseError(f"{part.place}: expected given, if, from, where, to or by, found {show(part)[:60]}")
        parts[part.head] = part.items[1:]
    for needed in ("given", "from", "to"):
        if needed not in parts:
            raise ParseError(f"{sexp.place}: rule {name} has no ({needed} …)")
    with assuming():
        names = dict(_read_given(g) for g in parts["given"])
        source = tuple(read_term(s, names) for s in parts["from"])
        for binding in parts.get("where", ()):
            if not isinstance(binding, Form) or len(binding.items) != 2:
                raise ParseError(f"{binding.place}: expected (?name term), found {show(binding)}")
            names[binding.head.removeprefix("?")] = read_term(binding.items[1], names)
        target = tuple(read_term(t, names) for t in parts["to"])
    conditions = tuple(_read_condition(c) for c in parts.get("if", ()))
    try:
        return Rule(
            name, source, target, conditions, tuple(str(a.value) for a in parts.get("by", ()) if isinstance(a, Atom))
        )
    except SuperoptError as error:
        raise RuleError(f"{sexp.place}: {error}") from None


def _read_header(sexp: Form) -> dict[str, str]:
    items = [i.value if isinstance(i, Atom) else show(i) for i in sexp.items[1:]]
    header = {str(k).removeprefix(":"): str(v) for k, v in zip(items[::2], items[1::2], strict=False)}
    version = header.pop("format", "?")
    if version != str(FORMAT):
        raise RuleError(f"{sexp.place}: rule format {version}; this version reads format {FORMAT}")
    return header


def _read_given(sexp: Sexp) -> tuple[str, Term]:
    if not isinstance(sexp, Form) or not sexp.head.startswith("?"):
        raise ParseError(f"{sexp.place}: expected (?tensor size …), found {show(sexp)}")
    return sexp.head[1:], variable(sexp.head[1:], map(read_dim, sexp.items[1:]))


def _condition_sexp(condition: Condition) -> Sexp:
    return form(condition.relation, dim_sexp(condition.left), dim_sexp(condition.right))


def _read_condition(sexp: Sexp) -> Condition:
    if not isinstance(sexp, Form) or sexp.head not in _RELATIONS or len(sexp.items) != 3:
        raise ParseError(
            f"{sexp.place}: expected a relation ({', '.join(_RELATIONS)}) of two sizes, found {show(sexp)}"
        )
    truth = relate(sexp.head, read_dim(sexp.items[1]), read_dim(sexp.items[2]))  # type: ignore[arg-type]
    if isinstance(truth, bool):
        raise ParseError(f"{sexp.place}: this condition is always {str(truth).lower()}: {show(sexp)}")
    return truth


def _shared(targets: Iterable[Term]) -> list[Term]:
    """Subterms used more than once on the right, inputs before users; variables and repeated numbers are not named."""
    targets = tuple(targets)
    uses = Counter(i for t in subterms(*targets) for i in t.inputs) + Counter(targets)
    return [t for t in subterms(*targets) if uses[t] > 1 and t.inputs and not t.operator.free]  # type: ignore[attr-defined]


def _comments(text: str) -> dict[int, str]:
    """The comment lines that stand directly above a line, by that line's number."""
    found: dict[int, str] = {}
    block: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith(";"):
            block.append(line[1:].strip())
        else:
            if block:
                found[number] = "\n".join(block)
            block = []
    return found
