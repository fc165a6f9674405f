"""What is read of a value of which the axes are merged or taken apart: rows of matrices are those of sequences.

Linear layers of transformers read all tokens of a batch below each other, attention reads each head by itself. A
sequence's first token is one row of these, that of each sequence of a batch a row in as many as a sequence is long.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from superopt.dim import Shape, product
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.unread.cuts import Need
from superopt.onnx_io.otherwise.unread.evenly import Places, evenly
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import shape_of
from superopt.relations import are_equal

VIEWS = ("Flatten", "Reshape")
"""What leaves all elements where they are, one behind the other."""


def of_view(program: Program, node: ir.Node, of: Need) -> dict[int, Need] | None:
    """What a view reads for places of what it gives: the same elements, where these are places along an axis."""
    x, y = shape_of(program, node.inputs[0]), shape_of(program, node.outputs[0])
    if x is None or y is None or not _is_written(y, of.axis) or any(isinstance(d, int) and d == 0 for d in x):
        return None
    return next(({0: need} for need in places_alike(x, y, of)), None)


def view(program: Program, node: ir.Node, of: Need, x: ir.Value, made: NewNodes) -> ir.Value:
    """What a view gives of the places that are read of it."""
    given = shape_of(program, node.outputs[0])
    assert given is not None
    sizes = (of.places.many if axis == of.axis else d for axis, d in enumerate(given))
    return made.reshaped(x, [d if isinstance(d, int) else -1 for d in sizes])


def _is_written(shape: Shape, axis: int) -> bool:
    """Whether a shape can be written once it has fewer places along an axis: but for one more size it is known."""
    others = (*shape[:axis], *shape[axis + 1 :])
    known = [d for d in others if isinstance(d, int)]
    return len(known) + 1 >= len(others) and 0 not in known


def places_alike(x: Shape, y: Shape, of: Need) -> Iterator[Need]:
    """Places along axes of what is read, of a shape, that have the elements of places of what is given."""
    for axis, size in enumerate(x):
        if are_equal(size, y[of.axis]) and are_equal(product(x[:axis]), product(y[: of.axis])):
            yield Need(axis, of.places)
    if all(isinstance(d, int) for d in (*x, *y)):
        for axis in range(len(x)):
            if (places := _apart(_blocks(x, axis), _blocks(y, of.axis), of.places)) is not None:
                yield Need(axis, places)


def _blocks(shape: Shape, axis: int) -> tuple[int, int, int]:
    """How many blocks of how many places an axis has, of how many elements each."""
    each = [product(some) for some in (shape[:axis], shape[axis : axis + 1], shape[axis + 1 :])]
    outer, size, inner = (n for n in each if isinstance(n, int))
    return outer, size, inner


def _apart(read: tuple[int, int, int], given: tuple[int, int, int], places: Places) -> Places | None:
    """The places of an axis that is read, whose elements are those of places of one that is given; None where they are
    no places that are evenly apart.
    """
    (outer, size, inner), (blocks, many, each) = read, given
    if blocks % outer == 0 and each % inner == 0:  # the one read is merged of others, and of the one given
        around, within = blocks // outer, each // inner
        if around == 1 and (within == 1 or places.step == 1):
            last = places.last * within + within - 1
            return evenly(places.first * within, last, places.step if within == 1 else 1)
        if within == 1 and places.many == 1:
            return evenly(places.first, places.first + many * (around - 1), many)
    if outer % blocks == 0 and inner % each == 0:  # the one given is
        around, within = outer // blocks, inner // each
        if around == 1 and places.step == 1 and places.first % within == 0 and places.many % within == 0:
            return evenly(places.first // within, places.last // within, 1)
        one_of_each = evenly(places.first, places.first + size * (around - 1), size)
        if within == 1 and around > 1 and places.first < size and places == one_of_each:
            return evenly(places.first, places.first, 1)
    return None
