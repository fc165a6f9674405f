"""Operators of domains other than those of ONNX: the runtime has no kernel of them to measure."""

from __future__ import annotations

from collections.abc import Iterable

from superopt.operators.declared import Declared
from superopt.operators.nodes import ML_DOMAIN
from superopt.term import Graph, Term, replace_all, subterms

OF_ONNX = ("", ML_DOMAIN)
"""The domains whose operators ONNX defines, and runtimes have."""


def unfolded(graph: Graph, plain: set[Term] | None = None) -> Graph:
    """A graph with operators of other domains replaced by their definitions, which is what a runtime runs of them.

    Those without a definition stay. `plain` remembers terms in which there is nothing to replace, and is added to.
    """
    outputs, fresh = graph.outputs, subterms(*graph.outputs, known=plain or ())
    while new := {t: meaning for t in fresh if (meaning := _meaning(t)) is not None}:
        outputs = replace_all(outputs, new)
        fresh = subterms(*outputs, known=plain or ())
    if plain is not None:
        plain.update(fresh)
    return graph if outputs == graph.outputs else Graph(graph.inputs, outputs)


def is_measurable(term: Term) -> bool:
    """Whether nothing in a term is of another domain and without a definition."""
    return all(not _is_foreign(t) or _meaning(t) is not None for t in subterms(term))


def foreign(terms: Iterable[Term]) -> set[str]:
    """The operators of other domains in terms, by name."""
    return {t.operator.name for t in subterms(*terms) if _is_foreign(t)}


def _is_foreign(term: Term) -> bool:
    return isinstance(term.operator, Declared) and term.operator.domain not in OF_ONNX


def _meaning(term: Term) -> Term | None:
    op = term.operator
    return op.definition(*term.inputs) if isinstance(op, Declared) and _is_foreign(term) else None
