"""Networks of pictures whose cells compute many things side by side and join them.

Inception-v3 (Szegedy et al. 2016) without the classifier that only training uses, and NasNet-A (Zoph et al. 2018) in
the form that TASO and TENSAT measure: fifteen normal cells in three stages, each convolution once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from benchmarks.published.layers import Layers

SQUEEZED = 1.5
"""Gain of the convolutions that a cell of NasNet-A begins with: its sums of pairs add the rest."""

Chain: TypeAlias = "Sequence[tuple[int, int | tuple[int, int]]]"
"""Channels and kernel of convolutions, one after the other."""


def _chain(s: Layers, x: str, chain: Chain, last_stride: int = 1) -> str:
    """Each with a relu; the last may reduce the map, and is then not padded."""
    for i, (o, kernel) in enumerate(chain):
        reducing = last_stride > 1 and i == len(chain) - 1
        x = s.relu(x, o, kernel, last_stride if reducing else 1, padded=not reducing)
    return x


def _joined(s: Layers, x: str, chains: Sequence[Chain], pooled: int) -> str:
    """The results of chains, and an average of neighbours brought to `pooled` channels."""
    mean = s.pool("AveragePool", x, 3, 1, 1, count_include_pad=1)
    return s("Concat", *(_chain(s, x, c) for c in chains), s.relu(mean, pooled), axis=1)


def _reduced(s: Layers, x: str, chains: Sequence[Chain]) -> str:
    """The same on a map of half the size."""
    return s("Concat", *(_chain(s, x, c, last_stride=2) for c in chains), s.pool("MaxPool", x, 3, 2), axis=1)


def _spread(s: Layers, x: str) -> str:
    """A cell of the last stage, where two chains end in a row and a column side by side."""
    parts = [s.relu(x, 320)]
    for start in (s.relu(x, 384), _chain(s, x, ((448, 1), (384, 3)))):
        parts += [s.relu(start, 384, (1, 3)), s.relu(start, 384, (3, 1))]
    mean = s.pool("AveragePool", x, 3, 1, 1, count_include_pad=1)
    return s("Concat", *parts, s.relu(mean, 192), axis=1)


def inception_v3(s: Layers, batch: int) -> str:
    """Inception-v3 on a picture of 299×299."""
    x = s.relu(s.input("x", batch, 3, 299, 299), 32, 3, 2, padded=False)
    x = s.pool("MaxPool", s.relu(s.relu(x, 32, 3, padded=False), 64, 3), 3, 2)
    x = s.pool("MaxPool", s.relu(s.relu(x, 80), 192, 3, padded=False), 3, 2)
    for pooled in (32, 64, 64):
        x = _joined(s, x, [[(64, 1)], [(48, 1), (64, 5)], [(64, 1), (96, 3), (96, 3)]], pooled)
    x = _reduced(s, x, [[(384, 3)], [(64, 1), (96, 3), (96, 3)]])
    row, column = (1, 7), (7, 1)
    for c in (128, 160, 160, 192):
        once: Chain = [(c, 1), (c, row), (192, column)]
        twice: Chain = [(c, 1), (c, column), (c, row), (c, column), (192, row)]
        x = _joined(s, x, [[(192, 1)], once, twice], 192)
    x = _reduced(s, x, [[(192, 1), (320, 3)], [(192, 1), (192, row), (192, column), (192, 3)]])
    return s.classifier(_spread(s, _spread(s, x)), 1000)


def nasnet_a(s: Layers, batch: int) -> str:
    """NasNet-A on a picture of 224×224; what comes out is the last map, of 7×7."""
    x = s.relu(s.input("x", batch, 3, 224, 224), 64, 7, 2)
    x, o = s.pool("MaxPool", x, 3, 2, 1), 128
    for _ in range(3):
        previous = x
        for _ in range(5):
            previous, x = x, _normal_cell(s, previous, x, o)
        o *= 2
        x = _reduction_cell(s, previous, x, o)
    return x


def _separable(s: Layers, x: str, o: int, kernel: int, stride: int = 1) -> str:
    """Each channel alone, then all of each pixel."""
    return s.layer(s.layer(x, o, kernel, stride, groups=o, gain=1.0), o, gain=1.0)


def _normal_cell(s: Layers, previous: str, x: str, o: int) -> str:
    """Five sums of pairs, from what the last two cells gave."""
    x, p = s.relu(x, o, gain=SQUEEZED), s.relu(previous, o, gain=SQUEEZED)

    def three(x: str) -> str:
        return _separable(s, x, o, 3)

    def mean(x: str) -> str:
        return s.pool("AveragePool", x, 3, 1, 1)

    # Both averages of the fourth are the same, and are computed twice as they stand.
    pairs = ((three(x), x), (three(p), three(x)), (mean(x), p), (mean(p), mean(p)), (three(p), three(p)))
    return s("Concat", *(s("Add", a, b) for a, b in pairs), axis=1)


def _reduction_cell(s: Layers, previous: str, x: str, o: int) -> str:
    """The same on maps of half the size; the last two sums use the first two."""
    x, p = s.relu(x, o, gain=SQUEEZED), s.relu(previous, o, gain=SQUEEZED)

    def halved(kind: str) -> str:
        return s.pool(kind, x, 3, 2, 1)

    first = s("Add", _separable(s, p, o, 7, 2), _separable(s, x, o, 5, 2))
    second = s("Add", halved("MaxPool"), _separable(s, p, o, 7, 2))
    third = s("Add", halved("AveragePool"), _separable(s, p, o, 5, 2))
    fourth = s("Add", halved("MaxPool"), _separable(s, first, o, 3))
    fifth = s("Add", s.pool("AveragePool", first, 3, 1, 1), second)
    return s("Concat", first, second, third, fourth, fifth, axis=1)
