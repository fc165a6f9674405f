"""Gives symbolic sizes a value, so that a graph can be timed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

import numpy as np

from superopt.dim import Dim, Shape
from superopt.operators import Declared
from superopt.substitution import substitute, symbols
from superopt.term import REAL, Graph, Operator, Term, Type, Variable, make, subterms

DEFAULT_SIZE = 1
"""What a symbol stands for where nobody says: most are batch sizes, and single inputs are what is served most."""


def concretize(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """The graph with all symbols replaced; those not in `sizes` by `DEFAULT_SIZE`.

    Raises `ShapeError` where the sizes do not fit the graph.
    """
    if all(t.sized for t in (*graph.inputs, *graph.outputs)):
        return graph
    done: dict[Term, Term] = {}
    for term in subterms(*graph.inputs, *graph.outputs):
        done[term] = make(_sized(term.operator, sizes), [done[i] for i in term.inputs])
    return Graph(tuple(done[i] for i in graph.inputs), tuple(done[o] for o in graph.outputs))


def _sized(operator: Operator, sizes: Mapping[str, int]) -> Operator:
    if isinstance(operator, Variable):
        type_ = Type(operator.type.dtype, _sizes(operator.type.shape, sizes))
        return Variable(operator.label, type_, operator.constant)
    if isinstance(operator, Declared):
        return operator.with_sizes(_sizes(operator.sizes(), sizes))
    return operator


def _sizes(shape: Shape, sizes: Mapping[str, int]) -> Shape:
    return shape if all(isinstance(d, int) for d in shape) else tuple(sized_dim(d, sizes) for d in shape)


def sized_dim(size: Dim, sizes: Mapping[str, int]) -> Dim:
    """A size with the values of its symbols; of those not in `sizes`, `DEFAULT_SIZE`."""
    if isinstance(size, int):
        return size
    return substitute(size, {name: sizes.get(name, DEFAULT_SIZE) for name in symbols(size)})


@cache
def width(dtype: str) -> int:
    """The bytes of an element."""
    try:
        return np.dtype("float32" if dtype == REAL else dtype).itemsize
    except TypeError:  # bfloat16 and smaller types are not numpy's
        return 2


def bytes_of(term: Term) -> int:
    """The bytes of a value whose sizes are all known."""
    return width(term.type.dtype) * math.prod(d for d in term.shape if isinstance(d, int))
