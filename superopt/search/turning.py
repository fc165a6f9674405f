"""The model with rows of its batch computed one after the other, if it is no slower so at first sight."""

from __future__ import annotations

from superopt.onnx_io import row_by_row, understand
from superopt.search.accepting.trial import Trial
from superopt.search.sight import Seen, seen

LEAST_RATIO = 1.0
"""How many times faster it has to be by that: what gains nothing by itself mostly gains nothing more of single rows."""


def turning(trial: Trial) -> Seen | None:
    """The model with rows of its batch computed one after the other; None where there is no batch, or they take longer
    than all at once, and of branches, of which reports do not say it.
    """
    may_be = trial.objective.by_rows and not trial.is_branch
    found = row_by_row(trial.program, trial.bench.sizes) if may_be else None
    return None if found is None else seen(trial, understand(found, plainly=True), "rows", LEAST_RATIO)
