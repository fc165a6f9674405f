"""What a model that is written in another way gains at first sight, before it is searched."""

from __future__ import annotations

import math
from dataclasses import replace
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
    path = trial.folder / f"{trial.original.stem}-{name}.onnx"
    save(found.model, path, external_data=True, shared=True)
    ratio = math.inf
    if trial.way is None:
        before = trial.wide or trial.working
        if trial.program.otherwise:
            before = trial.folder / f"{trial.original.stem}-otherwise.onnx"
            save(trial.program.model, before, external_data=True, shared=True)
        try:
            ratio = glance(before, path, trial.harness(0), GLANCE_S, most_s=SEEN_SHARE * trial.left)
        except (RuntimeFailed, OutOfTime):  # it does not run, or takes too long to be seen
            return None
    if ratio < least:
        return None
    return Seen(replace(trial, program=found, branched=True), ratio)
