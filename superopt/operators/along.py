"""Along which axes operators compute what stands beside each other apart from each other.

Of two values that are computed alike, one value can be computed of which they are parts: inputs are joined along the
axes named here, or are the same. It is what the laws `…-concat` say, for all operators that have them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from superopt.dim import Dim, Shape, equal, product
from superopt.operators.declare import Declared
from superopt.operators.layout import Concat, Expand, Reshape, Slice, Transpose
from superopt.operators.normalize import AlongAxis
from superopt.operators.reductions import Reduction

Origins: TypeAlias = "tuple[int | None, ...]"
"""Of each input the axis along which it is joined; None where it is the same for both."""


_T = TypeVar("_T")


def origins(op: Declared, axis: int, result: Shape, shapes: Sequence[Shape]) -> Iterator[Origins]:
    """Along which axes inputs of these shapes may be joined for results that are joined along an axis.

    The operator over the joined inputs is `widened`.
    """
    if op.pointwise:
        yield (axis,) * len(shapes)
    elif op.named_axes:
        yield from _named(op, axis, shapes)
    elif isinstance(op, Transpose):
        yield (op.perm[axis],)
    elif isinstance(op, Expand):
        yield (op.axes.index(axis) if axis in op.axes else None,)
    elif isinstance(op, Concat | Slice | AlongAxis):
        if axis != op.axis:
            yield (axis,) * len(shapes)
    elif isinstance(op, Reduction):
        yield ([a for a in range(len(shapes[0])) if a not in op.axes][axis],)
    elif isinstance(op, Reshape):
        yield from ((a,) for a in range(len(shapes[0])) if _same_blocks(result, axis, shapes[0], a))


def widened(op: Declared, axis: int, size: Dim) -> Declared:
    """The operator whose result has another size along an axis."""
    if isinstance(op, Reshape | Expand):
        return replace(op, to=(*op.to[:axis], size, *op.to[axis + 1 :]))
    return op


def deeper(op: Declared, axis: int, axes: Origins, size: Dim) -> Declared | None:
    """The operator over one axis more, of a size, in front of one of `origins`; None where it has no such form."""
    if op.pointwise or op.batched:
        return op
    if isinstance(op, Transpose):
        (below,) = axes
        assert below is not None
        return Transpose(tuple(_inserted([a + (a >= below) for a in op.perm], axis, below)))
    if isinstance(op, Expand):
        own = [a + (a >= axis) for a in op.axes]
        return Expand(
            tuple(own if axis not in op.axes else _inserted(own, op.axes.index(axis), axis)),
            tuple(_inserted(op.to, axis, size)),
        )
    return replace(op, axis=op.axis + (op.axis >= axis)) if isinstance(op, Concat | Slice) else None


def _inserted(given: Sequence[_T], place: int, new: _T) -> list[_T]:
    return [*given[:place], new, *given[place:]]


def _named(op: Declared, axis: int, shapes: Sequence[Shape]) -> Iterator[Origins]:
    left, right = op.named_axes.split("->")
    places = [_names(part, len(shape), op.batched) for part, shape in zip(left.split(","), shapes, strict=True)]
    name = _names(right, max(map(len, shapes)), op.batched)[axis]
    undivided = any(getattr(op, a) != value for a, value in op.undivided.get(name, {}).items())
    if name and not undivided:
        yield tuple(place.index(name) if name in place else None for place in places)


def _names(part: str, rank: int, batched: bool) -> list[str]:
    """The names of so many axes: windowed ones, of any number, have none; those before the named ones are counted."""
    names = [name for name in part.split() if not name.startswith("(")]
    rest = rank - len(names)
    return [*(f"batch{i}" for i in range(rest)), *names] if batched else [*names, *("" for _ in range(rest))]


def _same_blocks(one: Shape, a: int, other: Shape, b: int) -> bool:
    """Whether as many blocks of elements stand before each other along two axes: those before are as many."""
    return equal(product(one[:a]), product(other[:b])) is True
