"""Pieces that are written anew though nothing in them was rewritten: in other nodes than those that were read.

Exporters write out what an operator broadcasts by itself, put slices back one by one, and reshape what has its shape.
None of that is left in terms, so a search, whose start is what it reads, finds no gain in leaving it out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path

from superopt.errors import OutOfTime, RuntimeFailed, SuperoptError
from superopt.onnx_io import Program, gone_after, hidden_constants
from superopt.search.accepting.judge import together, written
from superopt.search.accepting.judgement import Judgement, now, question
from superopt.search.accepting.trial import Trial
from superopt.search.objectives.latency import WORTH_KEEPING
from superopt.search.objectives.promises import LEAST_LEFT
from superopt.search.paired import LEAST_GAIN, Paired, compare, measuring_s
from superopt.search.replay import Placement, placement
from superopt.search.rounds import LEAST_SESSIONS
from superopt.search.solving.nodes import written_in_fewer, written_otherwise
from superopt.search.solving.remembered import Memory
from superopt.search.strategies.found import Applied, Found, Solved, taken_as_they_stand

NAME = "written anew"

_TO_BE_MEASURED = math.nextafter(1.0, 2.0)
"""The gain of what is to be placed though nobody knows yet what it gains."""

MEASURED_S, MEASURED_SHARE = 2.0, 0.25
"""What measuring a choice is to take, in seconds, and what that of writing anew may take of the time that is left."""


def placed(program: Program, cover: Sequence[Solved]) -> list[Placement]:
    """What replaces the places of all that gains, with all that is in them where it was timed in other nodes."""
    found = []
    for s in cover:
        if s.gain > 1.0:
            after = s.winner.graph.outputs
            anew = written_otherwise(program, s.places)
            found += [placement(piece, after, whole) for piece, whole in zip(s.places, anew, strict=True)]
    return found


def with_anew(cover: list[Solved], trial: Trial, memory: Memory | None) -> list[Solved]:
    """The cover, and in it those pieces written anew for which nothing else was found, if the whole model is faster so.

    Their gain is what is measured of the whole.
    """
    if trial.objective.better != "faster":
        return cover
    cover = [as_it_stands(s) if _gains_nothing_here(trial.program, s) else s for s in cover]
    plain = [s.gain <= 1.0 and any(written_otherwise(trial.program, s.places)) for s in cover]
    more = [_anew(s) if is_plain else s for s, is_plain in zip(cover, plain, strict=True)]
    all_s, own_s = taken_as_they_stand(cover), taken_as_they_stand(compress(cover, plain))
    fewer = any(written_in_fewer(trial.program, s.places) for s in compress(cover, plain))
    is_much = fewer or own_s >= (LEAST_GAIN - 1.0) * all_s  # other nodes for as many take about as long
    measured = measured_beside(cover, more, trial, memory) if own_s and is_much and is_in_time(all_s, trial) else None
    if measured is None or measured.ratio < WORTH_KEEPING:
        return cover
    saved_s = measured.original_s - measured.candidate_s
    gain = own_s / max(own_s - saved_s, LEAST_LEFT * own_s)
    gaining = [replace(s, gain=gain) if is_plain else s for s, is_plain in zip(more, plain, strict=True)]
    for s in compress(gaining, plain):
        if memory:
            memory.keep(s)
    return gaining


def is_in_time(inference_s: float, trial: Trial, share: float = MEASURED_SHARE) -> bool:
    """Whether two models can be written and measured in the share of the time that is left for that."""
    takes_s = 2 * trial.writing_s + measuring_s(inference_s, trial.once.loading_s, at_least=True)
    return takes_s <= share * trial.left


def _gains_nothing_here(program: Program, solved: Solved) -> bool:
    """Whether a piece was to be written anew in another model, whose nodes it was found for; here they are its own."""
    same = solved.winner.graph.outputs == solved.places[0].canonical.outputs
    return same and solved.gain > 1.0 and not any(written_otherwise(program, solved.places))


def as_it_stands(solved: Solved) -> Solved:
    """A piece in which nothing is replaced."""
    return replace(solved, winner=solved.outcome.start, gain=1.0)


def _anew(solved: Solved) -> Solved:
    """A piece that replaces itself."""
    start = solved.outcome.start
    steps = tuple(Applied(NAME, "definition", (), term, term) for term in start.graph.outputs)
    return replace(solved, winner=Found(start.graph, start.cost, steps, measured=True), gain=_TO_BE_MEASURED)


def measured_beside(
    cover: Sequence[Solved], more: Sequence[Solved], trial: Trial, memory: Memory | None, share: float = MEASURED_SHARE
) -> Paired | None:
    """What the model with one cover takes beside that with another; None where that is not to be known.

    What was measured is remembered, whatever it says: the winner is measured again, and a loser is none later.
    """
    program = trial.program
    one, other = placed(program, cover), placed(program, more)
    base, model = trial.folder / "base.onnx", trial.folder / "anew.onnx"
    try:
        with gone_after(base, model):
            if one or program.otherwise or hidden_constants(program):
                written(program, together(program, one), base)
            else:
                base = trial.working
            written(program, together(program, other), model)
            program.release_weights()
            asked = question(memory, (base, model), NAME, trial.settings[0], trial.sample) if memory else None
            known = asked.recall() if asked else None
            trial.progress("measure what is written anew", 0.0)
            found = known.pairs[0] if known else measured_briefly(base, model, trial, share * trial.left)
            if asked and not known:
                asked.keep(Judgement(0, (found,), now()), open_too=True)
    except (OutOfTime, RuntimeFailed, SuperoptError):
        return None
    return found


def measured_briefly(base: Path, model: Path, trial: Trial, most_s: float) -> Paired:
    """Two models in turns, in a few sessions: to choose by, not to claim. Raises `OutOfTime` where they would take more
    than so many seconds, and `RuntimeFailed`.
    """
    budget_s = min(most_s, MEASURED_S)
    return compare(base, model, trial.harness(0), sessions=LEAST_SESSIONS, budget_s=budget_s, most_s=most_s)
