"""A rule from its expression, part by part."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

from superopt.demands import assuming
from superopt.errors import ParseError, RuleError, SuperoptError
from superopt.operators.reader import read_conditions, read_dim, read_term
from superopt.rules.rule import Rule
from superopt.term import Term, variable
from superopt.text import Atom, Form, Sexp, show

_PARTS = ("given", "if", "from", "where", "to", "by")


def parse_rule(sexp: Form, comment: str = "") -> Rule:
    """One rule, with the comment above it. Raises `ParseError` or `RuleError`."""
    if len(sexp.items) < 2:
        raise ParseError(f"{sexp.place}: expected (rule name …), found {shown(sexp)}")
    name = word_of(sexp.items[1], "(rule name …)")
    parts: dict[str, tuple[Sexp, ...]] = {}
    for part in sexp.items[2:]:
        if not isinstance(part, Form) or part.head not in _PARTS:
            raise ParseError(f"{part.place}: expected given, if, from, where, to or by, found {shown(part)}")
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
    by = tuple(word_of(law, "the name of a law") for law in parts.get("by", ()))
    try:
        return Rule(name, source, target, conditions, by, comment, facts)
    except SuperoptError as error:
        raise RuleError(f"{sexp.place}: {error}") from None


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
            raise ParseError(f"{sexp.place}: expected (?name term), found {shown(sexp)}")
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
        raise ParseError(f"{sexp.place}: expected {what}, found {shown(sexp)}")
    if sexp.head[1:] in taken:
        raise ParseError(f"{sexp.place}: expected another name, {sexp.head} is taken already")
    return sexp.head[1:], sexp.items[1:]


def _atoms(sexp: Sexp) -> Iterator[Atom]:
    if isinstance(sexp, Atom):
        yield sexp
    else:
        for item in sexp.items:
            yield from _atoms(item)


def word_of(sexp: Sexp, what: str) -> str:
    """The word that an expression is. Raises `ParseError`, which says what was expected."""
    if isinstance(sexp, Atom) and isinstance(sexp.value, str) and not sexp.quoted:
        return sexp.value
    raise ParseError(f"{sexp.place}: expected {what}, found {shown(sexp)}")


def shown(sexp: Sexp) -> str:
    """The beginning of an expression, for a message."""
    return show(sexp)[:60]
