"""Where the elements of a value lie in another one, parts of which it has, with axes cut, merged and moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from superopt.dim import Dim, Shape, product
from superopt.operators.layout import Reshape, Transpose
from superopt.operators.picks import Slice
from superopt.relations import are_equal, is_one
from superopt.term import Term


class Digit(NamedTuple):
    """So many elements, each so far behind the one before it."""

    size: Dim
    stride: Dim


class Laid(NamedTuple):
    """A value as places of another one, which is named, counted in row-major order from a first one on: along each axis
    by digits, the last of which turns first.
    """

    of: str
    start: int
    axes: tuple[tuple[Digit, ...], ...]

    @property
    def digits(self) -> tuple[Digit, ...]:
        """Those of all axes, as if these were one."""
        return merged([digit for axis in self.axes for digit in axis])

    def reshaped(self, shape: Shape) -> Laid | None:
        """The value under another shape; None where that cuts what is not seen to be divided."""
        left = [digit for axis in self.axes for digit in axis]
        axes: list[tuple[Digit, ...]] = []
        for size in reversed(shape):
            axis: list[Digit] = []
            while not are_equal(done := product([d.size for d in axis]), size):
                if not left or (taken := _cut(left, done, size)) is None:
                    return None
                axis.insert(0, taken)
            axes.insert(0, merged(axis))
        return None if left else self._replace(axes=tuple(axes))

    def moved(self, perm: Sequence[int]) -> Laid:
        """The value with its axes in another order."""
        return self._replace(axes=tuple(self.axes[a] for a in perm))

    def sliced(self, axis: int, start: Dim, stop: Dim) -> Laid | None:
        """A part of the value; None where the axis is not of one stride."""
        digits = self.axes[axis]
        if len(digits) != 1 or not isinstance(start, int) or not isinstance(digits[0].stride, int):
            return None
        part = (Digit(stop - start, digits[0].stride),)
        begin = self.start + start * digits[0].stride
        return self._replace(start=begin, axes=(*self.axes[:axis], part, *self.axes[axis + 1 :]))


def whole(of: str, shape: Shape) -> Laid:
    """A value as it is."""
    strides = [product(shape[i + 1 :]) for i in range(len(shape))]
    return Laid(of, 0, tuple(merged([Digit(*d)]) for d in zip(shape, strides, strict=True)))


def laid(value: Term, made: Mapping[str, Term]) -> Laid:
    """Where a value, that is a variable, lies in the first one from which on nothing is computed."""
    term = made.get(value.label)
    return (None if term is None else _read(term, made)) or whole(value.label, value.shape)


def merged(digits: Sequence[Digit]) -> tuple[Digit, ...]:
    """Digits that turn as one are one, and one of a single element is none."""
    found: list[Digit] = []
    for digit in digits:
        if is_one(digit.size):
            continue
        if found and are_equal(found[-1].stride, digit.size * digit.stride):
            digit = Digit(found.pop().size * digit.size, digit.stride)
        found.append(digit)
    return tuple(found)


def are_alike(left: Sequence[Digit], right: Sequence[Digit]) -> bool:
    """Whether digits turn alike, of all sizes."""
    pairs = [pair for digits in zip(left, right, strict=False) for pair in zip(*digits, strict=True)]
    return len(left) == len(right) and all(are_equal(*pair) for pair in pairs)


def _read(term: Term, made: Mapping[str, Term]) -> Laid | None:
    """Where what a term gives lies; None where it computes something."""
    if term.is_variable:
        return laid(term, made)
    if not isinstance(term.operator, Reshape | Slice | Transpose):
        return None
    inner, how = _read(term.inputs[0], made), term.operator
    if inner is None:
        return None
    if isinstance(how, Transpose):
        return inner.moved(how.perm)
    return inner.reshaped(how.to) if isinstance(how, Reshape) else inner.sliced(how.axis, how.start, how.stop)


def _cut(left: list[Digit], done: Dim, size: Dim) -> Digit | None:
    """What the next digit gives to an axis that has so many elements of as many as it is to have; the rest stays."""
    digit = left.pop()
    if not isinstance(size, int) or not isinstance(done, int):
        return digit
    if size % done:
        return None
    wanted = size // done
    if isinstance(digit.size, int) and (wanted % digit.size == 0 or is_one(digit.size)):
        return digit
    if not isinstance(digit.size, int) or wanted < 2 or digit.size % wanted:
        return None
    left.append(Digit(digit.size // wanted, digit.stride * wanted))
    return Digit(wanted, digit.stride)
