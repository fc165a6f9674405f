"""Cells one behind the other, each of which begins with the state that the one before has left."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import onnx_ir as ir

from superopt.onnx_io.otherwise.cells.cell import Cell
from superopt.onnx_io.otherwise.cells.kinds import cells
from superopt.onnx_io.otherwise.networks.same_values import are_same, does_as
from superopt.onnx_io.program import Program
from superopt.onnx_io.skeleton import subgraphs
from superopt.relations import are_equal

LEAST_STEPS = 3
"""Fewer are about as fast one by one."""


class Chain(NamedTuple):
    """The cell that is the last, and for each of all, the first in front, what stands for the values of that one."""

    cell: Cell
    steps: list[Mapping[ir.Value, ir.Value]]

    def rows(self, value: ir.Value) -> tuple[ir.Value, ...]:
        """What stands for a value of the last step in each."""
        return tuple(step[value] for step in self.steps)

    @property
    def inner(self) -> set[ir.Value]:
        """What the steps compute."""
        outer = (*self.cell.begins, *self.cell.read, *self.cell.fed)
        return {v for step in self.steps for last, v in step.items() if last not in outer}

    @property
    def is_apart(self) -> bool:
        """Whether what the steps read can be there before the first, and nothing but what their states are for reads
        what else they compute.
        """
        inner, left = self.inner, {end for values in map(self.rows, self.cell.ends[:1]) for end in values}
        left |= {self.steps[-1][end] for end in self.cell.ends}
        own = {v.producer() for v in inner}
        if any(v.is_graph_output() or any(user not in own for user, _ in v.uses()) for v in inner - left):
            return False
        read = {v for value in self.cell.read for v in self.rows(value)}
        return _is_made_without((*read, *(self.steps[0][begin] for begin in self.cell.begins)), inner)


def chain_to(program: Program, value: ir.Value) -> Chain | None:
    """The longest chain of cells to the one whose state a value is that can be computed at once."""
    return longest(chains_to(program, value))


def longest(chains: Iterable[Chain]) -> Chain | None:
    """The longest of chains that can be computed at once."""
    return max((one for one in chains if one.is_apart), key=lambda one: len(one.steps), default=None)


def chains_to(program: Program, value: ir.Value) -> list[Chain]:
    """The chains of cells to the one whose state a value is, by what that may be."""
    every = [_chain(program, cell) for cell in cells(program, value, LEAST_STEPS)]
    return [chain for chain in every if len(chain.steps) >= LEAST_STEPS]


def _chain(program: Program, cell: Cell) -> Chain:
    outer = {*cell.begins, *cell.read, *cell.fed}
    steps: list[Mapping[ir.Value, ir.Value]] = []
    ends: tuple[ir.Value, ...] = cell.ends
    while True:
        found = _alike(program, cell.ends, ends, outer)
        fed = None if found is None else _alike(program, cell.fed, [found[v] for v in cell.fed], cell.begins[:1])
        if found is None or fed is None or any(found.get(v, fed[v]) is not fed[v] for v in cell.begins if v in fed):
            break
        found |= {v: fed[v] for v in cell.begins if v in fed}
        steps.insert(0, found)
        ends = tuple(found[begin] for begin in cell.begins)
    return Chain(cell, steps)


def _alike(
    program: Program, ends: Iterable[ir.Value], others: Iterable[ir.Value], outer: Collection[ir.Value]
) -> dict[ir.Value, ir.Value] | None:
    """What stands for the values that some are made of, down to `outer` ones, in what others are made of alike, of the
    same constants; None where these are made otherwise.
    """
    found: dict[ir.Value, ir.Value] = {}
    stack = list(zip(ends, others, strict=True))
    while stack:
        one, other = stack.pop()
        if one in found:
            if not are_same(found[one], other):
                return None
            continue
        if one not in outer and program.is_constant(one):
            if not are_same(one, other):
                return None
            continue
        if not _has_type_of(program, one, other):
            return None
        found[one] = other
        if one in outer:
            continue
        node, as_node = one.producer(), other.producer()
        if node is None or as_node is None or not does_as(node, as_node) or one.index() != other.index():
            return None
        pairs = zip(node.inputs, as_node.inputs, strict=True)
        stack.extend((a, b) for a, b in pairs if a is not None and b is not None)
    return found


def _has_type_of(program: Program, one: ir.Value, other: ir.Value) -> bool:
    known = [program.term(v) for v in (one, other)]
    if known[0] is None or known[1] is None:  # sizes and axes
        return known[0] is known[1]
    (a, b), types = (known[0].shape, known[1].shape), (known[0].type.dtype, known[1].type.dtype)
    return len(a) == len(b) and all(map(are_equal, a, b)) and types[0] == types[1]


def _is_made_without(values: Iterable[ir.Value], others: Collection[ir.Value]) -> bool:
    """Whether no value is made of others."""
    stack, seen = list(values), set[ir.Value]()
    while stack:
        value = stack.pop()
        if value in others:
            return False
        node = value.producer()
        if value not in seen and node is not None:
            if any(True for _ in subgraphs(node)):  # which may read anything
                return False
            seen.add(value)
            stack.extend(v for v in node.inputs if v is not None)
    return True
