"""Weights that a model reads from memory each time it runs, and uses a few times only once they are there.

What is run again and again has its weights in the caches. In its model it has not, where other weights were read
since, and then reading them is what it takes: twice as long, and some kernels read from memory better than others. To
empty the caches before each run is no way out: code and values that were just computed would be gone as well, which in
the model they are not. So it is timed beside copies of itself, each with weights of its own, that read as much as the
model. Whole pieces are timed after so much else was read (`cost/timed.py`), and copies share what code costs then.
"""

from __future__ import annotations

import math

from superopt.cost.flops import flops
from superopt.cost.sizes import bytes_of
from superopt.demands import assuming
from superopt.operators.nodes import concrete
from superopt.term import Graph, Term, replace_all, variable, variables

LEAST_USES, FEW_USES = 0.9, 16
"""How often a weight is used, in the mean: products by rows and kernels use each once for a row or a place, where
biases beside them count as well; and at most, where reading takes about as long as computing or longer.
"""

LEAST_BYTES, MOST_BYTES = 2**16, 2**25
"""Of the weights of one, that they count; of those of all copies, more than what a core has of most caches."""

MOST_COPIES, MOST_OF_PIECES = 128, 12
"""How many copies there are at most, and of a whole piece: writing and loading more takes longer than all else."""


def copies(graph: Graph, touched: int) -> int:
    """How many of a graph, whose sizes are known, read as much as a model that goes through so many bytes, within what
    is timed together; 1 where it computes for longer than it reads weights, or reads few.

    Where values are more than weights they are what empties the caches, and fewer copies do: 128 of a mask over 32
    channels, which it uses 16 times, took half a gigabyte.
    """
    leaves = variables(*graph.outputs)
    weights = [v for v in leaves if v.constant]
    own = sum(map(bytes_of, weights))
    if own < LEAST_BYTES:
        return 1
    values = sum(map(bytes_of, (*(v for v in leaves if not v.constant), *graph.outputs)))
    count = sum(math.prod(concrete(v.shape, "weight")) for v in weights)
    used = flops(graph.outputs) / 2 / count
    is_reading = LEAST_USES <= used <= FEW_USES
    return max(min(min(touched, MOST_BYTES) // max(own, values), MOST_COPIES), 1) if is_reading else 1


def copied(graph: Graph, count: int) -> Graph:
    """So many of a graph, each over variables of its own; one is as it is."""
    if count == 1:
        return graph
    made = [_renamed(graph, i) for i in range(count)]
    return Graph(tuple(v for g in made for v in g.inputs), tuple(o for g in made for o in g.outputs))


def _renamed(graph: Graph, number: int) -> Graph:
    own: dict[Term, Term] = {
        v: variable(f"{v.label} of {number}", v.shape, v.type.dtype, constant=v.constant)
        for v in (*graph.inputs, *variables(*graph.outputs))
    }
    with assuming():  # what held of symbolic sizes still does
        return Graph(tuple(own[v] for v in graph.inputs), replace_all(graph.outputs, own))
