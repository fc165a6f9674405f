"""Convolutions that halve a picture by kernels of 4 by 4, or double it, by tiles: each phase meets two elements a way.

`y[t] = Σ_i x[2·t + i]·k[i]` is, of even places and odd ones as channels, a convolution of four times as many by kernels
of 2 by 2; and a transposed one is such a convolution to four times as many (`transposed.py`). Tiles take 25 products
there where 64 are (`filtering.py`). Generators of pictures have these (DCGAN, Radford et al. 2016; pix2pix, Isola et
al. 2017), and heads that double maps of poses and of centres (Xiao et al. 2018; Zhou et al. 2019).
"""

from __future__ import annotations

import math
from functools import partial

from superopt.dim import Shape
from superopt.operators.conv import Conv
from superopt.operators.definitions.dilated import apart
from superopt.operators.definitions.tiles import products_of_tiles, sharing_of, side_for
from superopt.operators.definitions.transposed import in_one_convolution, with_bias
from superopt.operators.layout import Transpose, reshaped
from superopt.operators.meanings import defines
from superopt.operators.nodes import concrete
from superopt.operators.pointwise import Add
from superopt.operators.transposed import ConvTranspose
from superopt.term import Term, make

TAPS, STEPS = 2, (2, 2)
"""So many elements of a kernel a phase meets along an axis, of so many phases."""


@defines("conv", "halving, by tiles", rounds=True)
def halving_by_tiles(conv: Conv, x: Term, k: Term) -> Term | None:
    """For 4×4 kernels of weights at stride 2, and channels enough: even places and odd ones are channels."""
    sizes = (*x.shape[1:], *conv.pads, *k.shape)
    plain = x.type.rank == 4 and (conv.strides, conv.dilations, conv.group) == (STEPS, (1, 1), 1)
    if not plain or k.shape[2:] != (4, 4) or not k.constant or not all(isinstance(d, int) and d >= 0 for d in sizes):
        return None
    sharing, results = sharing_of(Conv(), _kernel(k)), make(conv, (x, k)).shape
    return halved(conv, x, k) if _side(results, sharing) is not None else None


def halved(conv: Conv, x: Term, k: Term, side: int | None = None) -> Term | None:
    """The same in tiles of side × side results, or of the cheaper sides where that pays; None where places at the end
    are not read.
    """
    result = make(conv, (x, k)).shape
    parts, before = apart(x, conv.pads, STEPS)
    places = zip(concrete(result[2:], "tiles"), concrete(parts.shape[2:], "tiles"), before, strict=True)
    after = tuple(size + TAPS - 1 - given - first for size, given, first in places)
    if min(after) < 0:
        return None
    return in_tiles(Conv(pads=(*before, *after)), parts, _kernel(k), side)


def _kernel(k: Term) -> Term:
    """Kernels of 4 by 4 by phases, as those of four times as many channels by 2 by 2."""
    o, c, *_ = k.shape
    kernel = Transpose((0, 1, 3, 5, 2, 4))(reshaped(k, (o, c, TAPS, 2, TAPS, 2)))
    return reshaped(kernel, (o, c * math.prod(STEPS), TAPS, TAPS))


@defines("conv_transpose", "by phases in tiles", rounds=True)
def doubling_by_tiles(op: ConvTranspose, x: Term, k: Term) -> Term | None:
    """For 4×4 kernels of weights at stride 2, and channels enough: a convolution of all phases at once, by tiles."""
    return doubled(op, x, k, None)


@defines("add", "by phases in tiles", rounds=True)
def sum_doubling_by_tiles(op: Add, x: Term, y: Term) -> Term | None:
    """With a bias, which each phase has."""
    return with_bias(x, y, doubled)


def doubled(op: ConvTranspose, x: Term, k: Term, bias: Term | None, side: int | None = None) -> Term | None:
    """The same in tiles of side × side results of each phase, or of the cheaper sides where that pays."""
    plain = x.type.rank == 4 and (op.strides, k.shape[2:]) == (STEPS, (4, 4))
    return in_one_convolution(op, x, k, bias, partial(in_tiles, side=side)) if plain else None


def in_tiles(conv: Conv, x: Term, k: Term, side: int | None = None) -> Term | None:
    """A convolution by 2×2 kernels in tiles of a side; of none told, in those that take less than all products do."""
    result = make(conv, (x, k)).shape
    if side is None and (not isinstance(x.shape[1], int) or (side := _side(result, sharing_of(conv, k))) is None):
        return None
    return products_of_tiles(conv, x, k, result, side)


def _side(result: Shape, sharing: float) -> int | None:
    """The cheaper of the sides of tiles for a result; None where all products take less."""
    n, _, *sizes = result
    if sharing <= 0 or not all(isinstance(d, int) for d in sizes):
        return None
    results = (n if isinstance(n, int) else 1, *concrete(tuple(sizes), "tiles"))
    side, cost = side_for(results, sharing, TAPS)
    return side if cost < TAPS**2 * math.prod(results) else None
