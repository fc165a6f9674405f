"""Deformable attention (Zhu et al. 2021), as exporters write it: where its maps, places and weights lie.

Each head of each query looks a map of its own up at a few places, on several levels, and weighs what it finds there:
`Σ_l Σ_p w[n, q, l, p] · GridSample(x_l, g_l)[n, c, q, p]`. Levels are joined, multiplied and summed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import onnx_ir as ir

from superopt.dim import Dim, Shape, product
from superopt.onnx_io.otherwise.maps.laid import Digit, Laid, are_alike, laid, merged
from superopt.onnx_io.otherwise.maps.sampling import Sampling, sampling
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import reduction
from superopt.onnx_io.said import is_a
from superopt.operators.layout import Concat, Reshape
from superopt.relations import are_equal, equal_shapes, is_one
from superopt.term import Term

EXACT = 2**24
"""Up to it, integers are told apart as 32-bit floating-point numbers."""


class Level(NamedTuple):
    """A map of each head: its first row of channels, its sizes, how many rows on the next one below and beside are, at
    how many places it is looked up, and whether these count from the middle of the first element to that of the last.
    """

    first: int
    height: int
    width: int
    below: int
    beside: int
    points: int
    corners: bool


class Attention(NamedTuple):
    """What is summed up: rows of a value, for maps of these sizes (of batches, and heads) and queries last, between
    neighbours of which so many rows are. Names of places, and how many each has, and of weights are such that maps and
    queries turn in an order.
    """

    values: str
    channels: int
    levels: tuple[Level, ...]
    sizes: Shape
    between: tuple[int, ...]
    order: tuple[int, ...]
    places: tuple[tuple[str, int], ...]
    weights: str

    @property
    def points(self) -> int:
        """At how many places each head of each query looks."""
        return sum(level.points for level in self.levels)


def attention(
    program: Program, made: Mapping[str, Term], nodes: Mapping[str, ir.Node], node: ir.Node
) -> Attention | None:
    """What a node sums up, where that is such an attention to maps that nodes sample, by what these give."""
    summed = reduction(program, node, "ReduceSum")
    weighed = None if summed is None else summed.of.producer()
    if summed is None or not is_a(weighed, "Mul") or summed.axes != (3,) or len(summed.shape) != 4:
        return None
    left, right = (program.term(v) for v in weighed.inputs)
    n, c, q, k = summed.shape
    if left is None or right is None or not isinstance(c, int) or not isinstance(k, int):
        return None
    for found, weights in ((left, right), (right, left)):
        if equal_shapes(found.shape, summed.shape) and equal_shapes(weights.shape, (n, 1, q, k)):
            return _read(program, made, nodes, found, weights)
    return None


def _read(
    program: Program, made: Mapping[str, Term], nodes: Mapping[str, ir.Node], found: Term, weights: Term
) -> Attention | None:
    """An attention of what is found on all levels, one behind the other, and the weights of all."""
    n, channels, queries, points = found.shape
    several = list[tuple[Sampling, int]]()
    for part, many in _behind_each_other(found, made):
        place = laid(part, made)
        sampled = sampling(program, made, nodes.get(place.of))
        if sampled is None or not isinstance(many, int) or not _is_whole(place, sampled.shape):
            return None
        if not equal_shapes(sampled.shape[:2], (n, channels)):
            return None
        several.append((sampled, many))
    values = several[0][0].maps
    assert isinstance(channels, int)
    levels = [_level(sampled, many, values, channels) for sampled, many in several]
    known = tuple(level for level in levels if level is not None)
    sizes = (*(digit.size for digit in values.axes[0]), queries)
    if len(known) < len(several) or not _are_told(sizes, program.values[values.of].shape):
        return None
    between = (*(_stride((digit,)) // channels for digit in values.axes[0]), 0)
    places = [sampled.places.reshaped((*sizes, many, 2)) for sampled, many in several]
    given = laid(weights, made).reshaped((*sizes, points))
    one = Attention(values.of, channels, known, sizes, between, (), (), "")
    order = None if given is None or None in places else _order(program, one, [p for p in places if p], given)
    if order is not None and given is not None and places[0] is not None:
        return one._replace(order=order, places=((places[0].of, one.points),), weights=given.of)
    each = tuple((sampled.grid, many) for sampled, many in several)
    return one._replace(order=tuple(range(len(sizes))), places=each, weights=weights.label)


def _behind_each_other(term: Term, made: Mapping[str, Term]) -> list[tuple[Term, Dim]]:
    """What stands one behind the other along the last of four axes, and how many elements each part has there."""
    joined = _opened(term, made)
    if isinstance(joined.operator, Reshape):
        before = _opened(joined.inputs[0], made)
        if equal_shapes(before.shape[:3], term.shape[:3]):  # only the last axes are merged
            joined = before
    parts = _joined(joined, 3)
    return [(part, product(part.shape[3:])) for part in parts] if len(parts) > 1 else [(term, term.shape[3])]


def _joined(term: Term, axis: int) -> list[Term]:
    """What a chain of joins along an axis is of."""
    if not isinstance(term.operator, Concat) or term.operator.axis != axis:
        return [term]
    return [part for side in term.inputs for part in _joined(side, axis)]


def _opened(term: Term, made: Mapping[str, Term]) -> Term:
    while term.is_variable and term.label in made:
        term = made[term.label]
    return term


def _is_whole(one: Laid, shape: Shape) -> bool:
    """Whether places are all of a value of this shape, in their order."""
    return one.start == 0 and are_alike(one.digits, merged([Digit(product(shape), 1)]))


def _level(one: Sampling, points: int, values: Laid, channels: int) -> Level | None:
    """Where the map of a level lies; None where that is not in rows of the same value as the first one's."""
    maps, (height, width) = one.maps, one.sizes
    if maps.of != values.of or maps.axes[0] != values.axes[0] or maps.axes[1] != merged([Digit(channels, 1)]):
        return None
    down, right = _stride(maps.axes[2]), _stride(maps.axes[3])
    if not down or not right or height * down + width * right > EXACT * channels:
        return None
    if any(step % channels for step in (maps.start, down, right, *(_stride((d,)) for d in maps.axes[0]))):
        return None
    first, below, beside = (step // channels for step in (maps.start, down, right))
    return Level(first, height, width, below, beside, points, one.corners)


def _are_told(sizes: Shape, values: Shape) -> bool:
    """Whether all sizes are numbers, but for the first, which may be that of the first axis of values."""
    first, *others = sizes
    return all(isinstance(size, int) for size in others) and (isinstance(first, int) or are_equal(first, values[0]))


def _stride(digits: Sequence[Digit]) -> int:
    """What is between two elements along an axis of one stride; 0 where it has another."""
    stride = digits[0].stride if len(digits) == 1 else 0
    return stride if isinstance(stride, int) else 0


def _order(program: Program, one: Attention, places: Sequence[Laid], weights: Laid) -> tuple[int, ...] | None:
    """The order in which maps and queries turn, where places and weights have it alike, and are all of what they lie
    in, levels one behind the other.
    """
    row, before = one.points, 0
    for place, level in zip(places, one.levels, strict=True):
        if place.of != places[0].of or place.start != 2 * before:
            return None
        if place.axes[-2:] != (merged([Digit(level.points, 2)]), (Digit(2, 1),)):
            return None
        before += level.points
    if weights.start or weights.axes[-1] != merged([Digit(row, 1)]):
        return None
    for of, many in ((places[0].of, 2 * row), (weights.of, row)):
        if not are_equal(product(program.values[of].shape), product(one.sizes) * many):
            return None
    own = [_stride(axis) for axis in weights.axes[:-1]]
    if any([_stride(axis) for axis in place.axes[:-2]] != [2 * stride for stride in own] for place in places):
        return None
    order = sorted(range(len(own)), key=lambda a: -own[a])
    expected: Dim = row
    for a in reversed(order):
        if not is_one(one.sizes[a]) and not are_equal(own[a], expected):
            return None
        expected = expected * one.sizes[a]
    return tuple(order)
