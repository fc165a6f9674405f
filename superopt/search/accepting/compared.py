"""Candidates compared with their original: by outputs, and where these show little by what is computed on the way.

A detector finds nothing in random numbers: whatever stands before its last steps, its outputs are empty. Those steps
are the original's own in the candidate, so what was rewritten is compared itself. Nor does a softmax tell much that
gives 1 for the same class whatever comes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from superopt.cost.inputs import Draw, Feeds
from superopt.errors import OutOfTime, SuperoptError
from superopt.onnx_io import (
    Program,
    changed_values,
    gone_after,
    is_loop,
    is_rounding,
    load,
    opset_of,
    outdated,
    save_showing,
)
from superopt.search.accepting.agreement import Agreement, joined
from superopt.search.accepting.fed import Allowed, Fed
from superopt.search.accepting.own import Own
from superopt.search.accepting.reference import reference_of
from superopt.search.accepting.same import examine
from superopt.search.accepting.still import Still
from superopt.search.accepting.trial import Trial
from superopt.search.replay import Placement
from superopt.term import Term, Type

WAITING_SHARE = 0.5
"""Of the time that is left so much may pass until values in 64 bits are there, or less where measuring takes more than
the rest: then those count that are there when the models have run.
"""

ROUNDED_DRAWS = 2
"""On so many inputs a candidate is compared with an original of 16 bits that was compared in 32 bits before."""

_LITTLE = "an output hardly varies, and what stands before it could not be compared by itself"

Between = Callable[[Path, Path, Sequence[str]], Agreement]
"""Compares two models that lie in files; their outputs are these values of the program."""


def compared(trial: Trial, candidate: Path, placed: Placement, seed: int, draws: Sequence[Draw]) -> Agreement:
    """How a candidate, in which this was placed, compares with the original on the inputs given and drawn, with each
    choice of the branches that run. Raises `RuntimeFailed` and `OutOfTime`.
    """
    return joined([_compared(choice, candidate, placed, seed, draws) for choice in trial.choices])


def _compared(trial: Trial, candidate: Path, placed: Placement, seed: int, draws: Sequence[Draw]) -> Agreement:
    """`compared` with one choice."""
    still = Still(trial.program)
    never_change = all(map(still.holds, trial.program.outputs))
    shown = draws[: len(trial.compared)] if never_change else draws  # the others would show the same
    before = None if trial.wide is None else _before_rounding(trial, candidate, seed, draws)
    if before is not None and before.differs:
        return _told_by_numbers(before, trial, candidate, placed, seed, draws) if before.discrete else before
    models = (trial.original, candidate, trial.working)
    few = shown if before is None else shown[: max(len(trial.compared), ROUNDED_DRAWS)]
    found = _examined(trial, models, (), seed, few, told=before is None)
    if before is not None and found.differs:
        found = _examined(trial, models, (), seed, shown)
    elif before is not None:
        found = _told_before(found, before)
    is_sure = before is None or before.examined
    if found.discrete:
        return _told_by_numbers(found, trial, candidate, placed, seed, draws)
    if found.differs or (is_sure and found.examined and not found.shows_little):
        return found
    if trial.branched:  # what was rewritten in a branch is not seen here
        return _told_by_branches(found, trial.program, placed) or replace(found, reason=found.reason or _LITTLE)
    own = Own(trial.program, placed, _anew(trial.program, candidate))
    told = _told(found, [o.name for o in found.outputs if o.saturated or not o.examined], own)
    if told or not trial.left:  # what is compared after the time is never measured
        return told or found
    return _within(trial, candidate, placed, own, found, still, seed, draws)


def _told_by_numbers(
    found: Agreement, trial: Trial, candidate: Path, placed: Placement, seed: int, draws: Sequence[Draw]
) -> Agreement:
    """What outputs that differ, of no floating-point type, come to: of rounding, where what was rewritten agrees."""
    types = rewritten_values(trial.program, placed, candidate)
    inner = _compared_within(types, trial, candidate, _between(trial, seed, draws)) if trial.left else None
    if inner is None or not (inner.agrees and inner.examined):
        return found
    return replace(found, rounds=True, reason=f"{found.reason}; what decides it agrees but for rounding")


def _told_before(rounded: Agreement, before: Agreement) -> Agreement:
    """What outputs of 16 bits come to, with what in 64 bits told of them before they were rounded."""
    both = zip(rounded.outputs, before.outputs, strict=False)
    outputs = [replace(r, original_error=b.original_error, candidate_error=b.candidate_error) for r, b in both]
    return replace(rounded, outputs=tuple(outputs)) if len(outputs) == len(rounded.outputs) else rounded


def _before_rounding(trial: Trial, candidate: Path, seed: int, draws: Sequence[Draw]) -> Agreement:
    """How a candidate compares with the program itself, where this computes in 32 bits what the original does in 16, at
    what outputs are rounded from: wrong by less than that rounding is wrong too. It does not agree where these could
    not be compared.
    """
    made = {name: step for step in trial.program.steps for name in step.outputs}
    rounded = {
        name: made[name].inputs[0] for name in trial.program.outputs if name in made and is_rounding(made[name].node)
    }
    names = [rounded.get(name, name) for name in trial.program.outputs]
    types = {name: trial.program.values[name].type for name in names if name in trial.program.values}
    found = _compared_within(types, trial, candidate, _between(trial, seed, draws))
    return found or Agreement(False, True, "its outputs could not be compared in 32 bits", 0, ())


def _between(trial: Trial, seed: int, draws: Sequence[Draw]) -> Between:
    own = trial if trial.wide is None else replace(trial, inputs=[_in_32_bits(sample) for sample in trial.inputs])

    def between(original: Path, other: Path, names: Sequence[str]) -> Agreement:
        return _examined(own, (original, other, original), names, seed, draws)

    return between


def _in_32_bits(sample: Feeds) -> Feeds:
    return {name: array.astype(np.float32) if array.dtype == np.float16 else array for name, array in sample.items()}


def _told_by_branches(found: Agreement, program: Program, placed: Placement) -> Agreement | None:
    """What outputs that agree come to where those that show nothing are what a branch gives, as it stands: each branch
    was compared by itself when it was a model. None where they are not.
    """
    holders = [step for step in program.steps if step.node.op_type == "If" or is_loop(step.node)]
    given = {name for step in holders for name in step.outputs}.difference(placed.new)
    silent = {o.name for o in found.outputs if not o.examined}
    if not found.agrees or not silent < {o.name for o in found.outputs} or not silent <= given:
        return None
    return replace(found, examined=True, reason=found.reason or _LITTLE)


def _told(found: Agreement, silent: Sequence[str], own: Own) -> Agreement | None:
    """What values that agree come to where those that show nothing are made of the others by the original's own steps,
    and are equal as well; None where that is not so.
    """
    told = {o.name for o in found.outputs}.difference(silent)
    if not told or not silent or not found.agrees or not all(own.is_made_of(name, told) for name in silent):
        return None
    shown = ", ".join(f'"{name}"' for name in silent)
    why = f"{shown}: little is seen of it, but it is made as in the original of what was compared"
    return replace(found, examined=True, reason=why)


def _examined(
    trial: Trial,
    models: tuple[Path, Path, Path],
    names: Sequence[str],
    seed: int,
    draws: Sequence[Draw],
    told: bool = True,
) -> Agreement:
    """How the second of these models compares with the first, whose outputs are inner values of these names, if any;
    the third is the first as it loads sooner. Values in 64 bits are computed where they are to be `told`.
    """
    original, candidate, working = models
    kept_s = 0.0 if trial.one_by_one else trial.kept_s  # else none of them would be there, as they come after the runs
    until = min(time.monotonic() + WAITING_SHARE * trial.left, trial.end - kept_s)
    return examine(
        original,
        candidate,
        trial.bench.runtime,
        reference_of(trial.program, names) if told else None,
        Fed(trial.inputs, draws, trial.compared, seed),
        allowed=Allowed(trial.longest, until, trial.one_by_one),
        caller=trial.bench.child,
        working=working,
        overflowing=trial.wide is not None and not names,
    )


def _within(
    trial: Trial,
    candidate: Path,
    placed: Placement,
    own: Own,
    outside: Agreement,
    still: Still,
    seed: int,
    draws: Sequence[Draw],
) -> Agreement:
    """How a candidate whose outputs show little compares at the values that were rewritten, if all of those show
    something that may do so, or are made of those that do; otherwise what the outputs say.
    """
    between = _between(trial, seed, draws)
    types = {n: t for n, t in rewritten_values(trial.program, placed, candidate).items() if not still.holds(n)}
    found = _compared_within(types, trial, candidate, between)
    if found and found.differs and placed.supposed:
        known = {n: t for n, t in types.items() if n not in placed.supposed}
        found = _compared_within(known, trial, candidate, between)
    found = found and (_told(found, [o.name for o in found.outputs if not o.examined], own) or found)
    if found is None or not (found.examined or found.differs):
        return replace(outside, reason=outside.reason or _LITTLE)
    return replace(found, reason=found.reason or outside.reason)


def rewritten_values(program: Program, placed: Placement, candidate: Path) -> dict[str, Type]:
    """What a candidate computes otherwise than the original, by name: what was replaced, and what is written in another
    form since its opset is newer. Nothing where weights are among that: whether these are right shows in outputs only.
    """
    terms = changed_values(program, placed.new, placed.origins) | dict(_anew(program, candidate))
    return {} if any(t.constant for t in terms.values()) else {n: program.values[n].type for n in sorted(terms)}


def _anew(program: Program, candidate: Path) -> Mapping[str, Term]:
    """The values that are written in another form since the candidate's opset is newer, and their terms."""
    opset = opset_of(load(candidate))
    return outdated(program, opset) if opset > opset_of(program.model) else {}


def _compared_within(types: Mapping[str, Type], trial: Trial, candidate: Path, between: Between) -> Agreement | None:
    """How a candidate compares at inner values of the program with these names, those that are in both; None where
    there are none, or they cannot be shown. What is made for that goes into the folder, and is gone afterwards.
    """
    shown, wide = (trial.folder / "inner-original.onnx", trial.folder / "inner-candidate.onnx"), trial.wide is not None
    try:
        with gone_after(*shown):
            theirs = save_showing(candidate, shown[1], types, types, wide)
            if not theirs or save_showing(trial.wide or trial.working, shown[0], theirs, types, wide) != theirs:
                return None
            return replace(between(*shown, theirs), inner=True)
    except OutOfTime:
        raise
    except SuperoptError:
        return None
