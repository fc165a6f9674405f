"""What a search found for pieces, put in their places again: in the same model, or with other weights.

A model in which the same piece stands, whatever its values are called and its weights hold, is rewritten without a
search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from superopt.errors import SuperoptError, UsageError
from superopt.onnx_io import Program
from superopt.search.cutting.pieces import Piece
from superopt.search.report import Solution
from superopt.search.solving.nodes import written_otherwise
from superopt.search.solving.schedule import best_apart
from superopt.search.solving.solution import read_solution
from superopt.term import Term


@dataclass(frozen=True)
class Placement:
    """The terms that replace the values of a piece, by name, and the value that each old term is."""

    new: dict[str, Term]
    origins: dict[Term, str]


def placement(piece: Piece, after: Sequence[Term], anew: bool = False) -> Placement:
    """What the values of a piece become, where terms over its canonical variables replace it: those terms of them that
    it has as it stands are the original's own values, unless all is written `anew`.
    """
    return Placement(dict(zip(piece.names, piece.placed(after), strict=True)), {} if anew else piece.origins)


def placements(program: Program, pieces: Sequence[Piece], solutions: Sequence[Solution]) -> list[Placement]:
    """Where solutions fit; of places that overlap those that save most together, as when they were found.

    Raises `UsageError` for a text that is none.
    """
    by_print = {s.piece: s for s in solutions}
    fitting = [(piece, by_print[key]) for piece in pieces if (key := piece.fingerprint) in by_print]
    replaced = [(piece, s, after) for piece, s in fitting if (after := _replacing(s, piece)) is not None]
    chosen = best_apart([(piece.steps, s.saved) for piece, s, _ in replaced])
    places = [(piece, after) for piece, _, after in (replaced[i] for i in chosen)]
    return [placement(piece, after, anew=any(written_otherwise(program, [piece]))) for piece, after in places]


def _replacing(solution: Solution, piece: Piece) -> tuple[Term, ...] | None:
    """What a solution puts in the place of a piece, over its canonical variables; None where it is about another."""
    try:
        found = read_solution(solution.text or "", piece.canonical.inputs)
    except (SuperoptError, ValueError) as error:
        raise UsageError(f"the report holds a piece that cannot be read: {error}") from None
    return found[1] if found and found[0] == piece.canonical.outputs else None
