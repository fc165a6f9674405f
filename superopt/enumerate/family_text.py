"""Families as texts, read by name or path: those that come with superopt are in `families/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from superopt.demands import assuming
from superopt.dim import Dim
from superopt.enumerate.family import SIZES, Family, Pattern, heads
from superopt.errors import ParseError, UsageError
from superopt.operators.declare import CATALOGUE
from superopt.operators.reader import read_dim, read_term
from superopt.substitution import symbols
from superopt.term import Term, variable
from superopt.text import Atom, Form, Sexp, read, show, word

PARTS = ("sizes", "given", "constants", "operators", "depth")

LARGEST = 64
"""The largest size of a family: terms are evaluated millions of times."""

DEEPEST = 6
"""The most operators of a term: those of seven are more than any memory holds."""


def shipped_families() -> list[str]:
    """The names of the families that come with superopt."""
    folder = files("superopt.enumerate") / "families"
    return sorted(f.name.removesuffix(".family") for f in folder.iterdir() if f.name.endswith(".family"))


def load_family(name: str) -> Family:
    """A family that comes with superopt, by name, or one of the user's, by path.

    Raises `UsageError` where there is none, `ParseError` with the place of what is wrong in it.
    """
    if name in shipped_families():
        source = files("superopt.enumerate") / "families" / f"{name}.family"
        return read_family(source.read_text(encoding="utf-8"), f"{name}.family")
    path = Path(name)
    if not path.is_file():
        raise UsageError(f"no family is called {name}, nor is it a file; choose from {', '.join(shipped_families())}")
    try:
        return read_family(path.read_text(encoding="utf-8"), name)
    except UnicodeDecodeError:
        raise UsageError(f"{name}: a family is text in UTF-8") from None


def read_family(text: str, source: str) -> Family:
    """A family from its text. Raises `ParseError` with line, column and what was expected."""
    forms = read(text, source)
    if len(forms) != 1 or not isinstance(forms[0], Form) or forms[0].head != "family" or len(forms[0].items) < 2:
        raise ParseError(f"{source}:1:1: expected one (family NAME …)")
    name, parts = show(forms[0].items[1]), _parts(forms[0])
    sizes = dict(_size(item) for item in parts["sizes"])
    given = tuple(_given(item, sizes) for item in parts["given"])
    named: set[str] = set()
    for item, v in zip(parts["given"], given, strict=True):
        if v.label in named:
            raise ParseError(f"{item.place}: the variable ?{v.label} is given twice; call one of them otherwise")
        named.add(v.label)
    with assuming():
        constants = tuple(read_term(item, {}) for item in parts["constants"])
    operators = tuple(_pattern(item) for item in parts["operators"])
    (depth,) = parts["depth"] or (word(3),)
    if not isinstance(depth, Atom) or not isinstance(depth.value, int) or not 1 <= depth.value <= DEEPEST:
        raise ParseError(f"{depth.place}: the depth is a number of operators from 1 to {DEEPEST}, found {show(depth)}")
    return Family(name, sizes, given, constants, operators, depth.value)


def with_operators(family: Family, only: Sequence[str], further: Sequence[str] = ()) -> Family:
    """The family with those of its operators only whose names are listed (all where none are), and further ones.

    Further ones are applied with the attributes that their declarations say to try. Raises `UsageError` for a name
    that the family does not have.
    """
    names = {name for pattern in family.operators for name in heads(pattern.sexp)} - {"expand"}
    for name in only:
        if name not in names and name not in further:
            known = ", ".join(sorted({*names, *further}))
            raise UsageError(f"operator {name} is not in family {family.name}; choose from {known}")
    allowed = {*only, "expand"}
    kept = [p for p in family.operators if not only or heads(p.sexp) <= allowed]
    added = [_pattern(word(name)) for name in further if not only or name in only]
    return replace(family, operators=(*kept, *added))


def _holes(sexp: Sexp) -> list[str]:
    """The names of the holes of a pattern, in the order of first use."""
    if isinstance(sexp, Atom):
        return [sexp.value[1:]] if isinstance(sexp.value, str) and sexp.value.startswith("?") else []
    return list(dict.fromkeys(name for item in sexp.items for name in _holes(item)))


def _parts(family: Form) -> dict[str, tuple[Sexp, ...]]:
    found: dict[str, tuple[Sexp, ...]] = dict.fromkeys(PARTS, ())
    for part in family.items[2:]:
        if not isinstance(part, Form) or part.head not in PARTS:
            raise ParseError(
                f"{part.place}: expected one of {', '.join(f'({p} …)' for p in PARTS)}, found {show(part)}"
            )
        found[part.head] = part.items[1:]
    for name in ("sizes", "given", "operators"):
        if not found[name]:
            raise ParseError(f"{family.place}: the family has no ({name} …)")
    return found


def _size(sexp: Sexp) -> tuple[str, tuple[int, ...]]:
    numbers = [item.value for item in sexp.items[1:] if isinstance(item, Atom)] if isinstance(sexp, Form) else []
    values = tuple(n for n in numbers if isinstance(n, int) and 0 < n <= LARGEST)
    if not isinstance(sexp, Form) or len(values) != SIZES or len(sexp.items) != SIZES + 1:
        raise ParseError(f"{sexp.place}: expected a symbol and {SIZES} sizes from 1 to {LARGEST}, found {show(sexp)}")
    return sexp.head, values


def _given(sexp: Sexp, sizes: Mapping[str, object]) -> Term:
    if not isinstance(sexp, Form) or not sexp.head.startswith("?"):
        raise ParseError(f"{sexp.place}: expected a variable with its sizes, (?x n c), found {show(sexp)}")
    dims = [read_dim(item) for item in sexp.items[1:]]
    for name in sorted(set().union(*map(symbols, dims))):
        if name not in sizes:
            raise ParseError(f"{sexp.place}: the size {name} is not among the sizes of the family")
    return variable(sexp.head[1:], dims)


def _only(sexp: Sexp) -> tuple[str, tuple[Dim | None, ...]]:
    if not isinstance(sexp, Form) or not sexp.head.startswith("?"):
        raise ParseError(f"{sexp.place}: expected a hole with its sizes, (?x n * 1), found {show(sexp)}")
    return sexp.head[1:], tuple(None if show(d) == "*" else read_dim(d) for d in sexp.items[1:])


def _pattern(sexp: Sexp) -> Pattern:
    if isinstance(sexp, Form) and sexp.head == "on" and len(sexp.items) == 3 and isinstance(sexp.items[1], Form):
        return replace(_pattern(sexp.items[2]), on=tuple(map(_only, sexp.items[1].items)))
    names = heads(sexp)
    if not names or not names <= CATALOGUE.keys():
        known = ", ".join(sorted(CATALOGUE))
        raise ParseError(
            f"{sexp.place}: expected an operator over holes, or its name alone: {show(sexp)}; there are {known}"
        )
    holes = tuple(_holes(sexp))
    count = len(holes) if isinstance(sexp, Form) else CATALOGUE[min(names)].arity
    if not 1 <= count <= 2:
        raise ParseError(f"{sexp.place}: operators of one or two inputs are enumerated, found {show(sexp)}")
    return Pattern(sexp, holes or tuple("ab"[:count]))
