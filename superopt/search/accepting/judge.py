"""Whether a candidate is the answer: written, compared with the original, and measured beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from superopt.cost.child import UNENDING
from superopt.errors import InvalidModel, OutOfTime, RuntimeFailed, SuperoptError, VerificationFailed
from superopt.onnx_io import Program, check, hidden_constants, rewritten, save
from superopt.search.accepting.agreement import Agreement
from superopt.search.accepting.compared import compared
from superopt.search.accepting.fed import DRAWS
from superopt.search.accepting.judgement import Judgement, Question, now, question
from superopt.search.accepting.labels import with_named
from superopt.search.accepting.trial import LATEST, Attempt, Trial
from superopt.search.paired import Paired, compare, faster, latency, loses, mean_s, measuring_s
from superopt.search.replay import Placement
from superopt.search.solving.remembered import Memory
from superopt.search.strategies.found import taken_as_they_stand
from superopt.term import Term

_NO_ROOM = ("bad_alloc", "llocate memory")
"""What onnxruntime says where memory is lacking."""


LARGE, PLAIN_GAIN = 2**28, 1.2
"""A model of so many bytes is measured one session at a time where so much is expected to be gained: ratios are as
right, but intervals of large weights up to four times as wide.
"""


class Unusable(VerificationFailed):
    """What was found is refused by ONNX's own check once it is written, or the runtime does not run it: our doing, or
    the runtime's, but nothing that differs.
    """


class Rounding(VerificationFailed):
    """What was found differs by what rounding may explain, and more than is allowed."""


def judged(tried: Attempt, trial: Trial, found: Sequence[Placement], memory: Memory | None = None) -> Attempt:
    """Write the model with its pieces replaced, compare it with the original, and measure both.

    Where the memory holds what the same two files came to, they are compared on fewer inputs, and not measured again.
    """
    program = trial.program
    trial.progress("write", 0.0)
    try:
        all_placed = together(program, found)
        tried.candidate = written(program, all_placed, trial.folder / "candidate.onnx")
    except VerificationFailed:
        raise
    except SuperoptError as error:
        return original(tried, trial, f"what was found cannot be written: {error}")
    program.release_weights()
    trial.progress("compare", 0.0)
    asked = (
        question(memory, (trial.working, tried.candidate), trial.seed, trial.settings, trial.sample) if memory else None
    )
    try:
        tried.agreement, tried.earlier = _agreement(tried, trial, tried.candidate, all_placed, asked)
    except RuntimeFailed as error:
        return original(tried, trial, f"nothing could be compared: {error}{advice(error, program)}")
    except OutOfTime as error:
        return original(tried, trial, f"{error}; allow more with --time")
    late = f"{trial.limit:.0f} s passed before a candidate could be measured; allow more with --time"
    if not tried.agreement.examined and not tried.agreement.differs:
        if not trial.left:
            return original(tried, trial, late)
        why = tried.agreement.reason
        return original(tried, trial, f"nothing could be compared: {why}; give inputs on which the outputs differ")
    if tried.agreement.differs:
        if asked:
            asked.forget()
        if not tried.agreement.ran:
            raise Unusable(f"{tried.agreement.reason}; nothing was written")
        kind = Rounding if tried.agreement.rounds else VerificationFailed
        raise kind(f"the optimized model differs from the original: {tried.agreement.reason}; nothing was written")
    if not trial.left and not tried.earlier:
        return original(tried, trial, late)
    program.release_weights()  # two sessions are alive from here on, each with weights of its own
    _measure(tried, trial, tried.candidate)
    if asked and tried.pairs and not tried.earlier:
        pairs = tuple(pair for _, pair in tried.pairs)
        asked.keep(Judgement(tried.agreement.samples, pairs, now(), weighed=tried.weighed is not None))
    return tried


def advice(error: SuperoptError, program: Program) -> str:
    """What to do about a model that did not end: which of its nodes may go round for ever, if any does."""
    if UNENDING not in str(error):
        return ""
    turns = [f"{n.op_type} {n.name or n.outputs[0].name}" for n in program.model.graph if n.op_type in ("Loop", "Scan")]
    return f"; what may never end in it is {', '.join(turns)}" if turns else "; allow more with --time"


def _agreement(
    tried: Attempt, trial: Trial, candidate: Path, placed: Placement, asked: Question | None
) -> tuple[Agreement, Judgement | None]:
    """How a candidate compares with the original, and the judgement that it came to before, if that still holds: else
    it is to be measured, and time is kept for that.
    """
    earlier = asked.recall() if asked else None
    if earlier:
        few, other = DRAWS[: len(trial.settings)], trial.seed + len(DRAWS)  # not on what it was compared on before
        found = compared(trial, candidate, placed, other, few)
        if found.agrees and found.examined:
            return found, earlier
    return compared(replace(trial, kept_s=_expected_s(tried, trial)), candidate, placed, trial.seed, DRAWS), None


def _expected_s(tried: Attempt, trial: Trial) -> float:
    """The seconds that measuring a candidate should take in all settings, by what the pieces of the original cost."""
    inference_s = mean_s(trial.once.running_s, trial.objective.seconds([taken_as_they_stand(tried.cover)]))
    return len(trial.settings) * measuring_s(inference_s, trial.once.loading_s)


def _measure(tried: Attempt, trial: Trial, candidate: Path) -> None:
    """Whether the candidate is faster in the first setting, or takes less; and in none of the others slower."""
    tried.accepted, tried.pairs = False, []  # somebody may have interrupted it before
    try:
        _weigh_and_pair(tried, trial, candidate)
    except OutOfTime as error:
        tried.accepted = False
        tried.reason = f"{error}, and {trial.left:.0f} s were left; allow more with --time"
    except RuntimeFailed as error:  # on random inputs, where those that it was compared on may be the user's own
        if _lacks_room(error):
            raise
        tried.accepted, tried.reason = False, f"it could not be measured: {error}"


def _weigh_and_pair(tried: Attempt, trial: Trial, candidate: Path) -> None:
    tried.weighed = trial.objective.weigh(trial.program, trial.working, candidate, trial.settings[0], trial.longest)
    if tried.weighed and not tried.weighed.is_less:
        tried.reason = "the whole model takes no less"
        return
    known = tried.earlier.pairs if tried.earlier else ()
    for number, setting in enumerate(trial.settings):
        there = known[number] if number < len(known) else _paired(tried, trial, candidate, number)
        tried.pairs.append((setting, there))
        tried.accepted = not loses(there) if number or tried.weighed else faster(there)
        if not tried.accepted:
            tried.reason = _refusal(f" at {setting}" if number else "", number > 0 or tried.weighed is not None)
            return
    tried.reason = "confirmed in fresh sessions"
    if tried.candidates > 1:
        tried.reason += ", without pieces that gain nothing in the whole model"


def _is_plain(tried: Attempt, trial: Trial) -> bool:
    """Whether so much is expected to be gained that wide intervals tell of it."""
    return bool(tried.cover) and tried.expected_gain(trial.objective.total) >= PLAIN_GAIN


def _refusal(where: str, slower: bool) -> str:
    return f"it is slower{where}" if slower else "the gain was not confirmed in fresh sessions"


def _paired(tried: Attempt, trial: Trial, candidate: Path, number: int) -> Paired:
    """Both models in one of the settings, each of which has its share of the time."""
    one_by_one = trial.one_by_one or (trial.bytes >= LARGE and _is_plain(tried, trial))
    return compare(
        trial.working,
        candidate,
        replace(trial.harness(number), one_by_one=one_by_one),
        budget_s=0.9 * trial.left / (len(trial.settings) - number),
        most_s=trial.left + LATEST * trial.limit,
        progress=lambda done, all_: trial.progress("measure", done / all_),
        asked=tried.candidates,
    )


def original(tried: Attempt, trial: Trial, reason: str) -> Attempt:
    """The attempt where the original is the answer: measured, unless the runtime does not run it, or no time is left.

    Raises `RuntimeFailed` for want of memory: that says nothing about the model.
    """
    tried.reason, cost = reason, trial.cost
    if not trial.left or trial.is_branch or UNENDING in reason:
        return tried
    try:
        budget_s, most_s = min(0.3 * trial.left, 2.0), trial.left + LATEST * trial.limit
        tried.alone = latency(trial.working, trial.harness(0), budget_s, most_s)
    except OutOfTime as error:
        tried.reason += f"; it could not be measured: {error}{advice(error, trial.program)}"
    except RuntimeFailed as error:
        if _lacks_room(error):
            raise
        if str(error) not in reason:
            tried.reason += f"; it could not be measured: {error}{advice(error, trial.program)}"
        if cost.alone.deadly:
            tried.reason += f"; so does this alone: {cost.alone.deadly[0]}"
    return tried


def _lacks_room(error: RuntimeFailed) -> bool:
    """Whether a model failed for want of memory: that says nothing about it."""
    return any(sign in str(error) for sign in _NO_ROOM)


def together(program: Program, found: Sequence[Placement]) -> Placement:
    """All pieces replaced at once, and hidden constants as weights."""
    hidden = hidden_constants(program)
    new, origins = dict(hidden), dict[Term, str]()
    for placed in found:
        new |= placed.new
        origins |= {term: name for term, name in placed.origins.items() if name not in hidden}
    return with_named(program, Placement(new, origins))


def written(program: Program, placed: Placement, path: Path) -> Path:
    """The model with values computed anew, saved and checked by ONNX's own checker."""
    model = rewritten(program, placed.new, placed.origins)
    try:
        check(model, "the optimized model")
        save(model, path, external_data=True, shared=True)
    except InvalidModel as error:  # our doing, not the user's
        raise Unusable(f"{error}; nothing was written") from None
    return path
