"""Convolution by tiles: fewer multiplications, which pays where many channels meet."""

from __future__ import annotations

import math

from superopt.dim import Dim, Shape, product
from superopt.operators.constant import filled, matrix
from superopt.operators.conv import Conv
from superopt.operators.definitions.filtering import TAPS, minimal_filtering
from superopt.operators.definitions.phases import OPEN, of_whole_steps, within
from superopt.operators.layout import Expand, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.meanings import defines
from superopt.operators.nodes import concrete
from superopt.operators.pointwise import Div
from superopt.term import Term, make

WORTH_MOVING = 40
"""A tile of c channels in and o out saves up to 108·c·o multiplications and moves 36·(c + o) numbers (in groups, of the
channels of one). Where c·o / (c + o) was below this, nothing was gained, so the form is not even offered: 64 channels
on both sides are too few, 64 in and 192 out are enough."""

READING, MOVING = 16, 100
"""As many multiplications take as long as to read a weight, and as to transform a number and move it."""


FEW_SHARED = 64
"""Up to this c·o / (c + o), products are also offered as those of matrices, whose layout is that of what stands around
them; from there on convolutions take less.
"""


@defines("conv", "by tiles", rounds=True)
def worthwhile_tiles(conv: Conv, x: Term, k: Term) -> Term | None:
    """By tiles: for 3×3 kernels of weights at stride 1, and channels enough."""
    sharing = _sharing(conv, x, k)
    return None if sharing < WORTH_MOVING else by_tiles(conv, x, k, _side(conv, x, k, sharing))


@defines("conv", "by tiles of matrices", rounds=True)
def worthwhile_matrices(conv: Conv, x: Term, k: Term) -> Term | None:
    """By tiles, the products of which are those of matrices."""
    sharing = _sharing(conv, x, k)
    fits = WORTH_MOVING <= sharing <= FEW_SHARED
    return by_tiles(conv, x, k, _side(conv, x, k, sharing), of_matrices=True) if fits else None


def _sharing(conv: Conv, x: Term, k: Term) -> float:
    """How many products a number that is moved is part of, for each place of a tile; 0 where there is no such form."""
    plain = k.shape[2:] == (TAPS, TAPS) and (*conv.strides, *conv.dilations) == (1, 1, 1, 1)
    return sharing_of(conv, k) if plain and isinstance(x.shape[1], int) else 0.0


def sharing_of(conv: Conv, k: Term) -> float:
    """The same, whatever the window: 0 where sizes are left open or the kernel is computed."""
    if not k.constant or not all(isinstance(d, int) for d in (*k.shape, *conv.sizes())):
        return 0.0
    o, c = concrete((k.shape[0] // conv.group, k.shape[1]), "tiles")
    return o * c / (o + c)


def _side(conv: Conv, x: Term, k: Term, sharing: float) -> int:
    """Of the two sizes of tiles, the cheaper."""
    n, _, *sizes = make(conv, (x, k)).shape
    results = (n if isinstance(n, int) else 1, *(d if isinstance(d, int) else OPEN for d in sizes))
    return side_for(results, sharing)[0]


def side_for(results: tuple[int, ...], sharing: float, taps: int = TAPS) -> tuple[int, float]:
    """The cheaper of the two sizes of tiles for these results, and what it costs: of products, each costs one."""
    costs = {side: _cost(results, sharing, side, taps) for side in (4, 2)}
    side = min(costs, key=costs.__getitem__)
    return side, costs[side]


def _cost(results: tuple[int, ...], sharing: float, side: int, taps: int) -> float:
    """What tiles of that side cost, in multiplications for each pair of channels: few large ones need more weights.

    The results are those of a channel: images, rows, columns.
    """
    n, *sizes = results
    tiles = n * math.prod(-(-size // side) for size in sizes)
    return (side + taps - 1) ** 2 * (tiles + READING + MOVING * tiles / sharing)


def by_tiles(conv: Conv, x: Term, k: Term, side: int, of_matrices: bool = False) -> Term:
    """A 3×3 convolution at stride 1, in tiles of side × side results: (side + 2)² products where sums of products take
    9·side² for each pair of channels. That is 16 for 36 and 36 for 144. They are those of a 1×1 convolution of as many
    groups, or of matrices.
    """
    return products_of_tiles(conv, x, k, make(conv, (x, k)).shape, side, of_matrices=of_matrices)


def products_of_tiles(
    conv: Conv, x: Term, k: Term, result: Shape, side: int, parts: int = 1, of_matrices: bool = False
) -> Term:
    """The same of several parts of a picture that is `n (c part) row column`, each convolved by itself: their tiles
    stand below each other. So does the result: its shape is that of `n (o part) row column`.
    """
    (taps,) = concrete(k.shape[2:3], "tiles")
    groups = conv.group * (side + taps - 1) ** 2
    data, kernels = _data(conv, x, result, side, taps), _kernels(k, side)
    n, channels, rows, columns = data.shape
    data = reshaped(data, (n, channels // parts, parts * rows, columns))
    products = _matrices(groups, data, kernels) if of_matrices else Conv(group=groups)(data, kernels)
    whole = (n, k.shape[0], parts * rows, columns)
    tiles = reshaped(_side_by_side(products, whole, side, taps), (n, k.shape[0] * parts, rows * side, columns * side))
    return within(tiles, result)


def _matrices(groups: Dim, data: Term, kernels: Term) -> Term:
    """A 1×1 convolution in groups, as products of matrices: n (group o) (row column)."""
    n, _, *counts = data.shape
    o, c, g = concrete((kernels.shape[0], data.shape[1], groups), "tiles")
    weights = Expand((1, 2, 3), (n, g, o // g, c // g))(reshaped(kernels, (g, o // g, c // g)))
    return MatMul()(weights, reshaped(data, (n, g, c // g, product(counts))))


def _data(conv: Conv, x: Term, result: Shape, side: int, taps: int) -> Term:
    """Tiles that overlap, a side apart, each transformed: an array n (place c) row column."""
    reach = side + taps - 1
    n, c, *sizes = x.shape
    pads = of_whole_steps(conv.pads, result, (side, side))
    kernel = reshaped(_kronecker(matrix(minimal_filtering(side, taps).of_data)), (reach**2, 1, reach, reach))
    tiles = Conv((side, side), pads)(reshaped(x, (n * c, 1, *sizes)), kernel)
    counts = tiles.shape[2:]
    by_place = Transpose((0, 2, 1, 3, 4))(reshaped(tiles, (n, c, reach**2, *counts)))
    return reshaped(by_place, (n, reach**2 * c, *counts))


def _kernels(k: Term, side: int) -> Term:
    """All kernels transformed: 1×1 kernels, those of a place together."""
    o, c, taps, _ = concrete(k.shape, "tiles")
    reach = side + taps - 1
    by = minimal_filtering(side, taps)
    transform = _kronecker(Div()(matrix(by.of_filter), filled(by.denominator, (reach, taps))))
    flat = Transpose((1, 0))(reshaped(k, (o * c, taps**2)))
    return reshaped(MatMul()(transform, flat), (reach**2 * o, c, 1, 1))


def _side_by_side(products: Term, shape: Shape, side: int, taps: int) -> Term:
    """Products n (place o) row column, transformed to tiles, side by side; the shape is that of so many tiles."""
    places = (side + taps - 1) ** 2
    n, o, rows, columns = shape
    transform = Expand((1, 2), (n, side**2, places))(_kronecker(matrix(minimal_filtering(side, taps).of_products)))
    # A convolution would do as well, if its layout were not another one than that of what follows.
    tiles = MatMul()(transform, reshaped(products, (n, places, o * rows * columns)))
    # One move after the other, by rows of numbers that stay together: all at once take a runtime five times longer.
    by_row = Transpose((0, 2, 1))(reshaped(tiles, (n * side, side, o * rows * columns)))
    in_place = Transpose((0, 2, 1, 3))(reshaped(by_row, (n, side, o * rows, columns * side)))
    return reshaped(in_place, (n, o, rows * side, columns * side))


def _kronecker(a: Term) -> Term:
    """`y[(i k), (j l)] = a[i,j] · a[k,l]`: what the matrix does along one axis, done along two."""
    rows, columns = concrete(a.shape, "tiles")
    pairs = MatMul()(reshaped(a, (rows * columns, 1)), reshaped(a, (1, rows * columns)))
    apart = Transpose((0, 2, 1, 3))(reshaped(pairs, (rows, columns, rows, columns)))
    return reshaped(apart, (rows * rows, columns * columns))
