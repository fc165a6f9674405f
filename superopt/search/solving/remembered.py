"""What searches found for pieces, kept beside the timings: what was searched once is not searched again.

An entry depends on all that a search does: the runtime, the piece, sizes, rules and definitions, the strategy and its
α. It is kept as text. A search that ran out of time may find more: a gain that it found serves whoever allows no more.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from superopt.cost.table import Table
from superopt.cost.timing import Key
from superopt.errors import SuperoptError, UsageError
from superopt.search.cutting.pieces import Piece
from superopt.search.rewriting.rewrites import Known
from superopt.search.solving.solution import Terms, read_solution, solution_text
from superopt.search.strategies.found import ALIKE, INTERRUPTED, OUT_OF_TIME, Applied, Found, Outcome, Solved
from superopt.term import Graph, Term


def digest(files: Sequence[Path], *facts: object) -> str:
    """What changes where one of the files does, or a fact that prints. Raises `UsageError`."""
    total = hashlib.sha256(repr(facts).encode())
    for path in files:
        try:
            total.update(hashlib.sha256(path.read_bytes()).digest())
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    return total.hexdigest()


class _Entry(BaseModel):
    """A part of an entry; nothing in it that is not declared."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class _Step(_Entry):
    """Rewrites of one name that were applied one after the other, as text: one of several terms has several outputs."""

    name: str
    known: Known
    by: tuple[str, ...]
    text: str


class _Remembered(_Entry):
    """A piece and what replaces it; `text` is None where nothing better was found. Costs are in seconds.

    `limit` is the time limit in seconds that the search ran into, if it did.
    """

    text: str | None
    gain: float
    start: float
    cost: float
    seen: int
    reason: str
    limit: float | None
    steps: tuple[_Step, ...]


@dataclass(frozen=True)
class Memory:
    """The solutions in a table that were found on a runtime within a time limit in seconds, by one search (a digest of
    all that what it finds depends on besides).
    """

    table: Table
    key: Key
    search_digest: str
    limit: float

    @property
    def of_joined(self) -> Memory:
        """That of joined pieces: these are searched in another way, and not as long."""
        return replace(self, search_digest=f"{self.search_digest} joined")

    @property
    def without_differences(self) -> Memory:
        """That of pieces in which what is spelled out is not read as an operator, and nothing rounds more."""
        return replace(self, search_digest=f"{self.search_digest} without differences")

    def recall(self, places: Sequence[Piece]) -> Solved | None:
        """What was found for a piece that stands at these places, if anything. Raises as the table does."""
        text = self.table.answer(self.key, self._asked(places[0]))
        if text is None:
            return None
        try:
            entry = _Remembered.model_validate_json(text)
            return None if entry.limit is not None and entry.limit < self.limit else _solved(entry, places)
        except (ValidationError, SuperoptError, ValueError):  # of another version: it is found anew, and replaced
            return None

    def recalled(self, groups: Mapping[Terms, Sequence[Piece]]) -> dict[Terms, Solved]:
        """What is known of pieces, by what they are known by in the groups."""
        found = {key: self.recall(places) for key, places in groups.items()}
        return {key: solved for key, solved in found.items() if solved is not None}

    def keep(self, solved: Solved, waited: bool = False) -> None:
        """Keep what was found, unless somebody stopped the search, it was not timed but promised, or it has no text.

        Where it ran out of time, or took what another piece did, or not all could be timed that was to be, it is kept
        for whoever allows no more; but only a gain where it `waited` while another process had the time.
        """
        reason = solved.outcome.reason
        limited = reason in (OUT_OF_TIME, ALIKE) or not solved.outcome.is_timed
        useless = reason == INTERRUPTED or (limited and waited and solved.gain <= 1.0) or solved.outcome.promised
        entry = None if useless else _entry(solved, self.limit if limited else None)
        if entry is not None:
            asked = self._asked(solved.places[0])
            self.table.keep_answer(self.key, asked, entry.model_dump_json())

    def forget(self, groups: Mapping[Terms, Sequence[Piece]]) -> None:
        """Forget what is known of pieces."""
        for places in groups.values():
            self.table.forget_answer(self.key, self._asked(places[0]))

    def _asked(self, piece: Piece) -> str:
        return hashlib.sha256(f"{self.search_digest} {piece.fingerprint}".encode()).hexdigest()[:32]


def _entry(solved: Solved, limit: float | None) -> _Remembered | None:
    graph, winner, start = solved.places[0].canonical, solved.winner, solved.outcome.start.cost
    gained = solved.gain > 1.0
    text = solution_text(graph.outputs, winner.graph.outputs, graph.inputs) if gained else None
    runs = itertools.groupby(winner.steps if gained else (), lambda step: (step.name, step.known, step.by))
    steps = [_step(*told, list(run), graph.inputs) for told, run in runs]
    if not math.isfinite(start) or (gained and text is None) or None in steps:
        return None
    return _Remembered(
        text=text,
        gain=solved.gain,
        start=start,
        cost=winner.cost,
        seen=solved.outcome.seen,
        reason=solved.outcome.reason,
        limit=limit,
        steps=tuple(s for s in steps if s is not None),
    )


def _step(
    name: str, known: Known, by: tuple[str, ...], run: Sequence[Applied], variables: Sequence[Term]
) -> _Step | None:
    text = solution_text(tuple(s.before for s in run), tuple(s.after for s in run), variables)
    return None if text is None else _Step(name=name, known=known, by=by, text=text)


def _solved(entry: _Remembered, places: Sequence[Piece]) -> Solved | None:
    graph = places[0].canonical
    start = Found(graph, entry.start, (), measured=True)
    if entry.text is None:
        return Solved(tuple(places), Outcome(start, [start], entry.seen, entry.reason), start, 1.0, remembered=True)
    before, after = _read(entry.text, graph.inputs)
    if before != graph.outputs:  # two pieces of one fingerprint
        return None
    steps = [(s, *_read(s.text, graph.inputs)) for s in entry.steps]
    applied = tuple(
        Applied(s.name, s.known, s.by, b, a) for s, old, new in steps for b, a in zip(old, new, strict=True)
    )
    winner = Found(Graph(graph.inputs, after), entry.cost, applied, measured=True)
    return Solved(
        tuple(places), Outcome(start, [winner], entry.seen, entry.reason), winner, entry.gain, remembered=True
    )


def _read(text: str, variables: Sequence[Term]) -> tuple[Terms, Terms]:
    found = read_solution(text, variables)
    if found is None:
        raise ValueError("the text is about other variables")
    return found
