"""Convolution by tiles: fewer multiplications, which pays where many channels meet."""

from __future__ import annotations

from superopt.dim import Shape
from superopt.operators.constant import filled, matrix
from superopt.operators.declare import concrete, defines
from superopt.operators.filtering import OUTPUTS, TAPS, minimal_filtering
from superopt.operators.layout import Slice, Transpose, reshaped
from superopt.operators.linear import Conv, MatMul
from superopt.operators.pointwise import Div
from superopt.term import Term, make

REACH, PRODUCTS, RESULTS = OUTPUTS + TAPS - 1, (OUTPUTS + TAPS - 1) ** 2, OUTPUTS**2
"""The side of the tile that a tile of results reads; how many products one makes, and how many results."""

WORTH_MOVING = 70
"""A tile of c channels in and o out saves 108·c·o multiplications and moves 36·(c + o) numbers (in groups, of the
channels of one). Where c·o / (c + o) was below this, no more than 1.05 was gained, so the form is not even offered: 128
channels on both sides are too few."""


@defines("conv", "by tiles")
def worthwhile_tiles(conv: Conv, x: Term, k: Term) -> Term | None:
    """By tiles: for 3×3 kernels of weights at stride 1, and channels enough."""
    o, c, *kernel = k.shape
    plain = kernel == [TAPS, TAPS] and (*conv.strides, *conv.dilations) == (1, 1, 1, 1)
    if not plain or not k.constant or not all(isinstance(d, int) for d in (*x.shape, *k.shape, *conv.sizes())):
        return None
    o = o // conv.group
    return by_tiles(conv, x, k) if o * c >= WORTH_MOVING * (o + c) else None


def by_tiles(conv: Conv, x: Term, k: Term) -> Term:
    """A 3×3 convolution at stride 1 in 36 products for each 16 results and pair of channels, instead of 144."""
    result = concrete(make(conv, (x, k)).shape, "tiles")
    counts = tuple(-(-size // OUTPUTS) for size in result[2:])
    products = Conv(group=conv.group * PRODUCTS)(_data(conv, x, counts), _kernels(k))
    return _results(products, result, counts)


def _data(conv: Conv, x: Term, counts: tuple[int, ...]) -> Term:
    """Tiles of 6×6, four apart, each transformed: an array n (place c) row column."""
    n, c, *sizes = concrete(x.shape, "tiles")
    before = concrete(conv.pads[:2], "tiles")
    after = [t * OUTPUTS + TAPS - 1 - size - b for t, size, b in zip(counts, sizes, before, strict=True)]
    transform = _kronecker(matrix(minimal_filtering().of_data))
    kernel = reshaped(transform, (PRODUCTS, 1, REACH, REACH))
    tiles = Conv((OUTPUTS, OUTPUTS), (*before, *after))(reshaped(x, (n * c, 1, *sizes)), kernel)
    by_place = Transpose((0, 2, 1, 3, 4))(reshaped(tiles, (n, c, PRODUCTS, *counts)))
    return reshaped(by_place, (n, PRODUCTS * c, *counts))


def _kernels(k: Term) -> Term:
    """All kernels transformed: 1×1 kernels, those of a place together."""
    o, c = concrete(k.shape[:2], "tiles")
    by = minimal_filtering()
    transform = _kronecker(Div()(matrix(by.of_filter), filled(by.denominator, (REACH, TAPS))))
    flat = Transpose((1, 0))(reshaped(k, (o * c, TAPS**2)))
    return reshaped(MatMul()(transform, flat), (PRODUCTS * o, c, 1, 1))


def _results(products: Term, result: Shape, counts: tuple[int, ...]) -> Term:
    """Products n (place o) row column, transformed to tiles of 4×4, side by side, cut where the last reach too far."""
    n, o, *sizes = result
    kernel = reshaped(_kronecker(matrix(minimal_filtering().of_products)), (RESULTS, PRODUCTS, 1, 1))
    rows, columns = counts
    tiles = Conv()(reshaped(products, (n, PRODUCTS, o * rows, columns)), kernel)
    in_place = Transpose((0, 3, 4, 1, 5, 2))(reshaped(tiles, (n, OUTPUTS, OUTPUTS, o, rows, columns)))
    joined = reshaped(in_place, (n, o, rows * OUTPUTS, columns * OUTPUTS))
    for axis, size in enumerate(sizes, start=2):
        if joined.shape[axis] != size:
            joined = Slice(axis, 0, size)(joined)
    return joined


def _kronecker(a: Term) -> Term:
    """`y[(i k), (j l)] = a[i,j] · a[k,l]`: what the matrix does along one axis, done along two."""
    rows, columns = concrete(a.shape, "tiles")
    pairs = MatMul()(reshaped(a, (rows * columns, 1)), reshaped(a, (1, rows * columns)))
    apart = Transpose((0, 2, 1, 3))(reshaped(pairs, (rows, columns, rows, columns)))
    return reshaped(apart, (rows * rows, columns * columns))
