"""Terms as text: `(conv :strides (2 2) ?x ?k)`. What prints also parses.

`?x` is a tensor, a bare word a size. Attributes without a default come first, in order; the others follow as `:name
value` where they differ from it. The shape of an `expand` is left out where the other inputs of the point-wise operator
around it tell it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING
from difflib import get_close_matches
from typing import Any

from superopt.dim import Condition, Dim, Floor, Relation, Shape, Symbol, floor_div, product, symbol
from superopt.errors import ParseError, ShapeError, SuperoptError
from superopt.operators.attributes import Field
from superopt.operators.declare import CATALOGUE
from superopt.operators.declared import Declared
from superopt.operators.layout import Expand
from superopt.relations import relate
from superopt.term import FACTS, Fact, Term, make
from superopt.text import Atom, Form, Sexp, form, show, word

_LARGEST = 2**63 - 1
"""What ONNX can say."""

RELATIONS: dict[str, Relation] = {"=": "=", "<=": "<=", "divides": "divides", "!=": "!="}


def unknown_operator(name: str) -> str:
    """What to say where no operator has a name."""
    near = get_close_matches(name, sorted(CATALOGUE), 3)
    others = f"near to it are {', '.join(near)}" if near else "docs/operators.md lists those that there are"
    return f"unknown operator {name}; {others}"


def dim_sexp(dim: Dim) -> Sexp:
    """A size as an expression."""
    if isinstance(dim, int):
        return word(dim)
    parts: list[Sexp] = []
    for monomial, coefficient in dim.terms:
        factors: list[Sexp] = [word(coefficient)] if coefficient != 1 or not monomial else []
        factors.extend(word(atom.name) if isinstance(atom, Symbol) else _floor_sexp(atom) for atom in monomial)
        parts.append(factors[0] if len(factors) == 1 else form("*", *factors))
    return parts[0] if len(parts) == 1 else form("+", *parts)


def _floor_sexp(atom: Floor) -> Sexp:
    return form("div", dim_sexp(atom.numerator), dim_sexp(atom.denominator))


def read_dim(sexp: Sexp) -> Dim:
    """A size from an expression. Raises `ParseError`."""
    if isinstance(sexp, Atom):
        if isinstance(sexp.value, int):
            return sexp.value
        if isinstance(sexp.value, str) and not sexp.quoted and not sexp.value.startswith(("?", ":")):
            return symbol(sexp.value)
        raise ParseError(f"{sexp.place}: expected a size, found {show(sexp)}")
    parts = [read_dim(item) for item in sexp.items[1:]]
    try:
        found = _computed(sexp.head, parts)
    except ShapeError as error:
        raise ParseError(f"{sexp.place}: {error}") from None
    if isinstance(found, int) and abs(found) >= _LARGEST:
        raise ParseError(f"{sexp.place}: a size of at most {_LARGEST} is expected")
    if found is not None:
        return found
    raise ParseError(f"{sexp.place}: expected a size made with +, *, - or div, found {show(sexp)}")


def _computed(operation: str, parts: list[Dim]) -> Dim | None:
    match operation, parts:
        case "+", [_, *_]:
            return sum(parts[1:], parts[0])
        case "*", [_, *_]:
            return product(parts)
        case "-", [a, b]:
            return a - b
        case "div", [a, b]:
            return floor_div(a, b)
    return None


def term_sexp(term: Term, names: Mapping[Term, str] | None = None, shaped: bool = True) -> Sexp:
    """A term as an expression; `names` maps terms to what they are called (`?w`), `shaped` prints an expand's shape."""
    if names and term in names:
        return word(f"?{names[term]}")
    if term.is_variable:
        return word(f"?{term.label}")
    op = term.operator
    assert isinstance(op, Declared), f"{op} is not declared and has no text"
    told = next((i.shape for i in term.inputs if not isinstance(i.operator, Expand)), None) if op.pointwise else None
    items = attribute_items(op)
    if isinstance(op, Expand) and not shaped:
        items = items[:1]
    return form(op.name, *items, *(term_sexp(i, names, shaped=not _same(i.shape, told)) for i in term.inputs))


def term_text(term: Term) -> str:
    """A term as text."""
    return show(term_sexp(term))


def condition_sexp(condition: Condition) -> Sexp:
    """A relation between sizes as an expression."""
    return form(condition.relation, dim_sexp(condition.left), dim_sexp(condition.right))


def fact_sexp(fact: Fact) -> Sexp:
    """What is known of a tensor as an expression."""
    return form(fact.kind, term_sexp(fact.of))


def read_conditions(sexps: Iterable[Sexp], names: Mapping[str, Term]) -> tuple[tuple[Condition, ...], tuple[Fact, ...]]:
    """The relations between sizes, and the facts about tensors, of an `(if …)`. Raises `ParseError`."""
    conditions: list[Condition] = []
    facts: list[Fact] = []
    for sexp in sexps:
        if isinstance(sexp, Form) and sexp.head in FACTS and len(sexp.items) == 2:
            facts.append(Fact(sexp.head, read_term(sexp.items[1], names)))
        elif isinstance(sexp, Form) and sexp.head in RELATIONS and len(sexp.items) == 3:
            truth = relate(RELATIONS[sexp.head], read_dim(sexp.items[1]), read_dim(sexp.items[2]))
            if isinstance(truth, bool):
                raise ParseError(f"{sexp.place}: this condition is always {str(truth).lower()}: {show(sexp)}")
            conditions.append(truth)
        else:
            raise ParseError(
                f"{sexp.place}: expected a relation of two sizes ({', '.join(RELATIONS)}) "
                f"or a fact about a tensor ({', '.join(FACTS)}), found {show(sexp)}"
            )
    return tuple(conditions), tuple(facts)


def attribute_items(op: Declared) -> list[Sexp]:
    """The attributes as they stand in text."""
    items: list[Sexp] = []
    for f in op.fields:
        value = getattr(op, f.name)
        if f.default is MISSING:
            items.append(_value_sexp(value))
        elif not _same(value, f.default):
            items += [word(f":{f.name}"), _value_sexp(value)]
    return items


def read_term(sexp: Sexp, names: Mapping[str, Term], to: Shape | None = None) -> Term:
    """A term from an expression; `names` gives its tensors, `to` the shape of an expand that states none.

    Raises `ParseError` that names the place for what is malformed, unknown or ill typed.
    """
    if isinstance(sexp, Atom):
        if isinstance(sexp.value, str) and sexp.value.startswith("?") and sexp.value[1:] in names:
            return names[sexp.value[1:]]
        raise ParseError(f"{sexp.place}: expected a term or a tensor that was given, found {show(sexp)}")
    cls = CATALOGUE.get(sexp.head)
    if cls is None:
        raise ParseError(f"{sexp.place}: {unknown_operator(sexp.head)}")
    given, rest = _read_attributes(cls, sexp, to)
    try:
        return make(cls(**given), _read_inputs(cls, rest, names))
    except ParseError:
        raise
    except SuperoptError as error:
        raise ParseError(f"{sexp.place}: {error}") from None


def _read_inputs(cls: type[Declared], rest: list[Sexp], names: Mapping[str, Term]) -> list[Term]:
    bare = [cls.pointwise and isinstance(s, Form) and len(s.items) == 3 and s.head == "expand" for s in rest]
    terms = [None if is_bare else read_term(s, names) for s, is_bare in zip(rest, bare, strict=True)]
    known = next((t.shape for t in terms if t is not None), None)
    return [read_term(s, names, known) if t is None else t for s, t in zip(rest, terms, strict=True)]


def _read_attributes(cls: type[Declared], sexp: Form, to: Shape | None) -> tuple[dict[str, Any], list[Sexp]]:
    rest, given = list(sexp.items[1:]), {}
    for f in cls.fields:
        if f.default is not MISSING:
            continue
        if cls is Expand and f.name == "to" and len(rest) == 1:
            if to is None:
                raise ParseError(f"{sexp.place}: the shape of this expand is not told by what stands beside it")
            given["to"] = to
        elif not rest:
            raise ParseError(f"{sexp.place}: {cls.name} needs its attribute {f.name}")
        else:
            given[f.name] = _read_value(cls, f, rest.pop(0))
    while rest and isinstance(rest[0], Atom) and str(rest[0].value).startswith(":"):
        key = rest.pop(0)
        name = str(key.value)[1:]  # type: ignore[union-attr]
        found = next((f for f in cls.fields if f.name == name), None)
        if found is None or not rest:
            raise ParseError(f"{key.place}: {cls.name} has no attribute {name}, or no value follows")
        if name in given:
            raise ParseError(f"{key.place}: {cls.name} is given its attribute {name} twice")
        given[name] = _read_value(cls, found, rest.pop(0))
    return given, rest


def _read_value(cls: type[Declared], f: Field, sexp: Sexp) -> Any:
    kind = cls.__dataclass_fields__[f.name].type  # type: ignore[attr-defined]
    if kind in ("Shape", "tuple[int, ...]"):
        if not isinstance(sexp, Form):
            raise ParseError(f"{sexp.place}: {cls.name} {f.name} is a list in parentheses, found {show(sexp)}")
        values = tuple(read_dim(item) for item in sexp.items)
    elif kind == "Dim":
        return read_dim(sexp)
    elif kind == "str" and isinstance(sexp, Atom) and isinstance(sexp.value, str):
        return sexp.value
    elif isinstance(sexp, Atom) and isinstance(sexp.value, int | float if kind == "float" else int):
        return float(sexp.value) if kind == "float" else sexp.value
    else:
        raise ParseError(f"{sexp.place}: {cls.name} {f.name} is a number, found {show(sexp)}")
    if not f.facts.size and not all(isinstance(v, int) for v in values):
        raise ParseError(f"{sexp.place}: {cls.name} {f.name} is part of its structure, so numbers are expected")
    return values


def _value_sexp(value: Any) -> Sexp:
    if isinstance(value, tuple):
        return form(*(dim_sexp(v) for v in value))
    return word(value) if isinstance(value, int | float | str) else dim_sexp(value)


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, tuple):
        return isinstance(default, tuple) and len(value) == len(default) and all(map(_same, value, default))
    return (
        value is default
        or (isinstance(value, str) and value == default)
        or (isinstance(value, int | float) and isinstance(default, int | float) and value == default)
    )
