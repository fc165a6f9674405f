"""The model with rows of its batch computed one after the other, if it is no slower so at first sight."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from superopt.errors import OutOfTime, RuntimeFailed
from superopt.onnx_io import row_by_row, save, understand
from superopt.search.accepting.trial import Trial
from superopt.search.paired import glance

GLANCE_S, SEEN_SHARE = 1.0, 0.2
"""The seconds that the first sight may take, and the part of the time that is left which is more than it can take."""

LEAST_RATIO = 1.0
"""How many times faster it has to be by that: what gains nothing by itself mostly gains nothing more of single rows."""


class Turned(NamedTuple):
    """The trial of a model with rows of its batch computed one after the other, and how many times faster that is at
    first sight; infinite where it is not looked at, as a report says so.
    """

    trial: Trial
    ratio: float


def turning(trial: Trial) -> Turned | None:
    """The model with rows of its batch computed one after the other; None where there is no batch, or they take longer
    than all at once, and of branches, of which reports do not say it.
    """
    may_be = trial.objective.by_rows and not trial.is_branch
    found = row_by_row(trial.program, trial.bench.sizes) if may_be else None
    if found is None:
        return None
    path = trial.folder / f"{trial.original.stem}-rows.onnx"
    save(found, path, external_data=True, shared=True)
    ratio = _ratio(trial, path) if trial.way is None else math.inf
    if ratio < LEAST_RATIO:
        return None
    return Turned(replace(trial, program=understand(found, plainly=True), branched=True), ratio)


def _ratio(trial: Trial, path: Path) -> float:
    """How many times faster a model is at first sight than that of the trial's program, with rows all at once; 0 where
    it does not run, or takes too long to be seen.
    """
    before = trial.wide or trial.working
    if trial.program.otherwise:
        before = trial.folder / f"{trial.original.stem}-otherwise.onnx"
        save(trial.program.model, before, external_data=True, shared=True)
    try:
        return glance(
            before,
            path,
            trial.bench.runtime,
            budget_s=GLANCE_S,
            draw=trial.measured_on(0),
            caller=trial.bench.child,
            most_s=SEEN_SHARE * trial.left,
            one_by_one=trial.one_by_one,
        )
    except (RuntimeFailed, OutOfTime):
        return 0.0
