"""Which boxes of a value are parts of which others, whatever joins, cuts and moves these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import reduce
from itertools import pairwise, permutations
from typing import NamedTuple, TypeAlias

from superopt.dim import Dim, Shape
from superopt.errors import SuperoptError
from superopt.onnx_io.program import Program
from superopt.operators.layout import Concat, Reshape, Transpose
from superopt.operators.padding import Pad
from superopt.operators.picks import Slice
from superopt.relations import are_equal, equal_shapes, is_one
from superopt.term import Term, subterms

MOST = 2**11
"""So many parts of a value are told, at most."""

MOST_CELLS, MOST_CUT = 2**9, 4
"""So many cells are joined anew, of so many axes that are cut."""

Range: TypeAlias = tuple[Dim, Dim]
"""From which place of an axis to before which; of an axis whose size is a symbol all of it."""


class UntoldError(SuperoptError):
    """What parts a value has is not told, or they are too many."""


class Part(NamedTuple):
    """A box of a value, and where what stands there does in another one: from which places on, and along which of its
    axes each axis of the box is, if it has that.
    """

    box: tuple[Range, ...]
    of: str
    first: tuple[int, ...]
    axes: tuple[int | None, ...]

    @property
    def sizes(self) -> Shape:
        """How many places it has along each axis."""
        return tuple(stop - start for start, stop in self.box)

    def within(self, axis: int, start: Dim, stop: Dim) -> Part | None:
        """What lies between two places of an axis, as places of the same value; None where that is nothing."""
        old = self.box[axis]
        if are_equal(old[0], start) and are_equal(old[1], stop):
            return self
        if not all(isinstance(d, int) for d in (*old, start, stop)):
            raise UntoldError
        new = max(start, old[0]), min(stop, old[1])
        if new[0] >= new[1]:
            return None
        first, own = list(self.first), self.axes[axis]
        if own is not None:
            begin = new[0] - old[0]
            first[own] += begin if isinstance(begin, int) else 0
        return self._replace(box=(*self.box[:axis], new, *self.box[axis + 1 :]), first=tuple(first))

    def at(self, axis: int, by: Dim) -> Part:
        """The same, so many places further along an axis."""
        start, stop = self.box[axis]
        return self._replace(box=(*self.box[:axis], (start + by, stop + by), *self.box[axis + 1 :]))

    def moved(self, perm: Sequence[int]) -> Part:
        """The same, of a value with its axes in another order."""
        return self._replace(box=tuple(self.box[a] for a in perm), axes=tuple(self.axes[a] for a in perm))


Parts: TypeAlias = list[Part]


def whole(label: str, shape: Shape) -> Parts:
    """A value as it is."""
    rank = len(shape)
    return [Part(tuple((0, d) for d in shape), label, (0,) * rank, tuple(range(rank)))]


def parts_of(term: Term, known: Mapping[str, Parts], with_zeros: bool = False) -> Parts:
    """The parts that a term has of values, of some of which the parts are `known`; also of what has zeros around it, if
    so, of which no part tells. Raises `UntoldError`.
    """
    made = dict[Term, Parts]()
    for inner in subterms(term):  # one after the other: what joins hundreds of values is as many steps deep
        made[inner] = _parts_over(inner, [made[below] for below in inner.inputs], known, with_zeros)
    return made[term]


def _parts_over(term: Term, several: Sequence[Parts], known: Mapping[str, Parts], with_zeros: bool) -> Parts:
    """The parts of a term, by those of its inputs. Raises `UntoldError`."""
    how = term.operator
    if term.is_variable:
        return known.get(term.label) or whole(term.label, term.shape)
    if isinstance(how, Concat):
        size = term.inputs[0].shape[how.axis]
        if not isinstance(term.shape[how.axis], int):
            raise UntoldError
        found = several[0] + [part.at(how.axis, size) for part in several[1]]
    elif isinstance(how, Transpose):
        found = [part.moved(how.perm) for part in several[0]]
    elif isinstance(how, Slice):
        cut = [part.within(how.axis, how.start, how.stop) for part in several[0]]
        found = [part.at(how.axis, -1 * how.start) for part in cut if part is not None]
    elif isinstance(how, Pad) and with_zeros:
        found = several[0]
        for axis, (before, behind) in enumerate(zip(*_halves(how.pads), strict=True)):
            if not all(isinstance(width, int) and width >= 0 for width in (before, behind)):
                raise UntoldError
            found = [part.at(axis, before) if before else part for part in found]
    elif isinstance(how, Reshape):
        found = _reshaped(several[0], term.inputs[0].shape, term.shape)
    else:
        raise UntoldError
    if len(found) > MOST:
        raise UntoldError
    return found


def parts_by_name(program: Program, with_zeros: bool = False) -> dict[str, Parts]:
    """The parts of all values of a program that are joined, cut and moved of others, as `parts_of` tells them."""
    known = dict[str, Parts]()
    for step in program.steps:
        for name, term in zip(step.outputs, step.terms, strict=False):
            with suppress(UntoldError):
                known[name] = parts_of(term, known, with_zeros)
    return known


def fewer(parts: Parts) -> Parts:
    """The same parts, joined where they are of places beside each other: what was cut for what lay in between, which
    others cover. All are cut where any is, and joined along one axis after the other, in the best order.
    """
    cells, cut = parts, list[int]()
    for axis in range(len(parts[0].box) if parts else 0):
        ends = sorted({d for part in parts for d in part.box[axis] if isinstance(d, int)})
        if len(ends) > 2 and all(isinstance(d, int) for part in parts for d in part.box[axis]):
            strips = list(pairwise(ends))
            cells = [cell for part in cells for strip in strips if (cell := part.within(axis, *strip)) is not None]
            cut.append(axis)
        if len(cells) > MOST_CELLS:
            return parts
    ways = permutations(cut) if len(cut) <= MOST_CUT else ()
    return min((parts, *(reduce(_joined, way, cells) for way in ways)), key=len)


def _joined(parts: Parts, axis: int) -> Parts:
    """Parts with those as one that follow each other along an axis, in both values."""
    found = dict[tuple[object, ...], Part]()
    for part in sorted(parts, key=lambda part: _start(part, axis)):
        own, size = part.axes[axis], part.sizes[axis]
        if own is None or not isinstance(size, int):
            found[part] = part
            continue
        apart = part.first[own] - _start(part, axis)
        key = (
            part.of,
            part.axes,
            part.box[:axis],
            part.box[axis + 1 :],
            part.first[:own],
            apart,
            part.first[own + 1 :],
        )
        before = found.get(key)
        if before is not None and are_equal(before.box[axis][1], part.box[axis][0]):
            box = (*part.box[:axis], (before.box[axis][0], part.box[axis][1]), *part.box[axis + 1 :])
            part = before._replace(box=box)
        elif before is not None:
            found[before] = before
        found[key] = part
    return list(found.values())


def _start(part: Part, axis: int) -> int:
    """At which place of an axis a part starts."""
    start = part.box[axis][0]
    return start if isinstance(start, int) else 0


def _halves(pads: Shape) -> tuple[Shape, Shape]:
    """The widths before each axis, and those behind it."""
    return pads[: len(pads) // 2], pads[len(pads) // 2 :]


def _reshaped(parts: Parts, shape: Shape, to: Shape) -> Parts:
    """Parts of a value that has other axes of one place. Raises `UntoldError`."""
    old, new = ([a for a, d in enumerate(sizes) if not is_one(d)] for sizes in (shape, to))
    if not equal_shapes(tuple(shape[a] for a in old), tuple(to[a] for a in new)):
        raise UntoldError
    before = dict(zip(new, old, strict=True))
    axes: list[int | None] = [before.get(a) for a in range(len(to))]
    return [
        part._replace(
            box=tuple((0, 1) if a is None else part.box[a] for a in axes),
            axes=tuple(None if a is None else part.axes[a] for a in axes),
        )
        for part in parts
    ]
