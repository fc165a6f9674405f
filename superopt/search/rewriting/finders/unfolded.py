"""Products of weights with windows that are laid out as rows: the convolutions that they are.

`unfold` copies each window of a picture, or of a signal, into a row of its own, and a linear layer follows: tokens of
overlapping patches (T2T-ViT, Yuan et al. 2021), convolutions that are written by hand. The way there is takes, reshapes
and transposes in many orders, with channels before the window's places or behind them; so it is not matched, but asked
where each element comes from. What stands in row r and column k is at `base[r] + offset[k]` in windows of a picture,
where bases are a grid of its places, and offsets all channels of a grid of places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from superopt.arithmetic import FIELD, Array
from superopt.dim import is_one
from superopt.operators.layout import Concat, Expand, Reshape, Transpose, reshaped
from superopt.operators.linear import Conv, MatMul
from superopt.operators.picks import Every, Slice, Take
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.search.rewriting.narrow import narrowed
from superopt.term import Term, make, subterms

DEEPEST = 32
"""Below more moves than these no picture is looked for."""

MOST = 1 << 21
"""Of more elements it is not asked where they come from."""

PICKS = (Take, Slice, Every)
"""What picks elements."""

MOVES = (Reshape, Transpose, Concat, *PICKS)
"""What windows are laid out by."""

CHANNELS_FIRST, CHANNELS_LAST = 1, -1
"""Along which axis a picture may have its channels."""


@dataclass(frozen=True)
class Windows:
    """The windows of pictures (n, c, places): where they begin, at each so many-th place along each axis, which of
    their elements a row has, as (c, places) in order, and how many there are.
    """

    pictures: Term
    conv: Conv
    order: tuple[int, ...]
    kernel: tuple[int, ...]
    counts: tuple[int, ...]


class Unfolding(Fewer):
    """Finds windows that are laid out to be multiplied."""

    name = "windows convolved where they are"

    def __init__(self) -> None:
        super().__init__()
        self._read: dict[tuple[Term, bool], Windows | None] = {}

    def forget_terms(self) -> None:
        """Forget what was remembered of terms."""
        super().forget_terms()
        self._read.clear()

    def may_be(self, term: Term) -> bool:
        """Whether it is a product with constant weights of what is picked, not far above."""
        if not isinstance(term.operator, MatMul):
            return False
        x, y = term.inputs
        return x.constant != y.constant and _source(y if x.constant else x) is not None

    def made(self, term: Term) -> Term | None:
        """The convolution."""
        x, y = term.inputs
        weights = _one_matrix(x if x.constant else y)
        if weights is None:
            return None
        found = self._windows(y if x.constant else x, by_rows=y.constant)
        return None if found is None else _convolved(term, found, weights if y.constant else Transpose((1, 0))(weights))

    def _windows(self, laid_out: Term, by_rows: bool) -> Windows | None:
        key = laid_out, by_rows
        if key not in self._read:
            self._read[key] = _windows(laid_out, by_rows)
        return self._read[key]


def _source(laid_out: Term) -> Term | None:
    """What the lowest elements are picked of below moves; None where none are, or fewer than there are to pick."""
    found, term = None, laid_out
    for _ in range(DEEPEST):
        if not isinstance(term.operator, MOVES):
            break
        found, term = (term.inputs[0] if isinstance(term.operator, PICKS) else found), term.inputs[0]
    if found is None or not laid_out.sized or math.prod(_sizes(found)) > math.prod(_sizes(laid_out)):
        return None
    return found


def _one_matrix(weights: Term) -> Term | None:
    """The matrix that all of a stack are multiplied by."""
    *stack, inner, results = weights.shape
    if all(map(is_one, stack)):
        return reshaped(weights, (inner, results))
    (once,), last = narrowed((weights,)), weights.type.rank - 1
    repeat = once.operator
    return once.inputs[0] if isinstance(repeat, Expand) and repeat.axes == (last - 1, last) else None


def _windows(laid_out: Term, by_rows: bool) -> Windows | None:
    """What windows are laid out as rows, or columns; None where these are none."""
    source = _source(laid_out)
    if source is None or source.type.rank not in (3, 4) or math.prod(_sizes(laid_out)) > MOST:
        return None
    origin = _origins(laid_out, source)
    if origin is None:
        return None
    origin = origin if by_rows else origin.swapaxes(-1, -2)
    rows = origin.reshape(-1, origin.shape[-1])
    if not (rows == rows[:, :1] + rows[:1] - rows[0, 0]).all():
        return None
    for axis in (CHANNELS_FIRST, CHANNELS_LAST):
        if (found := _grids(rows, source, axis)) is not None:
            return found
    return None


def _sizes(term: Term) -> tuple[int, ...]:
    return tuple(d for d in term.shape if isinstance(d, int))


def _origins(laid_out: Term, source: Term) -> Array | None:
    """Of each element the number of that in the source which it is; None where some are of other things."""
    shape = _sizes(source)
    numbers: dict[Term, Array] = {source: np.arange(math.prod(shape)).reshape(shape)}
    for term in subterms(laid_out, known=numbers):
        if not isinstance(term.operator, MOVES):
            return None
        numbers[term] = term.operator.eval(FIELD, *(numbers[i] for i in term.inputs))
    return numbers[laid_out]


def _grids(rows: Array, source: Term, channels: int) -> Windows | None:
    """Windows, if the first row is all channels of a grid of places, and first elements are a grid in order."""
    rank = source.type.rank
    order = (0, channels % rank, *(a for a in range(1, rank) if a != channels % rank))
    sizes = tuple(_sizes(source)[a] for a in order)
    within, begins = (np.array(np.unravel_index(i, _sizes(source)))[list(order)] for i in (rows[0], rows.min(axis=1)))
    of_kernel = [_evenly(axis) for axis in within[1:]]
    of_begins = [_evenly(axis) for axis in (begins[0], *begins[2:])]
    if begins[1].any() or within[0].any() or None in of_kernel or None in of_begins:
        return None
    kernel, counts = ([r for r in ranges if r is not None] for ranges in (of_kernel, of_begins))
    shape = tuple(map(len, kernel))
    places = [(axis - r.start) // r.step for axis, r in zip(within[1:], kernel, strict=True)]
    numbers = np.ravel_multi_index(places, shape)
    if len(kernel[0]) != sizes[1] or sorted(numbers) != list(range(math.prod(shape))):
        return None
    if begins.shape[1] != math.prod(map(len, counts)) or any(r.start for r in counts):
        return None
    grid = np.stack(np.meshgrid(*counts, indexing="ij")).reshape(len(counts), -1)
    if len(counts[0]) != sizes[0] or (grid != begins[[0, *range(2, len(begins))]]).any():
        return None
    steps, far = [r.step for r in counts[1:]], [r.step for r in kernel[1:]]
    conv = Conv(tuple(steps), (0,) * (2 * len(steps)), tuple(far))
    pictures = source if channels == CHANNELS_FIRST else Transpose(order)(source)
    return Windows(pictures, conv, tuple(map(int, np.argsort(numbers))), shape, tuple(map(len, counts)))


def _evenly(places: Sequence[int] | Array) -> range | None:
    """The distinct ones of some numbers, where they are at equal distances; one is at a distance of one."""
    distinct = np.unique(places)
    steps = np.diff(distinct)
    if len(distinct) > 1 and (steps != steps[0]).any():
        return None
    step = int(steps[0]) if len(distinct) > 1 else 1
    return range(int(distinct[0]), int(distinct[-1]) + 1, step)


def _convolved(term: Term, found: Windows, weights: Term) -> Term | None:
    """The product of windows and weights (channels, results) as a convolution; None where that has other places."""
    results = weights.shape[1]
    ordered = weights if found.order == tuple(range(len(found.order))) else Take(0, found.order)(weights)
    kernel = reshaped(Transpose((1, 0))(ordered), (results, *found.kernel))
    y = make(found.conv, (found.pictures, kernel))
    if y.shape != (found.counts[0], results, *found.counts[1:]):
        return None
    if term.inputs[0].constant:
        return reshaped(y, term.shape) if math.prod(_sizes(term)[:-2]) == found.counts[0] else None
    rows = Transpose((0, 2, 1))(reshaped(y, (found.counts[0], results, math.prod(found.counts[1:]))))
    return reshaped(rows, term.shape)
