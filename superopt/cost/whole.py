"""Graphs as models of their own, written to be timed; and what tells such graphs apart."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from superopt.cost.flops import is_floating
from superopt.errors import NoRoom, RuntimeFailed
from superopt.onnx_io import DrawnWeights, standalone_apart
from superopt.operators.declared import Declared
from superopt.operators.layout import Expand
from superopt.term import Graph, Term, replace_all, subterms, variable, variables

Undeclared: TypeAlias = "Mapping[str, Collection[int]]"
"""By label of an input the axes whose sizes its model does not tell."""

MOST_AROUND = 2**26
"""What is read before a piece is run, in bytes, at most: more than caches of most machines hold for one thread."""


def around(weights: int, activations: int | None) -> int:
    """The bytes that a model goes through beside a piece, in powers of two, so that timings are shared among models.

    A piece that is run again and again finds all of its own in the caches; in its model it does not. Convolutions by
    tiles write six times what they read: of 1.05 times faster pieces of GoogLeNet 0.97 are left among the rest of it.
    """
    touched: int = weights + (activations or 0)
    return min(1 << touched.bit_length(), MOST_AROUND)


MOST_OF_TWO = 10**8
"""Bytes of a model's values, beyond a quarter of its weights: so much two sessions may hold of each."""


def take_much(weights: int, activations: int | None) -> bool:
    """Whether two sessions of a model, each with its weights and values, would pass the memory that is allowed: 2.5
    times the model and 500 MB, of which 300 MB are the two processes' own.
    """
    return (activations or 0) > MOST_OF_TWO + weights // 4


class Unwritable(RuntimeFailed):
    """There is no room, or no right, to write what was to be timed."""


@contextmanager
def written(
    graphs: Sequence[Graph],
    opset: int,
    weights: DrawnWeights,
    highest: int = 0,
    undeclared: Undeclared | None = None,
) -> Iterator[list[Path]]:
    """Models of these terms alone, over random weights: files that are there within the block.

    Each is of the opset, or of a newer one up to the `highest` where it needs that. Raises what emitting does, and
    `RuntimeFailed`, and `Unwritable` where no file can be made.
    """
    weights.begin()
    paths: list[Path] = []
    try:
        for graph, moved in map(_with_weights_made, graphs):
            paths.append(_path(weights, len(paths)))
            _write(graph, moved, opset, weights, highest, undeclared, paths[-1])
        yield paths
    finally:
        for path in paths:
            path.unlink(missing_ok=True)


def _path(weights: DrawnWeights, number: int) -> Path:
    try:
        return weights.folder / f"{number}.onnx"
    except NoRoom as error:
        raise Unwritable(f"models cannot be written to be timed: {error}") from None


def _unwritable(error: OSError) -> Unwritable:
    place, why = tempfile.gettempdir(), error.strerror or error
    return Unwritable(f"models cannot be written to be timed in {place}: {why}; make room, or name another by TMPDIR")


def with_weights_made(graph: Graph) -> Graph:
    """A graph in which what is made of weights is a weight itself, as the runtime gets it.

    Its values are as good if drawn, and computing them takes longer than most kernels. Repetitions stay, since what
    reads them may broadcast; so do numbers, by whose values the runtime fuses, and integers.
    """
    return _with_weights_made(graph)[0]


def _with_weights_made(graph: Graph) -> tuple[Graph, Mapping[str, Term]]:
    """The same, and by the labels of weights that others are moved to these: they are as large as those, or what is
    made of them may pass what numbers hold, and denormal ones take long.
    """
    made: dict[Term, Term] = {}
    stack = list(graph.outputs)
    seen: set[Term] = set()
    while stack:
        term = stack.pop()
        if term in seen or term.is_variable:
            continue
        seen.add(term)
        if term.constant and _is_drawn(term):
            made[term] = variable(f"made {len(made)}", term.shape, term.type.dtype, constant=True)
        else:
            stack += term.inputs
    moved = {v.label: source for term, v in made.items() if (source := _moved(term)) is not None}
    return (Graph(graph.inputs, replace_all(graph.outputs, made)) if made else graph), moved


def _moved(term: Term) -> Term | None:
    """The weight whose elements a term moves to other places, if that is all that it does."""
    while isinstance(term.operator, Declared) and term.operator.moves and len(term.inputs) == 1:
        (term,) = term.inputs
    return term if term.is_variable else None


def _is_drawn(term: Term) -> bool:
    """Whether any other values do as well."""
    return is_floating(term.type) and not isinstance(term.operator, Expand) and bool(variables(term))


def _write(
    graph: Graph,
    moved: Mapping[str, Term],
    opset: int,
    weights: DrawnWeights,
    highest: int,
    undeclared: Undeclared | None,
    path: Path,
) -> None:
    try:
        path.write_bytes(standalone_apart(graph, opset, weights, moved, highest=highest, undeclared=undeclared))
    except ValueError as error:  # protobuf's limit of 2 GB
        raise RuntimeFailed(f"the graph is too large to be timed: {error}") from None
    except OSError as error:
        raise _unwritable(error) from None


def fingerprint(graph: Graph) -> str:
    """A hash of a graph: equal for equal operators over inputs of equal types, whatever their names."""
    places: dict[Term, int] = {}
    lines: list[str] = []
    for term in subterms(*graph.outputs):
        what = (term.type, term.constant) if term.is_variable else (str(term.operator),)
        lines.append(" ".join(map(str, (*what, *(places[i] for i in term.inputs)))))
        places[term] = len(places)
    lines.append(" ".join(str(places[o]) for o in graph.outputs))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32]
