"""Which values of a model stand in blocks of channels."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from superopt.cost.blocks import how_taken, in_blocks
from superopt.onnx_io.program import Program
from superopt.term import Term, variables


@dataclass(frozen=True)
class Layouts:
    """Of a program: the variables of the values that are made in blocks, and where values are read so, by the number
    of the step.
    """

    made: frozenset[Term]
    read: Mapping[Term, Collection[int]]


def layouts_of(program: Program) -> Layouts:
    """Which values stand in blocks, by what makes and reads them."""
    known: dict[Term, bool] = {}
    made: dict[Term, Term] = {}
    read: dict[Term, list[int]] = {}
    for number, step in enumerate(program.steps):
        for name, term in zip(step.outputs, step.terms, strict=False):
            within = in_blocks(term, known, made)
            if name in program.values:
                known[program.values[name]], made[program.values[name]] = within, term
            taken = how_taken(term)
            for v in variables(term):
                if taken.get(v, "in blocks" if within else "as it is") == "in blocks":
                    read.setdefault(v, []).append(number)
    return Layouts(frozenset(v for v, within in known.items() if v.is_variable and within), read)
