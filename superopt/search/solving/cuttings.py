"""A program cut in two ways, into pieces and into joined ones over their cuts, and what is remembered of both."""

from __future__ import annotations

from dataclasses import dataclass

from superopt.onnx_io import Program
from superopt.search.cutting.pieces import Around, Piece, cut_into_pieces, distinct, joined_pieces
from superopt.search.solving.remembered import Memory
from superopt.search.solving.sharing import Groups
from superopt.search.solving.solution import Terms
from superopt.search.strategies.found import Solved


@dataclass(frozen=True)
class Cuttings:
    """The pieces of a program; the places of each distinct one, and of each that is joined; and what is known of them
    by an earlier search.
    """

    pieces: list[Piece]
    groups: Groups
    joined: Groups
    known: dict[Terms, Solved]
    known_joined: dict[Terms, Solved]

    @property
    def all_known(self) -> bool:
        """Whether nothing is left to be searched."""
        return len(self.known) == len(self.groups) and len(self.known_joined) == len(self.joined)

    def forget(self, memory: Memory) -> bool:
        """Forget what was known, and what was found since, and what is joined of it; whether anything was known."""
        memory.forget(self.groups)
        memory.of_joined.forget(self.joined)
        return bool(self.known or self.known_joined)


def cuttings_of(program: Program, memory: Memory | None) -> Cuttings:
    """A program cut, and recalled as far as there is a memory."""
    around = Around(program)
    pieces = cut_into_pieces(program, around)
    groups, joined = distinct(pieces), distinct(joined_pieces(program, pieces, around))
    known = memory.recalled(groups) if memory else {}
    return Cuttings(pieces, groups, joined, known, memory.of_joined.recalled(joined) if memory else {})
