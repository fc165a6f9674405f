"""What it costs to make channels as they are planned, beside what is spared."""

from __future__ import annotations

import onnx_ir as ir

from superopt.onnx_io.naming import name_of
from superopt.onnx_io.otherwise.shuffled.moves import COPIES
from superopt.onnx_io.otherwise.shuffled.pieces import DEAR, LAUNCH, LEAST
from superopt.onnx_io.otherwise.shuffled.plan import Plan
from superopt.onnx_io.otherwise.shuffled.sources import Sources
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import shape_of
from superopt.onnx_io.said import is_a
from superopt.substitution import TYPICAL, elements


def cost_of(program: Program, sources: Sources, plan: Plan) -> float:
    """How many products more are computed than are spared for what is copied less. What is moved is copied for each
    move, and laid out anew by what makes it and by what reads it.
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
    cost += sum(2 * DEAR * elements(sources.known[name].shape, TYPICAL) for name in plan.outside)
    spared = _spared(program, sources, plan)
    return cost - DEAR * sum(elements(r.shape, TYPICAL) for place in spared for r in sources.moving[place])


def _spared(program: Program, sources: Sources, plan: Plan) -> list[int]:
    """The places of nodes that copy channels for nothing then."""
    nodes, found = list(program.model.graph), list[int]()
    read = {name_of(nodes[source.places[0]].inputs[0]) for i, source in enumerate(sources.each) if i not in plan.reads}
    asked = {name for name in sources.asked.values() if not plan.is_changed(sources.known[name].channels.reshape(-1))}
    read |= asked.union(sources.outside).difference(plan.outside)
    for place in reversed(sources.moving):
        if read.intersection(map(name_of, nodes[place].outputs)):
            read.update({name_of(value) for value in nodes[place].inputs}.difference(plan.outside))
        elif is_a(nodes[place], *COPIES):
            found.append(place)
    return found


def _places_of(program: Program, value: ir.Value | None) -> int:
    """How many elements an image has for each channel."""
    shape = shape_of(program, value) or ()
    return elements((*shape[:1], *shape[2:]), TYPICAL)
