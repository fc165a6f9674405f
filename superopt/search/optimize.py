"""From a model to a faster one that is the same: search, write, compare, measure, accept."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from superopt.cost.measured import MeasuredCost
from superopt.cost.runtime import Draw, Feeds, RuntimeFailed
from superopt.errors import InvalidModel, VerificationFailed
from superopt.onnx_io import Program, check, left_to_chance, rewritten, save
from superopt.operators.reader import term_text
from superopt.search.paired import Latency, Paired, compare, faster, latency
from superopt.search.pieces import Piece, cut_into_pieces
from superopt.search.reference import reference_of
from superopt.search.report import Rewritten
from superopt.search.rewrites import Rewrite
from superopt.search.same import Agreement, examine
from superopt.search.solve import Progress, Solved, solve
from superopt.term import Term, replace

SEARCH_SHARE = 0.45
"""Of the time limit, what the search may take; the rest is for comparing and measuring whole models."""


_NO_ROOM = ("bad_alloc", "llocate memory")
"""What onnxruntime says where memory is lacking."""


LEAST_EXPECTED = 1.01
"""Below this expected speed-up no whole model is written: a winner must gain 1 %, and would not."""


@dataclass
class Attempt:
    """What an optimization came to. `accepted` says whether `candidate` is the answer, `reason` why or why not."""

    pieces: list[Piece]
    solved: list[Solved] = field(default_factory=list)
    candidate: Path | None = None
    agreement: Agreement | None = None
    paired: Paired | None = None
    alone: Latency | None = None
    accepted: bool = False
    reason: str = ""
    search_seconds: float = 0.0


def attempt(
    program: Program,
    original: Path,
    working: Path,
    folder: Path,
    rewrites: Sequence[Rewrite],
    cost: MeasuredCost,
    *,
    alpha: float,
    limit: float,
    seed: int,
    inputs: Sequence[Feeds],
    progress: Progress,
) -> Attempt:
    """Optimize a program whose model lies at `original`; a candidate is written into `folder`.

    Candidates are compared with the original, and measured beside `working`: the same model, its weights in a file that
    sessions map into memory, as the candidate's are.

    Raises `VerificationFailed` for a candidate that is not the same, `OutOfTime` where the limit (seconds from now)
    passes before anything is known.
    """
    start = time.monotonic()
    tried = Attempt(cut_into_pieces(program))
    cost.deadline = start + SEARCH_SHARE * limit
    if chance := left_to_chance(program):
        reason = (
            f"output {chance[0]!r} is drawn anew in each run, so nothing could be compared; give what draws it a seed"
        )
        return _original(tried, reason, working, cost, limit, seed)
    if tried.pieces:
        tried.solved = solve(tried.pieces, rewrites, cost, alpha, cost.deadline, progress)
    tried.search_seconds = time.monotonic() - start
    winners = [s for s in tried.solved if s.gain > 1.0]
    left = max(limit - (time.monotonic() - start), 0.0)
    if not winners:
        return _original(tried, "no rewrite makes a piece of it faster", working, cost, left, seed)
    if expected_speedup(tried.solved) < LEAST_EXPECTED:
        reason = "what its pieces gain is too little of the whole to be told from noise"
        return _original(tried, reason, working, cost, left, seed)
    progress("write", 0.0)
    tried.candidate = _written(program, winners, folder / "candidate.onnx")
    program.release_weights()
    progress("compare", 0.0)
    try:
        tried.agreement = examine(
            original, tried.candidate, cost.runtime, reference_of(program), seed, inputs, sizes=cost.sizes
        )
    except RuntimeFailed as error:
        return _original(tried, f"nothing could be compared: {error}", working, cost, left, seed)
    differs = not tried.agreement.agrees and (tried.agreement.examined or tried.agreement.outputs)
    if not tried.agreement.examined and not differs:
        reason = f"nothing could be compared: {tried.agreement.reason}; give inputs on which the outputs differ"
        return _original(tried, reason, working, cost, left, seed)
    if differs:
        raise VerificationFailed(
            f"the optimized model differs from the original: {tried.agreement.reason}; nothing was written"
        )
    left = limit - (time.monotonic() - start)
    if left <= 0:
        reason = f"{limit:.0f} s passed before a candidate could be measured; allow more with --time"
        return _original(tried, reason, working, cost, left, seed)
    program.release_weights()  # two sessions are alive from here on, each with weights of its own
    tried.paired = compare(
        working,
        tried.candidate,
        cost.runtime,
        budget_s=0.9 * left,
        seed=seed,
        progress=lambda done, all_: progress("measure", done / all_),
        draw=Draw(sizes=cost.sizes),
    )
    tried.accepted = faster(tried.paired)
    tried.reason = "confirmed in fresh sessions" if tried.accepted else "the gain was not confirmed in fresh sessions"
    return tried


def expected_speedup(solved: Sequence[Solved]) -> float:
    """How many times faster the whole should be, by what its pieces were measured to gain."""
    before = sum(len(s.places) * s.outcome.start.cost for s in solved)
    after = sum(len(s.places) * s.outcome.start.cost / s.gain for s in solved)
    return before / after if after else 1.0


def _original(tried: Attempt, reason: str, original: Path, cost: MeasuredCost, left: float, seed: int) -> Attempt:
    """The attempt where the original is the answer: measured, unless the runtime does not run it.

    Raises `RuntimeFailed` for want of memory: that says nothing about the model.
    """
    tried.reason = reason
    try:
        budget = min(0.3 * left, 2.0)
        tried.alone = latency(original, cost.runtime, budget_s=budget, seed=seed, draw=Draw(sizes=cost.sizes))
    except RuntimeFailed as error:
        if any(sign in str(error) for sign in _NO_ROOM):
            raise
        tried.reason += "" if str(error) in reason else f"; it could not be measured: {error}"
    return tried


def _written(program: Program, winners: Sequence[Solved], path: Path) -> Path:
    """The model with the winning pieces in place, saved and checked by ONNX's own checker."""
    new: dict[str, Term] = {}
    origins: dict[Term, str] = {}
    for solved in winners:
        for piece in solved.places:
            new |= dict(zip(piece.names, piece.placed(solved.winner.graph.outputs), strict=True))
            origins |= piece.origins
    model = rewritten(program, new, origins)
    try:
        check(model, "the optimized model")
        save(model, path, external_data=True)
    except InvalidModel as error:  # our doing, not the user's
        raise VerificationFailed(f"{error}; nothing was written") from None
    return path


def applied_rewrites(solved: Sequence[Solved], laws: dict[str, tuple[str, ...]]) -> list[Rewritten]:
    """The rewrites that winning pieces contain, equal ones counted together."""
    counted: Counter[tuple[str, str, str, str, str]] = Counter()
    for s in solved:
        if s.gain > 1.0:
            back = {v: k for k, v in s.places[0].renaming.items()}
            for step in s.winner.steps:
                value = _nearest(s.places[0], step.before, back)
                key = (step.name, step.known, term_text(step.before), term_text(step.after), value)
                counted[key] += len(s.places)
    return [
        Rewritten(name=n, known=k, by=laws.get(n, ()), before=b, after=a, value=v, times=c)  # type: ignore[arg-type]
        for (n, k, b, a, v), c in counted.items()
    ]


def _nearest(piece: Piece, before: Term, back: dict[Term, Term]) -> str:
    """The name of the value that a term is in the original; that of the piece's first output where it is none."""
    return piece.origins.get(replace(before, back), piece.names[0])
