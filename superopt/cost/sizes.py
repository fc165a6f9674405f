"""Gives symbolic sizes a value, so that a graph can be timed."""

from __future__ import annotations

from collections.abc import Mapping

from superopt.dim import Shape, substitute, symbols
from superopt.operators import Declared
from superopt.term import Graph, Operator, Term, Type, Variable, make, subterms

DEFAULT_SIZE = 1
"""What a symbol stands for where nobody says: most are batch sizes, and single inputs are what is served most."""


def concretize(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """The graph with all symbols replaced; those not in `sizes` by `DEFAULT_SIZE`.

    Raises `ShapeError` where the sizes do not fit the graph.
    """
    if all(isinstance(d, int) for v in graph.inputs for d in v.shape) and not _symbolic(graph):
        return graph
    done: dict[Term, Term] = {}
    for term in subterms(*graph.inputs, *graph.outputs):
        done[term] = make(_sized(term.operator, sizes), [done[i] for i in term.inputs])
    return Graph(tuple(done[i] for i in graph.inputs), tuple(done[o] for o in graph.outputs))


def _symbolic(graph: Graph) -> bool:
    return any(not isinstance(d, int) for t in subterms(*graph.outputs) for d in t.shape)


def _sized(operator: Operator, sizes: Mapping[str, int]) -> Operator:
    if isinstance(operator, Variable):
        type_ = Type(operator.type.dtype, _sizes(operator.type.shape, sizes))
        return Variable(operator.label, type_, operator.constant)
    if isinstance(operator, Declared):
        return operator.with_sizes(_sizes(operator.sizes(), sizes))
    return operator


def _sizes(shape: Shape, sizes: Mapping[str, int]) -> Shape:
    if all(isinstance(d, int) for d in shape):
        return shape
    values = {name: sizes.get(name, DEFAULT_SIZE) for d in shape for name in symbols(d)}
    return tuple(substitute(d, values) for d in shape)
