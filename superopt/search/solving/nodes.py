"""Whether superopt writes what it reads of a piece in other nodes than the model has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from superopt.cost.whole import with_weights_made
from superopt.demands import assuming
from superopt.errors import SuperoptError
from superopt.onnx_io import Program, op_types, opset_of
from superopt.search.cutting.pieces import Piece
from superopt.search.objectives.latency import LARGE_WEIGHTS, weights
from superopt.term import Graph, variables

_FREE = frozenset({"Constant", "Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""What moves nothing."""


def written_otherwise(program: Program, places: Sequence[Piece]) -> list[bool]:
    """Of each place of a piece whether its nodes are of other kinds than those that it would be written in."""
    ours = _ours(program, places)
    return [ours is not None and ours != theirs for theirs in _theirs(program, places)]


def written_in_fewer(program: Program, places: Sequence[Piece]) -> bool:
    """Whether a piece would be written in fewer nodes than it has at one of its places: no cost of ours tells what the
    others take.
    """
    ours = _ours(program, places)
    return ours is not None and any(ours.total() < theirs.total() for theirs in _theirs(program, places))


def _ours(program: Program, places: Sequence[Piece]) -> Counter[str] | None:
    return _written(places[0].plain, opset_of(program.model))


def _theirs(program: Program, places: Sequence[Piece]) -> list[Counter[str]]:
    return [_kinds(step.node.op_type for step in program.steps[p.steps.start : p.steps.stop]) for p in places]


@lru_cache(maxsize=1 << 10)
def _written(graph: Graph, opset: int) -> Counter[str] | None:
    """The kinds of nodes that a graph is written in; None where it is too large, cannot be written, or has constants as
    large as a symbol says.
    """
    if weights(graph) > LARGE_WEIGHTS:
        return None
    try:
        with assuming():  # what was assumed of symbolic sizes when the piece was read
            made = with_weights_made(graph)
            sized = all(isinstance(d, int) for v in variables(*made.outputs) if v.constant for d in v.shape)
            return _kinds(op_types(made, opset)) if sized else None
    except SuperoptError:
        return None


def _kinds(found: Iterable[str]) -> Counter[str]:
    return Counter(kind for kind in found if kind not in _FREE)
