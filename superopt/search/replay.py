"""What a search found for pieces, put in their places again: in the same model, or with other weights.

A model in which the same piece stands, whatever its values are called and its weights hold, is rewritten without a
search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from superopt.errors import SuperoptError, UsageError
from superopt.search.pieces import Piece
from superopt.search.solution import read_solution
from superopt.term import Term


@dataclass(frozen=True)
class Placement:
    """The terms that replace the values of a piece, by name, and the value that each old term is."""

    new: dict[str, Term]
    origins: dict[Term, str]


def placement(piece: Piece, after: Sequence[Term]) -> Placement:
    """What the values of a piece become, where terms over its canonical variables replace it."""
    return Placement(dict(zip(piece.names, piece.placed(after), strict=True)), piece.origins)


def placements(pieces: Sequence[Piece], solutions: Sequence[str]) -> list[Placement]:
    """Where solutions fit. Raises `UsageError` for a text that is none."""
    found = []
    for piece in pieces:
        for text in solutions:
            after = _replacing(text, piece)
            if after is not None:
                found.append(placement(piece, after))
                break
    return found


def _replacing(text: str, piece: Piece) -> tuple[Term, ...] | None:
    """What a solution puts in the place of a piece, over its canonical variables; None where it is about another."""
    try:
        found = read_solution(text, piece.canonical.inputs)
    except (SuperoptError, ValueError) as error:
        raise UsageError(f"the report holds a piece that cannot be read: {error}") from None
    return found[1] if found and found[0] == piece.canonical.outputs else None
