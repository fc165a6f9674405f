"""The model with a floor below masked scores that a softmax is of, if it is clearly faster so at first sight."""

from __future__ import annotations

from superopt.onnx_io import floored, understand
from superopt.search.accepting.trial import Trial
from superopt.search.sight import Seen, seen

LEAST_RATIO = 1.02
"""How many times faster it has to be by that: a floor costs as much as a softmax of what is not masked, and more than
it saves where the processor is as fast with numbers that underflow.
"""


def flooring(trial: Trial) -> Seen | None:
    """The model with such floors; None where nothing is masked or that is no slower, and of branches, of which reports
    do not say it.
    """
    may_be = trial.objective.better == "faster" and not trial.is_branch
    found = floored(trial.program, bool(trial.inputs)) if may_be else None
    if found is None and may_be and trial.way == "floored":  # inputs were given then
        found = floored(trial.program, True)
    return None if found is None else seen(trial, understand(found, plainly=True), "floored", LEAST_RATIO)
