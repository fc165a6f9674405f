"""How large the integers may be that kernels and pieces are timed on: as large as what they index allows.

What is gathered at one place is in the caches after the first row: a copy of an expert's weights for each token takes
half as long then as in a model, whose tokens choose different ones. So where all integers that come in are indices into
axes of known sizes, they are drawn over the shortest of these. Of whole models, whose nodes may be opaque, the same is
told by their nodes (`onnx_io/index_limits.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from superopt.operators.columns import Elements
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.lookups import Lookups
from superopt.operators.picks import Slice
from superopt.operators.rearrange import Gather
from superopt.term import Graph, Term, subterms

MOVES = (Concat, Expand, Reshape, Slice, Transpose)
"""What indices may go through."""


def indexed(graphs: Sequence[Graph]) -> int:
    """Below what number all integers that come in are indices into any axis that they index; 1 where that is open."""
    return min((size for graph in graphs for t in subterms(*graph.outputs) for size in _sizes(t)), default=1)


def _sizes(term: Term) -> Iterator[int]:
    """Below what an operator lets the integers be that it reads."""
    op, read = term.operator, [i for i in term.inputs if "int" in i.type.dtype and not i.constant]
    if not read or (isinstance(op, MOVES) and read == list(term.inputs)):
        return
    if isinstance(op, Lookups | Gather | Elements) and read == [term.inputs[1]]:
        size = min(op.rows) if isinstance(op, Lookups) else term.inputs[0].shape[op.axis]
        yield size if isinstance(size, int) else 1
    else:
        yield 1
