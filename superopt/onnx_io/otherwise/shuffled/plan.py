"""Which channels each source makes beside each other, and which it reads so."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.onnx_io.otherwise.shuffled.moves import COPIES, Laid, Numbers
from superopt.onnx_io.otherwise.shuffled.pieces import LAUNCH, LEAST, filled, pieces_of, read_alike
from superopt.onnx_io.otherwise.shuffled.sources import Sources
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import shape_of
from superopt.onnx_io.said import is_a
from superopt.substitution import TYPICAL, elements

MIXED = 8
"""Where what is read changes so often from channels behind each other to others, it is shuffled."""

DEAR = 16
"""What it costs to copy an element, in products."""


class Plan(NamedTuple):
    """Sources by their places: the numbers of the channels that each makes beside each other, -1 for what fills them
    up; and for those that are written anew which of these pieces each reads, by source and piece.
    """

    pieces: dict[int, list[Numbers]]
    reads: dict[int, list[tuple[int, int]]]
    outside: dict[str, list[tuple[int, int]]]
    """The same of values that are made as they were, by their names."""

    def channels(self, read: list[tuple[int, int]]) -> Numbers:
        """The numbers of the channels of pieces that lie one behind the other."""
        return np.concatenate([self.pieces[source][piece] for source, piece in read])


def plan_of(program: Program, sources: Sources) -> Plan | None:
    """How channels are made such that nothing shuffles them; None where nothing does, or it would not pay."""
    each, outside = sources.each, _outside(program, sources)
    mixed = [s.reads for s in each if s.reads is not None and (np.diff(s.reads) != 1).sum() >= MIXED]
    if not mixed:
        return None
    of = np.repeat(np.arange(len(each)), [source.many for source in each])
    cut = {int(i) for i in np.unique(of[np.concatenate(mixed)]) if each[i].is_dense}
    read: dict[int, Numbers] = {i: source.reads for i, source in enumerate(each) if source.reads is not None}
    read |= {-1 - i: lies.channels.reshape(-1) for i, lies in enumerate(outside.values())}
    reading = {i: each[i].reading if i >= 0 else 2.0 * DEAR for i in read}
    for i in reversed(range(len(each))):  # what is no multiple of 4 and is read by these would be laid out for it
        reads = read.get(i)
        cut |= (
            set() if i not in cut or reads is None else {k for k in np.unique(of[reads]).tolist() if each[k].is_dense}
        )
    plan, changed = Plan({}, {}, {}), set[int]()
    for i, source in enumerate(each):
        reads = read.get(i)
        if reads is not None and changed.intersection(np.unique(of[reads]).tolist()):
            plan.reads[i] = _needed(plan, of, reads)
        plan.pieces[i] = [source.channels]
        if source.is_dense and (i in cut or i in plan.reads):
            plan.pieces[i] = filled(pieces_of(source, read_alike(source.channels, read), reading), read)
            changed.update([] if np.array_equal(plan.pieces[i][0], source.channels) else [i])
        elif i in plan.reads and not source.is_dense and reads is not None:
            plan.pieces[i] = [_places(reads, plan.channels(plan.reads[i]), source.first)]
            changed.add(i)
    for name, lies in outside.items():
        numbers = lies.channels.reshape(-1)
        if changed.intersection(np.unique(of[numbers]).tolist()):
            plan.outside[name] = _needed(plan, of, numbers)
    return plan if _pays(program, sources, plan, outside, of, changed) else None


def _outside(program: Program, sources: Sources) -> dict[str, Laid]:
    """What others read, as convolutions read it: what only looks at channels otherwise stays, and reads these."""
    found, nodes = dict.fromkeys(sources.outside), list(program.model.graph)
    for place in reversed(sources.moving):
        names = [value.name or "" for value in nodes[place].outputs]
        if any(name in found and sources.known[name].row is None for name in names):
            for name in names:
                found.pop(name, None)
            found |= {v.name or "": None for v in nodes[place].inputs if v is not None and v.name in sources.known}
    return {name: sources.known[name] for name in found if name in sources.known}


def _needed(plan: Plan, of: Numbers, channels: Numbers) -> list[tuple[int, int]]:
    """The pieces that have channels, in the order in which these are made."""
    found = list[tuple[int, int]]()
    for i in np.unique(of[channels]).tolist():
        found.extend((i, k) for k, piece in enumerate(plan.pieces[i]) if np.isin(piece, channels).any())
    return found


def _places(reads: Numbers, there: Numbers, first: int) -> Numbers:
    """The numbers of channels that are computed of those that are there, each of one, by what each reads."""
    made = {int(channel): first + place for place, channel in enumerate(reads)}
    return np.array([made.get(int(channel), -1) for channel in there])


def _pays(
    program: Program, sources: Sources, plan: Plan, outside: dict[str, Laid], of: Numbers, changed: set[int]
) -> bool:
    """Whether less is copied than is computed more for it. What is moved is copied for each move, and laid out anew by
    what makes it and by what reads it.
    """
    cost, joined, nodes = LEAST, set[tuple[tuple[int, int], ...]](), list(program.model.graph)
    for i, source in enumerate(sources.each):
        size, pieces = DEAR * _places_of(program, nodes[source.places[-1]].outputs[0]), plan.pieces[i]
        cost += (sum(piece.size for piece in pieces) - source.many) * source.work
        cost += (len(pieces) - 1) * (LAUNCH * source.work + LEAST)
        cost -= source.many * size if len(pieces) > 1 else 0.0
        if i in plan.reads and source.reads is not None:
            size = DEAR * _places_of(program, nodes[source.places[0]].inputs[0])
            there = plan.channels(plan.reads[i]).size
            cost += (there - source.reads.size) * source.reading if source.is_dense else 0.0
            if len(plan.reads[i]) > 1:
                cost -= source.reads.size * size
                cost += 0 if tuple(plan.reads[i]) in joined else there * size
                joined.add(tuple(plan.reads[i]))
    for name in plan.outside:
        cost += 2 * DEAR * elements(outside[name].shape, TYPICAL)
    for place, results in sources.moving.items():
        told = is_a(nodes[place], *COPIES) and any(
            changed.intersection(of[r.channels.reshape(-1)].tolist()) for r in results
        )
        cost -= DEAR * sum(elements(result.shape, TYPICAL) for result in results) if told else 0
    return cost < 0


def _places_of(program: Program, value: ir.Value | None) -> int:
    """How many elements an image has for each channel."""
    shape = shape_of(program, value) or ()
    return elements((*shape[:1], *shape[2:]), TYPICAL)
