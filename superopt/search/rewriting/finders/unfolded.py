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
from dataclasses import dataclass, replace

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.arithmetic.field import FIELD
from superopt.dim import Shape, product
from superopt.operators.conv import Conv
from superopt.operators.layout import Concat, Expand, Reshape, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.picks import Every, Slice, Take
from superopt.relations import are_equal, equal_shapes, is_one
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.search.rewriting.finders.items import MixedError
from superopt.search.rewriting.finders.remade import remade
from superopt.search.rewriting.finders.steps import Steps
from superopt.search.rewriting.narrow import narrowed
from superopt.term import Term, make, subterms, variable

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
    their elements a row has, as (c, places) in order, and how many there are, which may be of each channel by itself.
    """

    pictures: Term
    conv: Conv
    order: tuple[int, ...]
    kernel: tuple[int, ...]
    counts: Shape
    by_channel: bool


class Unfolding(Fewer):
    """Finds windows that are laid out to be multiplied."""

    name = "windows convolved where they are"
    heads = (MatMul,)

    def __init__(self) -> None:
        super().__init__()
        self._read: dict[tuple[Term, bool], Windows | None] = {}

    def forget_terms(self) -> None:
        """Forget what was remembered of terms."""
        super().forget_terms()
        self._read.clear()

    def may_be(self, term: Term) -> bool:
        """Whether it is a product with constant weights of what is picked, not far above."""
        x, y = term.inputs
        return x.constant != y.constant and source_of(y if x.constant else x) is not None

    def made(self, term: Term) -> Term | None:
        """The convolution."""
        x, y = term.inputs
        weights = _one_matrix(x if x.constant else y)
        if weights is None:
            return None
        found = self._windows(y if x.constant else x, by_rows=y.constant)
        return (
            None
            if found is None or found.by_channel
            else _convolved(term, found, weights if y.constant else Transpose((1, 0))(weights))
        )

    def _windows(self, laid_out: Term, by_rows: bool) -> Windows | None:
        key = laid_out, by_rows
        if key not in self._read:
            self._read[key] = windows_of(laid_out, by_rows)
        return self._read[key]


def source_of(laid_out: Term) -> Term | None:
    """What the lowest elements are picked of below moves; None where none are, or fewer than there are to pick."""
    found, term = None, laid_out
    for _ in range(DEEPEST):
        if not isinstance(term.operator, MOVES):
            break
        found, term = (term.inputs[0] if isinstance(term.operator, PICKS) else found), term.inputs[0]
    return found


def _one_matrix(weights: Term) -> Term | None:
    """The matrix that all of a stack are multiplied by."""
    *stack, inner, results = weights.shape
    if all(map(is_one, stack)):
        return reshaped(weights, (inner, results))
    (once,), last = narrowed((weights,)), weights.type.rank - 1
    repeat = once.operator
    return once.inputs[0] if isinstance(repeat, Expand) and repeat.axes == (last - 1, last) else None


def windows_of(laid_out: Term, by_rows: bool) -> Windows | None:
    """What windows are laid out as rows, or columns; None where these are none."""
    source = source_of(laid_out)
    if source is None or source.type.rank not in (2, 3, 4) or (one := _of_one(laid_out, source)) is None:
        return None
    own, first = one
    if not math.prod(_sizes(first)) <= math.prod(_sizes(own)) <= MOST or (origin := _origins(own, first)) is None:
        return None
    origin = origin if by_rows else origin.swapaxes(-1, -2)
    rows = origin.reshape(-1, origin.shape[-1])
    if not (rows == rows[:, :1] + rows[:1] - rows[0, 0]).all():
        return None
    sizes, pictures = _sizes(first), source
    if len(sizes) == 2:  # signals of one channel
        sizes, pictures = (sizes[0], 1, sizes[1]), reshaped(source, (source.shape[0], 1, source.shape[1]))
    for axis in (CHANNELS_FIRST, CHANNELS_LAST):
        if (found := _grids(rows, sizes, pictures, axis)) is not None:
            return replace(found, counts=(source.shape[0], *found.counts[1:]))
    return None


def _of_one(laid_out: Term, source: Term) -> tuple[Term, Term] | None:
    """What is laid out, and of what, of known sizes: of one picture where a symbol stands for how many there are."""
    if laid_out.sized:
        return laid_out, source
    steps = Steps((source,), frozenset(range(1, source.type.rank)))
    try:
        axes = steps.of(laid_out)
    except MixedError:
        return None
    if not axes[0] or axes[0][0].batch is None:
        return None
    one = variable("one", (1, *source.shape[1:]), source.type.dtype)
    made = remade(steps, laid_out, {source: one}, {0: 1})
    return (made, one) if made is not None and made.sized else None


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


def _grids(rows: Array, whole: Sequence[int], pictures: Term, channels: int) -> Windows | None:
    """Windows, if the first row is a grid of places, and first elements are one in order; of these the one has all
    channels, the other has the first.
    """
    rank = len(whole)
    order = (0, channels % rank, *(a for a in range(1, rank) if a != channels % rank))
    sizes = tuple(whole[a] for a in order)
    within, begins = (np.array(np.unravel_index(i, tuple(whole)))[list(order)] for i in (rows[0], rows.min(axis=1)))
    of_kernel, of_begins = ([_evenly(axis) for axis in axes] for axes in (within[1:], begins))
    if within[0].any() or None in of_kernel or None in of_begins:
        return None
    kernel, counts = ([r for r in ranges if r is not None] for ranges in (of_kernel, of_begins))
    shape = tuple(map(len, kernel))
    places = [(axis - r.start) // r.step for axis, r in zip(within[1:], kernel, strict=True)]
    numbers = np.ravel_multi_index(places, shape)
    by_channel = len(kernel[0]) < sizes[1]
    if (len(kernel[0]), len(counts[1])) != ((1, sizes[1]) if by_channel else (sizes[1], 1)):
        return None
    if sorted(numbers) != list(range(math.prod(shape))) or any(r.start for r in (kernel[0], *counts)):
        return None
    grid = np.stack(np.meshgrid(*counts, indexing="ij")).reshape(len(counts), -1)
    if len(counts[0]) != sizes[0] or grid.shape != begins.shape or (grid != begins).any():
        return None
    steps, far = [r.step for r in counts[2:]], [r.step for r in kernel[1:]]
    conv = Conv(tuple(steps), (0,) * (2 * len(steps)), tuple(far))
    pictures = pictures if channels == CHANNELS_FIRST else Transpose(order)(pictures)
    ends = tuple(map(len, (counts[0], *counts[2:])))
    return Windows(pictures, conv, tuple(map(int, np.argsort(numbers))), shape, ends, by_channel)


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
    if not equal_shapes(y.shape, (found.counts[0], results, *found.counts[1:])):
        return None
    if term.inputs[0].constant:
        return reshaped(y, term.shape) if are_equal(product(term.shape[:-2]), found.counts[0]) else None
    rows = Transpose((0, 2, 1))(reshaped(y, (found.counts[0], results, product(found.counts[1:]))))
    return reshaped(rows, term.shape)
