"""Which channels a convolution makes beside each other: those that are read alike, in whole blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from superopt.onnx_io.otherwise.shuffled.moves import Numbers
from superopt.onnx_io.otherwise.shuffled.sources import Source
from superopt.processor import flags, is_x86

BLOCK, ALONE = 16, 4
"""Processors lay channels out in blocks of 8 or 16: what is of whole blocks of this is so on all."""

LAUNCH, LEAST = 12, 2.0**16
"""What it costs to read an image once more, in channels that are made of it, and in products at least. On an EPYC with
AVX2 a convolution of 58 channels of 28 x 28 to 8, 16, 32 and 64 took 24, 28, 43 and 80 us.
"""

DEAR = 16
"""What it costs to copy an element, in products."""

MOST = 32
"""Of more kinds of channels none are told apart."""


def block() -> int:
    """Of how many channels the blocks are in which this processor lays them out, by its vectors: 8 or 16; the latter
    where nobody knows, as that is whole on both.
    """
    return 8 if is_x86() and flags() and "avx512f" not in flags() else 16


class Group(NamedTuple):
    """Channels that are made together, and by which sources they are read, told by their places."""

    channels: Numbers
    readers: frozenset[int]


def pieces_of(source: Source, groups: Sequence[Group], reading: Mapping[int, float]) -> list[Group]:
    """Channels of a source in the groups that cost least, from those that are read by the same: two and two are made
    together as long as that is less. What it costs to read a channel is told by reader.
    """

    def cost(group: Group) -> float:
        each = source.work + sum(reading[reader] for reader in group.readers)
        return whole(group.channels.size, block()) * each + LAUNCH * source.work + LEAST

    left = list(groups)
    if len(left) > MOST:
        return [_both(left)]
    while len(left) > 1:
        pairs = [(a, b) for a in range(len(left)) for b in range(a)]
        spared = [cost(left[a]) + cost(left[b]) - cost(_both([left[a], left[b]])) for a, b in pairs]
        best = int(np.argmax(spared))
        if spared[best] < 0:
            break
        a, b = pairs[best]
        left = [*(g for i, g in enumerate(left) if i not in (a, b)), _both([left[a], left[b]])]
    return sorted(left, key=lambda group: int(group.channels[0]))


def _both(groups: Sequence[Group]) -> Group:
    channels = np.sort(np.concatenate([group.channels for group in groups]))
    return Group(channels, frozenset[int]().union(*(group.readers for group in groups)))


def read_alike(channels: Numbers, read: Mapping[int, Numbers]) -> list[Group]:
    """Channels that the same readers read, told by what each reads; without those that none does."""
    is_read = {reader: np.isin(channels, numbers) for reader, numbers in read.items()}
    found = dict[frozenset[int], list[int]]()
    for place, channel in enumerate(channels):
        readers = frozenset(reader for reader, told in is_read.items() if told[place])
        if readers:
            found.setdefault(readers, []).append(int(channel))
    return [Group(np.array(numbers), readers) for readers, numbers in found.items()]


def whole(many: int, block: int) -> int:
    """So many channels, with those that fill the last block up."""
    return -(-many // block) * block


def filled(groups: Sequence[Group], read: Mapping[int, Numbers]) -> list[Numbers]:
    """The channels of each group in whole blocks, where what fills them up is -1; of one that is never joined to
    others only as far as what reads it needs that.
    """
    is_alone = len(groups) == 1 and all(np.isin(read[reader], groups[0].channels).all() for reader in groups[0].readers)
    sizes = [whole(g.channels.size, ALONE if is_alone else block()) - g.channels.size for g in groups]
    return [np.pad(g.channels, (0, more), constant_values=-1) for g, more in zip(groups, sizes, strict=True)]
