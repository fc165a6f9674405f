"""What a search found for pieces, put in their places again: in the same model, or with other weights.

A model in which the same piece stands, whatever its values are called and its weights hold, is rewritten without a
search.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from superopt.errors import SuperoptError, UsageError
from superopt.onnx_io import Program
from superopt.search.cutting.pieces import Piece
from superopt.search.report import Report, Solution
from superopt.search.solving.nodes import written_otherwise
from superopt.search.solving.schedule import best_apart
from superopt.search.solving.solution import read_solution
from superopt.term import Term


@dataclass(frozen=True)
class Placement:
    """The terms that replace the values of a piece, by name, and the value that each old term is. Of those that are
    `supposed` nobody found that they are equal: their names are given to what stands in their places.
    """

    new: dict[str, Term]
    origins: dict[Term, str]
    supposed: frozenset[str] = frozenset()


def placement(piece: Piece, after: Sequence[Term], anew: bool = False) -> Placement:
    """What the values of a piece become, where terms over its canonical variables replace it: those terms of them that
    it has as it stands are the original's own values, unless all is written `anew`.
    """
    return Placement(dict(zip(piece.names, piece.placed(after), strict=True)), {} if anew else piece.origins)


@dataclass(frozen=True)
class Fit:
    """A solution, a piece in whose place it stands again, and the terms that it puts there."""

    solution: Solution
    piece: Piece
    after: tuple[Term, ...]

    def placement(self, program: Program) -> Placement:
        """What the values of the piece become."""
        return placement(self.piece, self.after, anew=any(written_otherwise(program, [self.piece])))


def fits(pieces: Sequence[Piece], solutions: Sequence[Solution]) -> list[Fit]:
    """Where solutions fit; of places that overlap those that save most together, as when they were found.

    Raises `UsageError` for a text that is none.
    """
    by_print = {s.piece: s for s in solutions}
    fitting = [(by_print[key], piece) for piece in pieces if (key := piece.fingerprint) in by_print]
    replaced = [Fit(s, piece, after) for s, piece in fitting if (after := _replacing(s, piece)) is not None]
    return [replaced[i] for i in best_apart([(fit.piece.steps, fit.solution.saved) for fit in replaced])]


def report_again(again: Report, earlier: Report, found: Sequence[Fit], program: Program) -> Report:
    """The report of what was put in its places again: what the `earlier` one tells of that, and of nothing else, where
    it is in this program.
    """
    at: dict[str, list[Piece]] = defaultdict(list)
    for fit in found:
        at[fit.solution.piece].append(fit.piece)
    before = {s.piece: s.places for s in earlier.solutions}
    solutions = [s.model_copy(update={"places": len(at[s.piece])}) for s in earlier.solutions if s.piece in at]
    rewrites = [
        r.model_copy(
            update={
                "times": r.times // before[r.piece] * len(at[r.piece]),
                "value": r.value if r.value in program.values else at[r.piece][0].names[0],
            }
        )
        for r in earlier.rewrites
        if r.piece in at
    ]
    return again.model_copy(update={"rewrites": tuple(rewrites), "solutions": tuple(solutions)})


def _replacing(solution: Solution, piece: Piece) -> tuple[Term, ...] | None:
    """What a solution puts in the place of a piece, over its canonical variables; None where it is about another."""
    try:
        found = read_solution(solution.text or "", piece.canonical.inputs)
    except (SuperoptError, ValueError) as error:
        raise UsageError(f"the report holds a piece that cannot be read: {error}") from None
    return found[1] if found and found[0] == piece.canonical.outputs else None
