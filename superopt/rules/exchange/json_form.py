"""The rule file as JSON, for readers without an S-expression parser; parsing what was printed gives the same rules.

The parts are those of the text form. A term is `{"operator": …, "attributes": …, "inputs": […]}` or `{"tensor": "x"}`,
with every attribute named and no shape left out; a size is a number, `{"symbol": "m"}` or an operation such as
`{"+": [a, b]}`. `rules.schema.json` is the schema. Reading goes through the expressions of the text form, whose places
are paths here, so that both forms refuse the same for the same reasons.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, replace
from pathlib import Path
from typing import Any

from superopt.dim import Dim
from superopt.errors import ParseError
from superopt.operators.declare import CATALOGUE
from superopt.operators.declared import Declared
from superopt.operators.reader import condition_sexp, dim_sexp, fact_sexp, unknown_operator
from superopt.rules.exchange.json_nodes import Node, load_node
from superopt.rules.format import FORMAT, RuleFile, file_of, shared_parts
from superopt.rules.rule import Rule
from superopt.term import Term
from superopt.text import Atom, Form, Sexp


def json_schema() -> dict[str, Any]:
    """The schema of what is printed here, in JSON Schema 2020-12."""
    schema: dict[str, Any] = json.loads(Path(__file__).with_name("rules.schema.json").read_text(encoding="utf-8"))
    return schema


def print_json(file: RuleFile) -> str:
    """The JSON of a rule file, a line for each part of a rule."""
    rules = ",\n".join(f"  {_lines(_rule_json(rule), 3)}" for rule in file.rules)
    listed = f"[\n{rules}\n ]" if rules else "[]"
    return f'{_lines({"format": FORMAT, "header": dict(file.header)}, 1)[:-1]},\n "rules": {listed}}}\n'


def parse_json(text: str, source: str = "<json>") -> RuleFile:
    """The rules of a JSON document. Raises `ParseError` or `RuleError` that names the source, and the path of what is
    refused (`rules[3].from[0].operator`), or the line and column of what is no JSON.
    """
    try:
        return file_of(_forms(load_node(text, source)))
    except RecursionError:
        raise ParseError(f"{source}: expected rules, found objects that are nested too deeply") from None


# ---------------------------------------------------------------------------------------------------- printing


def _lines(fields: Mapping[str, Any], indent: int) -> str:
    return "{" + (",\n" + " " * indent).join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in fields.items()) + "}"


def _rule_json(rule: Rule) -> dict[str, Any]:
    names: dict[Term, str] = {}
    where = []
    for term, name in shared_parts(rule).items():
        where.append({"name": name, "term": _term_json(term, names)})
        names[term] = name
    asked = [*map(condition_sexp, rule.conditions), *map(fact_sexp, rule.facts)]
    parts: dict[str, Any] = {
        "name": rule.name,
        "comment": rule.comment,
        "given": [{"name": v.label, "shape": _value_json(v.shape)} for v in rule.given],
        "if": [_expression_json(sexp) for sexp in asked],
        "from": [_term_json(t, {}) for t in rule.source],
        "where": where,
        "to": [_term_json(t, names) for t in rule.target],
        "by": list(rule.by),
    }
    return {key: value for key, value in parts.items() if value or key in ("given", "from", "to")}


def _term_json(term: Term, names: Mapping[Term, str]) -> dict[str, Any]:
    if term in names:
        return {"tensor": names[term]}
    if term.is_variable:
        return {"tensor": term.label}
    op = term.operator
    assert isinstance(op, Declared), f"{op} is not declared and has no form in JSON"
    attributes = {f.name: _value_json(getattr(op, f.name)) for f in op.fields}
    return {"operator": op.name, "attributes": attributes, "inputs": [_term_json(i, names) for i in term.inputs]}


def _value_json(value: Dim | float | str | tuple[Dim, ...]) -> Any:
    if isinstance(value, tuple):
        return [_value_json(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if isinstance(value, str) else _expression_json(dim_sexp(value))


def _expression_json(sexp: Sexp) -> Any:
    if isinstance(sexp, Form):
        return {sexp.head: [_expression_json(item) for item in sexp.items[1:]]}
    if isinstance(sexp.value, str):
        return {"tensor": sexp.value[1:]} if sexp.value.startswith("?") else {"symbol": sexp.value}
    return sexp.value


# ---------------------------------------------------------------------------------------------------- reading


def _forms(document: Node) -> Iterator[tuple[Sexp, str]]:
    """The expressions of the text form, with the comments above them."""
    fields = document.fields()
    version = fields.get("format") or document.refuse(f"an object with format {FORMAT}")
    header: list[Sexp] = [Atom("rules"), Atom(":format"), Atom(json.dumps(version.value))]
    if header[-1] == Atom(str(FORMAT)):  # a newer one may have other parts: the version is what is complained of
        fields = document.record("format", "rules", optional=("header",))
        for key, node in fields["header"].fields().items() if "header" in fields else ():
            header += [Node(key, node.place).word(":"), node.string()]
    yield Form(tuple(header), version.place), ""
    for node in fields["rules"].items():
        yield _rule(node)


def _rule(node: Node) -> tuple[Sexp, str]:
    fields = node.record("name", "given", "from", "to", optional=("comment", "if", "where", "by"))
    comment = str(fields["comment"].string().value) if "comment" in fields else ""
    parts = [
        Form((Atom(key), *map(expression, fields[key].items())), fields[key].place)
        for key, expression in _PARTS.items()
        if key in fields
    ]
    return Form((Atom("rule"), fields["name"].word(), *parts), node.place), comment


def _given(node: Node) -> Sexp:
    fields = node.record("name", "shape")
    return Form((fields["name"].word("?"), *map(_expression, fields["shape"].items())), node.place)


def _shared(node: Node) -> Sexp:
    fields = node.record("name", "term")
    return Form((fields["name"].word("?"), _term(fields["term"])), node.place)


def _term(node: Node) -> Sexp:
    if "tensor" in node.fields():
        return node.record("tensor")["tensor"].word("?")
    fields = node.record("operator", "inputs", optional=("attributes",))
    operator = fields["operator"].word()
    cls = CATALOGUE.get(str(operator.value))
    if cls is None:
        raise ParseError(f"{operator.place}: {unknown_operator(str(operator.value))}")
    given = fields["attributes"].fields() if "attributes" in fields else {}
    items: list[Sexp] = [operator]
    for f in cls.fields:
        if f.default is MISSING and f.name not in given:
            raise ParseError(f"{node.place}: {operator.value} needs its attribute {f.name}")
        if f.default is MISSING:
            items.append(_value(given.pop(f.name)))
    for key, value in given.items():
        items += [Node(key, value.place).word(":"), _value(value)]
    return Form((*items, *map(_term, fields["inputs"].items())), node.place)


def _value(node: Node) -> Sexp:
    """An attribute: sizes, a size, a number or a word."""
    if isinstance(node.value, list):
        return Form(tuple(map(_expression, node.items())), node.place)
    if node.value in ("inf", "-inf", "nan") or isinstance(node.value, float):
        return Atom(float(node.value), place=node.place)
    return replace(node.word(), quoted=True) if isinstance(node.value, str) else _expression(node)


def _expression(node: Node) -> Sexp:
    """A size or a condition."""
    if type(node.value) is int:
        return Atom(node.value, place=node.place)
    if not isinstance(node.value, dict) or len(node.value) != 1:
        node.refuse('a whole number, {"symbol": name} or {operation: [size, …]}')
    ((key, inner),) = node.fields().items()
    if key in ("symbol", "tensor"):
        return inner.word("?" if key == "tensor" else "")
    return Form((Node(key, inner.place).word(), *map(_expression, inner.items())), node.place)


_PARTS: dict[str, Callable[[Node], Sexp]] = {
    "given": _given,
    "if": _expression,
    "from": _term,
    "where": _shared,
    "to": _term,
    "by": Node.word,
}
