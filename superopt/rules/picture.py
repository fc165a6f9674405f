"""A rule as a picture: both sides as graphs, in Mermaid's notation, which Markdown viewers draw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from superopt.operators.declared import Declared
from superopt.operators.layout import Expand
from superopt.operators.reader import attribute_items
from superopt.rules.rule import Rule
from superopt.term import Term, subterms
from superopt.text import show


def flowchart(rule: Rule) -> str:
    """Before and after, from the variables at the left to the outputs at the right."""
    lines = ["flowchart LR"]
    for side, roots in (("before", rule.source), ("after", rule.target)):
        lines += [f"  subgraph {side}", "    direction LR", *(f"    {line}" for line in _graph(side, roots)), "  end"]
    return "\n".join(lines) + "\n"


def _graph(side: str, roots: Sequence[Term]) -> Iterator[str]:
    terms = list(subterms(*roots))
    names = {t: f"{side}{i}" for i, t in enumerate(terms)}
    for t in terms:
        yield f'{names[t]}(["?{t.label} {" ".join(map(str, t.shape))}"])' if t.is_variable else _box(names[t], t)
        yield from (f"{names[i]} --> {names[t]}" for i in t.inputs)
    for number, root in enumerate(roots):
        yield f"{names[root]} --> {side}out{number}((( )))"


def _box(name: str, term: Term) -> str:
    op = term.operator
    assert isinstance(op, Declared)
    if isinstance(op, Expand):
        return f'{name}["repeated to {" ".join(map(str, op.to))}"]'
    shown = " ".join([op.name, *(show(item) for item in attribute_items(op))])
    return f'{name}["{shown}"]'
