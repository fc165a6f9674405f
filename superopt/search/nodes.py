"""Whether superopt writes what it reads of a piece in other nodes than the model has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from superopt.cost.whole import with_weights_made
from superopt.errors import SuperoptError
from superopt.onnx_io import Program, op_types, opset_of
from superopt.search.latency import LARGE_WEIGHTS, weights
from superopt.search.pieces import Piece
from superopt.term import Graph

_FREE = frozenset({"Constant", "Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""What moves nothing."""


def otherwise(program: Program, places: Sequence[Piece]) -> list[bool]:
    """Of each place of a piece whether its nodes are of other kinds than those that it would be written in."""
    ours = _written(places[0].canonical, opset_of(program.model) or 1)
    theirs = [_kinds(step.node.op_type for step in program.steps[p.steps.start : p.steps.stop]) for p in places]
    return [ours is not None and ours != kinds for kinds in theirs]


@lru_cache(maxsize=1 << 10)
def _written(graph: Graph, opset: int) -> Counter[str] | None:
    """The kinds of nodes that a graph is written in; None where it is too large, or cannot be written."""
    if weights(graph) > LARGE_WEIGHTS:
        return None
    try:
        return _kinds(op_types(with_weights_made(graph), opset))
    except SuperoptError:
        return None


def _kinds(found: Iterable[str]) -> Counter[str]:
    return Counter(kind for kind in found if kind not in _FREE)
