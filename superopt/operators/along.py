"""Along which axes operators compute what stands beside each other apart from each other.

Of two values that are computed alike, one value can be computed of which they are parts: inputs are joined along the
axes named here, or are the same. And of a value of which only some places are read no others need be computed. It is
what the laws `…-concat` and `…-slice` say, for all operators that have them, and so for what is defined by these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias, TypeVar

from superopt.demands import assuming
from superopt.dim import Dim, Shape, product
from superopt.errors import SuperoptError
from superopt.operators.conv import Conv
from superopt.operators.declared import Declared
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.normalize import AlongAxis
from superopt.operators.picks import Slice
from superopt.operators.reductions import Reduction
from superopt.relations import are_equal, is_one
from superopt.term import Term, Type, variable, variables

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


def read_along(term: Term, axis: int) -> Origins | None:
    """Of each input the axis along which one place is read for one place along an axis of a term, and None where all of
    it is; None altogether where what stands beside each other is not computed apart.
    """
    op = term.operator
    if not isinstance(op, Declared):
        return None
    found = origins(op, axis, term.shape, [i.shape for i in term.inputs])
    if isinstance(op, Reshape):
        sizes = term.inputs[0].shape
        found = ((a,) for (a,) in found if a is not None and are_equal(sizes[a], term.shape[axis]))
    if isinstance(op, Conv) and axis > 1 and _is_of_single_places(op, term.inputs[1].shape):
        return (axis, None)
    return next(found, None) or _by_definition(op, tuple([i.type for i in term.inputs]), axis)


def _is_of_single_places(op: Conv, kernel: Shape) -> bool:
    """Whether each place of a convolution's result is made of the same place of its image."""
    return all(map(is_one, (*kernel[2:], *op.strides))) and not any(op.pads)


@lru_cache(maxsize=1 << 12)
def _by_definition(op: Declared, types: tuple[Type, ...], axis: int) -> Origins | None:
    """The same of what an operator is defined by."""
    inputs = [variable(f"x{i}", t.shape, t.dtype) for i, t in enumerate(types)]
    with suppress(SuperoptError), assuming() as conditions:  # that no tensor is empty may be assumed
        meaning = op.definition(*inputs)
        read = None if meaning is None else _read_below(meaning, axis)
        if read is not None:
            found = tuple(read.get(i) for i in inputs)
            # Attributes may say how many there are: groups of channels.
            alone = op.type_of(tuple([_of_one(t, a) for t, a in zip(types, found, strict=True)]))
            if alone == _of_one(op.type_of(types), axis) and all(c.relation == "<=" for c in conditions):
                return found
    return None


def _of_one(of: Type, axis: int | None) -> Type:
    """The type with one place along an axis."""
    return of if axis is None else replace(of, shape=(*of.shape[:axis], 1, *of.shape[axis + 1 :]))


def _read_below(term: Term, axis: int) -> dict[Term, int | None] | None:
    """The same of the variables below a term; None as well where one is read in two ways."""
    if term.is_variable:
        return {term: axis}
    axes, found = read_along(term, axis), dict[Term, int | None]()
    if axes is None:
        return None
    for i, a in zip(term.inputs, axes, strict=True):
        below = dict.fromkeys(variables(i)) if a is None else _read_below(i, a)
        if below is None or any(found.get(v, at) != at for v, at in below.items()):
            return None
        found |= below
    return found


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
    return are_equal(product(one[:a]), product(other[:b]))
