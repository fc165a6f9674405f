"""Nodes of a model that are put otherwise, all in one copy."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

import onnx_ir as ir

from superopt.errors import UNFORESEEN, InvalidModel, SuperoptError, left_undone, one_line
from superopt.onnx_io.files import checked
from superopt.onnx_io.naming import deep_values
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.program import Program
from superopt.onnx_io.skeleton import clone, opset_of
from superopt.onnx_io.surgery import replace_node

_LOG = logging.getLogger("superopt")

T = TypeVar("T")


class Draft(NamedTuple):
    """A copy of a model that is changed, and the names that are taken in it."""

    model: ir.Model
    taken: set[str]

    def nodes(self, name: str) -> NewNodes:
        """New nodes for it, the values of which are named so."""
        return NewNodes(name, self.taken, opset_of(self.model))

    def replace(self, node: ir.Node, made: NewNodes, results: Sequence[ir.Value]) -> bool:
        """Let new nodes be in the place of one, and what they give be what it gave: as a `Put`, which could be done."""
        self.model.graph.insert_before(node, made.nodes)
        replace_node(self.model, node, results)
        return True


Put: TypeAlias = Callable[[Draft, ir.Node], bool]
"""Puts something else in the place of a node of the main graph; whether that could be."""


def of_nodes(program: Program, read: Callable[[ir.Node], T | None]) -> dict[int, T]:
    """What is read of nodes of the main graph, by their places, where it is something: neither None nor False. Nodes
    that are not read for a form that nobody foresaw, or for sizes that are not told apart, take no other along.
    """
    found = dict[int, T]()
    for place, node in enumerate(program.model.graph):
        try:
            what = read(node)
        except (SuperoptError, *UNFORESEEN):  # entered here alone: it takes longer than most nodes, in many ways
            with left_undone(f"what is written otherwise of node {place}"):
                raise
        else:
            if what is not None and what is not False:
                found[place] = what
    return found


def replaced(model: ir.Model, puts: Mapping[int, Put]) -> ir.Model | None:
    """The model with something else in some places of its main graph, in a copy; None where that is in none of them. A
    form that is not foreseen, or that ONNX's check refuses, stays, and takes no other along.
    """
    if not puts:
        return None
    copy = clone(model)
    draft, nodes = Draft(copy, {v.name or "" for v in deep_values(copy.graph)}), list(copy.graph)
    try:
        # What one leaves unread is removed, which may be the next.
        done = [put(draft, nodes[place]) for place, put in puts.items() if nodes[place].graph is copy.graph]
        return checked(copy) if any(done) else None
    except (InvalidModel, *UNFORESEEN) as error:
        each, half = list(puts.items()), len(puts) // 2
        if not half:
            _LOG.info("node %d stays as it is: %s: %s", each[0][0], type(error).__name__, one_line(error))
        return (replaced(model, dict(each[:half])) or replaced(model, dict(each[half:]))) if half else None
