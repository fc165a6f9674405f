"""Which channels each source makes beside each other, and which it reads so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from superopt.onnx_io.naming import name_of
from superopt.onnx_io.otherwise.shuffled.moves import Laid, Numbers
from superopt.onnx_io.otherwise.shuffled.pieces import DEAR, filled, pieces_of, read_alike
from superopt.onnx_io.otherwise.shuffled.sources import Sources
from superopt.onnx_io.program import Program

MIXED = 8
"""So often at least are channels that are read together not the next ones of a source where they are shuffled."""


Read: TypeAlias = list[tuple[int, int]]
"""Pieces that lie one behind the other, each by its source and which of its pieces it is."""


class Plan:
    """Which channels sources make beside each other, and what reads which of these pieces."""

    def __init__(self, sources: Sources) -> None:
        self.of = np.repeat(np.arange(len(sources.each)), [source.many for source in sources.each])
        """Which source makes a channel, by its number."""
        self._ends = np.cumsum([0, *(source.many for source in sources.each)])
        self.pieces = dict[int, list[Numbers]]()
        """The numbers of the channels of each piece of a source, -1 for what fills it up."""
        self.reads, self.outside = dict[int, Read](), dict[str, Read]()
        """What sources read that are written anew, and what is to be put together for values that others read."""
        self._changed = set[int]()

    def makes(self, i: int, pieces: list[Numbers], channels: Numbers) -> None:
        """Let a source make pieces, which has made these channels."""
        self.pieces[i] = pieces
        if not np.array_equal(pieces[0], channels):
            self._changed.add(i)

    def is_changed(self, channels: Numbers) -> bool:
        """Whether some channels are made otherwise than they were."""
        return not self._changed.isdisjoint(np.unique(self.of[channels]).tolist())

    def is_mixed(self, channels: Numbers) -> bool:
        """Whether channels change between sources, or places in them, so often that somebody shuffled them: all of one
        source behind all of another are joined.
        """
        before, after = channels[:-1], channels[1:]
        joined = np.isin(after, self._ends) & np.isin(before + 1, self._ends)
        return int(np.sum((after != before + 1) & ~joined)) >= MIXED

    def needed(self, channels: Numbers) -> Read:
        """The pieces that have channels, in the order in which these are made."""
        found = Read()
        for i in np.unique(self.of[channels]).tolist():
            found.extend((i, k) for k, piece in enumerate(self.pieces[i]) if np.isin(piece, channels).any())
        return found

    def channels(self, read: Read) -> Numbers:
        """The numbers of the channels of pieces."""
        return np.concatenate([self.pieces[source][piece] for source, piece in read])


def plan_of(program: Program, sources: Sources) -> Plan | None:
    """How channels are made such that nothing shuffles them; None where nothing does."""
    each, outside, plan = sources.each, _outside(program, sources), Plan(sources)
    mixed = {i for i, source in enumerate(each) if source.reads is not None and plan.is_mixed(source.reads)}
    if not mixed:
        return None
    read: dict[int, Numbers] = {i: source.reads for i, source in enumerate(each) if source.reads is not None}
    cut = _below(_below(mixed, plan.of, read), plan.of, read)
    read |= {-1 - i: lies.channels.reshape(-1) for i, lies in enumerate(outside.values())}
    reading = {i: each[i].reading if i >= 0 else 2.0 * DEAR for i in read}
    readers = _readers(plan.of, read)
    for i, source in enumerate(each):
        channels, reads = source.channels, read.get(i)
        if reads is not None and (i in mixed or plan.is_changed(reads)):
            plan.reads[i] = plan.needed(reads)
        if source.is_dense and (i in cut or i in plan.reads) and (groups := read_alike(channels, readers.get(i, {}))):
            plan.makes(i, filled(pieces_of(source, groups, reading), read), channels)
        elif i in plan.reads and reads is not None and not source.is_dense:
            plan.makes(i, [_made_of(reads, plan.channels(plan.reads[i]), source.first)], channels)
        else:
            plan.makes(i, [channels], channels)
    read_outside = {name: lies.channels.reshape(-1) for name, lies in outside.items()}
    plan.outside = {name: plan.needed(numbers) for name, numbers in read_outside.items() if plan.is_changed(numbers)}
    return plan if plan.reads else None


def _below(sources: set[int], of: Numbers, read: Mapping[int, Numbers]) -> set[int]:
    """These sources, and those that make what they read."""
    return sources.union(*(np.unique(of[read[i]]).tolist() for i in sources if i in read))


def _readers(of: Numbers, read: Mapping[int, Numbers]) -> dict[int, dict[int, Numbers]]:
    """What reads channels of a source, and which it reads, by the source: all of a program are too many to ask each."""
    found = dict[int, dict[int, Numbers]]()
    for reader, numbers in read.items():
        for i in np.unique(of[numbers]).tolist():
            found.setdefault(i, {})[reader] = numbers
    return found


def _outside(program: Program, sources: Sources) -> dict[str, Laid]:
    """What others read, as convolutions read it: what only looks at channels otherwise stays, and reads these."""
    found, nodes = dict.fromkeys(sources.outside), list(program.model.graph)
    for place in reversed(sources.moving):
        names = [name_of(value) for value in nodes[place].outputs]
        if any(name in found and sources.known[name].row is None for name in names):
            for name in names:
                found.pop(name, None)
            found |= {name_of(v): None for v in nodes[place].inputs if v is not None and v.name in sources.known}
    return {name: sources.known[name] for name in found if name in sources.known}


def _made_of(reads: Numbers, there: Numbers, first: int) -> Numbers:
    """The numbers of channels that are computed of those that are there, each of one, by what each reads."""
    made = {int(channel): first + place for place, channel in enumerate(reads)}
    return np.array([made.get(int(channel), -1) for channel in there])
