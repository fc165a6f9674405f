"""Branches of a model and bodies of its loops optimized one by one, each as a model of its own, and put in again.

Which branch runs is decided by inputs, so the whole model is compared and measured with each choice of
these: no branch is changed that was not run. A body is a branch that always runs.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from superopt.errors import SuperoptError, VerificationFailed
from superopt.onnx_io import (
    Branch,
    Program,
    bodies,
    load,
    spliced,
    understand,
)
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.lifting import inner_trials, name_of, patience_s
from superopt.search.running import Run, reachable_of, ways_of

SHARE = 0.7
"""Of the time that is left, what optimizing branches may take."""

_LOG = logging.getLogger("superopt")

Solve = Callable[[Trial, float], Attempt]
"""Optimizes a model, or applies again what was found, where what ran out of time counts as searched within this part of
the time that there is; raises `SuperoptError`.
"""

Optimize = Callable[[Trial, Solve], tuple[Trial, Attempt]]
"""Optimizes a model in all ways, and tells of which trial that is."""


@dataclass(frozen=True)
class _Found:
    """What a branch came to: a model that is better than it, in a file."""

    trial: Trial
    tried: Attempt
    model: Path


def attempted(trial: Trial, solve: Solve, optimize: Optimize) -> tuple[Trial, Attempt]:
    """What optimizing a model comes to with what is better for its branches in it, each optimized by itself, if that is
    better; else without, also where nothing can be said of that. And the trial of which it tells. Raises what `solve`
    does.
    """
    ways = ways_of(trial.program, trial.inputs) if trial.objective.better == "faster" else []
    inner = inner_trials(trial, ways)
    reachable = reachable_of(trial, inner, ways, patience_s(trial)) if inner else []
    reached = {branch for choice in reachable for branch in choice.branches}
    found, refused = _optimized(trial, {b: t for b, t in inner.items() if b in reached}, solve, optimize)
    while found:
        changed = _changed(trial, found, reachable)
        try:
            tried = solve(changed, 1.0)
        except VerificationFailed as error:
            _LOG.warning("with other branches, %s", error)
            refused = str(error)
            break
        if tried.accepted:
            tried.branches = [one for f in found.values() for one in ((f.trial.program, f.tried), *f.tried.branches)]
            return changed, tried
        if not trial.left:
            return trial, tried
        refused = tried.reason
        found = _without_losing(found, tried, reachable)
    tried = solve(trial, 1.0)
    if refused and not tried.accepted:
        tried.reason += f"; and of its branches: {refused}"
    return trial, tried


def _without_losing(found: Mapping[Branch, _Found], tried: Attempt, reachable: Iterable[Run]) -> dict[Branch, _Found]:
    """What is left without the branches that ran where the candidate was measured to be no gain, or to lose; nothing
    where it was not refused for that.
    """
    lost = tried.pairs[-1][0].deciding if tried.pairs else None
    run = {b for choice in reachable if choice.settings[0].deciding == lost for b in choice.branches}
    return {b: f for b, f in found.items() if b not in run} if run.intersection(found) else {}


def _optimized(
    trial: Trial, inner: Mapping[Branch, Trial], solve: Solve, optimize: Optimize
) -> tuple[dict[Branch, _Found], str]:
    """What is better than its branch, and why the last one is not of which nothing is.

    Branches are made of the same pieces, mostly. Each is searched with what was measured for those before it, as if
    these had been allowed less time; and those of which nothing was better are tried again with what others came to.
    """
    found, refused, end = dict[Branch, _Found](), "", time.monotonic() + _share(trial, inner) * trial.left
    turns = [*inner, *inner]
    for number, branch in enumerate(turns):
        is_second = number >= len(inner)
        if branch in found or (is_second and not found) or time.monotonic() >= end:
            continue
        start, left = time.monotonic(), len(inner) - len(found) if is_second else len(inner) - number
        own = replace(inner[branch], start=start, limit=(end - start) / max(left, 1))
        try:
            own, tried = optimize(own, _in_part(solve, 1.0 if is_second else (number + 1) / len(inner)))
            if tried.accepted and tried.candidate is not None:
                kept = tried.candidate.replace(trial.folder / f"{name_of(trial, number)}-better.onnx")
                found[branch] = _Found(own, tried, kept)
        except SuperoptError as error:
            _LOG.info("%s stays as it is: %s", branch.name, error)
            refused = str(error)
            continue
        finally:
            own.program.release_weights()
        refused = refused if tried.accepted else tried.reason
        if tried.interrupted:
            break
    trial.cost.alone.measured += sum(own.cost.alone.measured for own in inner.values())
    return found, refused


def _share(trial: Trial, inner: Mapping[Branch, Trial]) -> float:
    """Of the time that is left, what optimizing branches may take; of bodies, no more than they have of all nodes."""
    if not all(branch.is_body for branch in inner):
        return SHARE
    within = sum(_nodes(own.program) for own in inner.values())
    return SHARE * within / max(within + _nodes(trial.program), 1)


def _nodes(program: Program) -> int:
    """How much a program has to be searched: what is understood, and what may be within it."""
    return program.summary.understood + len(bodies(program))


def _in_part(solve: Solve, part: float) -> Solve:
    """`solve` within a part of the time."""
    return lambda own, share: solve(own, part * share)


def _changed(trial: Trial, found: Mapping[Branch, _Found], reachable: Sequence[Run]) -> Trial:
    """The trial of the model with these branches, in each choice; that first which gains most, and before it the one
    that the user's own sample makes, where that gains.
    """

    def rank(choice: Run) -> tuple[bool, float]:
        pairs = [found[b].tried.pairs for b in choice.branches if b in found]
        gain = math.prod(p[0][1].ratio for p in pairs if p)
        return gain > 1.0 and any(map(choice.settings[0].decides_as, trial.inputs[:1])), gain

    ordered = sorted(reachable, key=rank, reverse=True)
    return replace(
        trial,
        program=understand(spliced(trial.program, {b: load(f.model) for b, f in found.items()}), plainly=True),
        settings=tuple(setting for choice in ordered for setting in choice.settings),
        branched=True,
    )
