"""The model with what no turn of its loops has to wait for, or to be waited for, computed apart from them, if it
computes the same at first sight: what all share, what is of a turn's own row, and what is only given.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from superopt.errors import OutOfTime, RuntimeFailed, VerificationFailed
from superopt.onnx_io import apart, save, understand
from superopt.search.accepting.fed import DRAWS, Allowed, Fed
from superopt.search.accepting.same import examine
from superopt.search.accepting.trial import Trial

COMPARED_SHARE = 0.1
"""Of the time that is left, what the first sight may take."""


def hoisting(trial: Trial) -> Trial | None:
    """The trial of the model with what can be computed apart from its loops' turns; None where nothing can. One that
    differs is not searched for that to come out: it is run once beside the original. Raises `VerificationFailed` then,
    and whatever else can be wrong with a model.
    """
    found = apart(trial.program) if trial.objective.better == "faster" else None
    if found is None:
        return None
    path = trial.folder / f"{trial.original.stem}-apart.onnx"
    save(found, path, external_data=True, shared=True)
    if trial.wide is None and (differs := _difference(trial, path)):  # else it rounds otherwise
        raise VerificationFailed(f"it differs from the original: {differs}")
    return replace(trial, program=understand(found), branched=True)


def _difference(trial: Trial, path: Path) -> str:
    """How a model differs from the original on the first inputs; empty where it does not, or nothing is known soon."""
    try:
        found = examine(
            trial.original,
            path,
            trial.bench.runtime,
            fed=Fed(trial.inputs[:1], DRAWS[:1], trial.compared[:1], trial.seed),
            allowed=Allowed(COMPARED_SHARE * trial.left, one_by_one=trial.one_by_one),
            caller=trial.bench.child,
            working=trial.working,
        )
    except (RuntimeFailed, OutOfTime):  # of the original nothing is known either, or not yet
        return ""
    return found.reason if found.differs else ""
