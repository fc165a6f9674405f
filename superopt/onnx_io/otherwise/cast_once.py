"""Models that cast columns of one value, each by itself: the value is cast once, and columns are taken of that.

Recommenders take one matrix of numbers, and look each feature up in a table of its own: `table(x[:, i:i + 1].long())`,
which is a slice, a cast and a Gather for each of two dozen. Of one that was cast all tables are seen to be looked up by
columns of the same, so that it is done at once.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from math import prod

import onnx_ir as ir

from superopt.onnx_io.order import is_read_once
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import is_a, number

LEAST, TIMES = 4, 4
"""So many slices are cast at least, and what they are of has so many times as many elements at most."""


def cast_once(program: Program) -> dict[int, Put]:
    """How to take columns of what was cast, by the places of what casts them."""
    groups = defaultdict[tuple[ir.Value, int], list[int]](list)
    for place, node in enumerate(program.model.graph):
        sliced = _sliced(node)
        if sliced is not None and sliced.inputs[0] is not None:
            groups[sliced.inputs[0], number(node, "to", 1)].append(place)
    found = dict[int, Put]()
    for (value, _), places in groups.items():
        nodes = [program.model.graph.node(place) for place in places]
        cast = sum(_elements(program, node.inputs[0]) for node in nodes)
        if len(nodes) >= LEAST and 0 < _elements(program, value) <= TIMES * cast:
            found |= dict.fromkeys(places, partial(_put, set[str]()))
    return found


def _sliced(node: ir.Node) -> ir.Node | None:
    """What slices all that a node casts, and nothing else."""
    value = node.inputs[0] if is_a(node, "Cast") else None
    before = None if value is None else value.producer()
    if value is None or not is_a(before, "Slice") or None in before.inputs:
        return None
    return before if is_read_once(value) and before.graph is node.graph else None


def _elements(program: Program, value: ir.Value | None) -> int:
    """How many elements a value has for each of what its symbols say; 0 where its rank is unknown, and of texts, of
    which others than those that are cast may be no numbers.
    """
    known = program.term(value)
    return 0 if known is None or known.type.dtype == "string" else prod(d for d in known.shape if isinstance(d, int))


def _put(ours: set[str], draft: Draft, node: ir.Node) -> bool:
    """Let a slice be of what was cast, by the first of these."""
    before = _sliced(node)
    if before is None or before.inputs[0] is None:  # another has changed it
        return False
    made, value = draft.nodes("cast"), before.inputs[0]
    mine = (user for user, _ in value.uses() if user.outputs[0].name in ours and is_a(user, "Cast"))
    cast = next((user.outputs[0] for user in mine if number(user, "to", 1) == number(node, "to", 1)), None)
    if cast is None:
        cast = made.node("Cast", [value], list(node.attributes.values()))
        ours.add(cast.name or "")
        draft.model.graph.insert_before(before, made.nodes)
        made = draft.nodes("cast")
    bounds = [bound for bound in before.inputs[1:] if bound is not None]
    taken = made.node("Slice", [cast, *bounds], list(before.attributes.values()))
    return draft.replace(node, made, [taken])
