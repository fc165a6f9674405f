"""What a model that is written in another way gains at first sight, before it is searched."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from superopt.errors import OutOfTime, RuntimeFailed
from superopt.onnx_io import Program, save
from superopt.search.accepting.trial import Trial
from superopt.search.paired import glance

GLANCE_S, SEEN_SHARE = 1.0, 0.2
"""The seconds that the first sight may take, and the part of the time that is left which is more than it can take."""


class Seen(NamedTuple):
    """The trial of a model that is written in another way, and how many times faster that is at first sight; infinite
    where it is not looked at, as a report says so.
    """

    trial: Trial
    ratio: float


def seen(trial: Trial, found: Program, name: str, least: float) -> Seen | None:
    """A model written in the way of this name, where it is so many times faster by itself, or a report says so."""
    path, ratio = _saved(trial, found, name), math.inf
    if trial.way is None:
        before = _saved(trial, trial.program, "otherwise") if trial.program.otherwise else as_given(trial)
        try:
            ratio = looked_at(trial, before, path)
        except (RuntimeFailed, OutOfTime):  # it does not run, or takes too long to be seen
            return None
    if ratio < least:
        return None
    return Seen(replace(trial, program=found, branched=True), ratio)


def as_given(trial: Trial) -> Path:
    """Where the model lies that the trial's program was read of."""
    return trial.wide or trial.working


def at_first_sight(trial: Trial, found: Program) -> float:
    """How many times faster than its model as it is given a program is by itself. Raises what `looked_at` does."""
    return looked_at(trial, as_given(trial), _saved(trial, found, "otherwise"))


def looked_at(trial: Trial, before: Path, path: Path) -> float:
    """How many times faster than the one model the other is. Raises `OutOfTime` where that would take too long, and
    `RuntimeFailed`.
    """
    return glance(before, path, trial.harness(0), GLANCE_S, most_s=SEEN_SHARE * trial.left)


def _saved(trial: Trial, program: Program, name: str) -> Path:
    path = trial.folder / f"{trial.original.stem}-{name}.onnx"
    save(program.model, path, external_data=True, shared=True)
    return path
