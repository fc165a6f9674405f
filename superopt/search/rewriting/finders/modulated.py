"""Weights of a convolution that are scaled for each channel: the picture is scaled, and the weights are constant.

Networks that are told a style scale the channels that a layer takes in by numbers computed of it, and those that it
gives by how large the weights are after that (modulation and demodulation, Karras et al. 2020: StyleGAN2, and GFPGAN
and other restorers that have it within): `k[o,c] = w[o,c]·s[c]·d[o]`. Runtimes lay out and transform kernels before a
model runs where these are constant, and have their best convolutions for them alone; besides, there are fewer numbers
in a picture than in such weights where channels are many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from superopt.operators.conv import Conv
from superopt.operators.layout import Expand, Reshape, Transpose, reshaped
from superopt.operators.pointwise import Mul
from superopt.operators.transposed import ConvTranspose
from superopt.relations import is_one
from superopt.search.rewriting.finders.contractions import Factor, joined, moved, unsqueezed
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.term import Term, make

CHANNELS = 1
"""The axis of channels in a picture."""

MOST = 16
"""Of more factors than these some are taken as they stand."""


class _Along(NamedTuple):
    """A value, and which axes of a kernel its own are; None for one of one place that the kernel has not."""

    x: Term
    at: tuple[int | None, ...]


class Unmodulating(Fewer):
    """Finds convolutions by constant weights that factors of their channels scale."""

    name = "channels scaled apart from weights"
    heads = (Conv, ConvTranspose)

    def may_be(self, term: Term) -> bool:
        """Whether the kernel is computed, of one group: in several no factor is of one channel."""
        op, k = term.operator, term.inputs[1]
        return isinstance(op, Conv | ConvTranspose) and is_one(op.group) and not k.constant

    def made(self, term: Term) -> Term | None:
        """The convolution of the scaled picture by what is constant, scaled; None where nothing is, or all is."""
        op, (x, k) = term.operator, term.inputs
        assert isinstance(op, Conv | ConvTranspose)
        into, out = (1, 0) if isinstance(op, Conv) else (0, 1)
        factors = factors_of(k)
        weights = [f for f in factors if f.x.constant]
        computed = [f for f in factors if not f.x.constant]
        before = [f for f in computed if f.axes == (into,)]
        after = [f for f in computed if f.axes in ((out,), ())]
        if not weights or len(before) + len(after) < len(computed):
            return None
        own = joined(weights, k.shape)
        kernel = own.x if len(own.axes) == k.type.rank else Expand(own.axes, k.shape)(own.x)
        return _scaled(make(op, (_scaled(x, before), kernel)), after)


def _scaled(x: Term, factors: Sequence[Factor]) -> Term:
    """A picture, each channel of it times what has that axis alone of a kernel, and all of it times what has none."""
    for f in factors:
        x = Mul()(x, Expand((CHANNELS,) if f.axes else (), x.shape)(f.x))
    return x


def factors_of(k: Term) -> list[Factor]:
    """What is multiplied element by element to make a term, through its moves, each along the axes that it has."""
    whole = tuple(range(k.type.rank))
    pending, found = [_Along(k, whole)], list[Factor]()
    while pending:
        x, at = pending.pop()
        below = _below(x, at) if len(pending) + len(found) < MOST else []
        pending.extend(below)
        if not below:
            found.append(_factor(x, at, k))
    return found


def _below(x: Term, at: tuple[int | None, ...]) -> list[_Along]:
    """What a term moves or multiplies, and along which axes of a kernel that stands; nothing where it does neither."""
    op, inputs = x.operator, x.inputs
    if x.constant:
        return []
    if isinstance(op, Mul):
        return [_Along(i, at) for i in inputs]
    if isinstance(op, Expand):
        return [_Along(inputs[0], tuple(at[a] for a in op.axes))]
    if isinstance(op, Transpose):
        return [_Along(inputs[0], tuple(at[op.perm.index(a)] for a in range(len(at))))]
    if isinstance(op, Reshape) and (own := unsqueezed(x)) is not None:
        return [_Along(inputs[0], tuple(None if a is None else at[a] for a in own))]
    return []


def _factor(x: Term, at: tuple[int | None, ...], k: Term) -> Factor:
    """A value with its axes in the order of all, without those of one place."""
    kept = [a for a in at if a is not None and not is_one(k.shape[a])]
    squeezed = Factor(reshaped(x, tuple(k.shape[a] for a in kept)), tuple(kept))
    return Factor(moved(squeezed, sorted(kept)), tuple(sorted(kept)))
