"""What a search found for a piece, as text, and put in its place again: in the same model, or with other weights.

A piece and what replaces it are printed as a rule is, over variables named by first use. A model in which the same
piece stands, whatever its values are called and its weights hold, is rewritten without a search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from superopt.dim import assuming
from superopt.errors import SuperoptError, UsageError
from superopt.rules.format import parse_file, print_rule
from superopt.rules.rule import Rule
from superopt.search.pieces import Piece
from superopt.search.solve import Solved
from superopt.term import Term, replace_all

NAME = "piece"


@dataclass(frozen=True)
class Placement:
    """The terms that replace the values of a piece, by name, and the value that each old term is."""

    new: dict[str, Term]
    origins: dict[Term, str]


def solution_text(solved: Solved) -> str | None:
    """A piece and what replaces it; None where that has no text that reads back (sizes with odd names have none)."""
    before, after = solved.places[0].canonical, solved.winner.graph
    try:
        text = print_rule(Rule(NAME, before.outputs, after.outputs))
        same = _read(text, solved.places[0]) == after.outputs
    except SuperoptError:
        return None
    return text if same else None


def placement(piece: Piece, after: Sequence[Term]) -> Placement:
    """What the values of a piece become, where terms over its canonical variables replace it."""
    return Placement(dict(zip(piece.names, piece.placed(after), strict=True)), piece.origins)


def placements(pieces: Sequence[Piece], solutions: Sequence[str]) -> list[Placement]:
    """Where solutions fit. Raises `UsageError` for a text that is none."""
    found = []
    for piece in pieces:
        for text in solutions:
            after = _read(text, piece)
            if after is not None:
                found.append(placement(piece, after))
                break
    return found


def _read(text: str, piece: Piece) -> tuple[Term, ...] | None:
    """What a solution puts in the place of a piece, over its canonical variables; None where it is about another."""
    try:
        (rule,) = parse_file(text).rules
    except (SuperoptError, ValueError) as error:
        raise UsageError(f"the report holds a piece that cannot be read: {error}") from None
    own = {v.label: v for v in piece.canonical.inputs}
    if {v.label for v in rule.given} != set(own):
        return None
    new = {v: own[v.label] for v in rule.given}
    if any(v.shape != w.shape for v, w in new.items()):
        return None
    try:
        with assuming():  # sizes are those of the piece, which was read
            before, after = (replace_all(side, new) for side in (rule.source, rule.target))
    except SuperoptError:  # of other types
        return None
    return after if before == piece.canonical.outputs else None
