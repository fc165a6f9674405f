"""Whether the runtime runs the original, at all sizes and on all samples, and in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from superopt.cost.child import Unending
from superopt.errors import OutOfTime, RuntimeFailed, UsageError
from superopt.search.accepting.judge import advice
from superopt.search.accepting.runs import run_on, run_once
from superopt.search.accepting.trial import Trial


def demand_runs(trial: Trial) -> None:
    """Raise `UsageError` where the runtime runs nothing here, or the original does not run at sizes asked for, or on a
    sample; and `RuntimeFailed` where the runtime runs other models, and not the original.
    """
    runtime, call, longest_s = trial.bench.runtime, trial.bench.child.call, trial.longest
    standard = runtime.standard

    def run(how: Callable[..., None], *given: Any) -> None:
        try:
            call(longest_s, how, *given)
        except Unending as error:  # it is told what in the model may never end
            raise OutOfTime(f"the model is not run once in time: {error}{advice(error, trial.program)}") from None

    for number, sample in enumerate(trial.inputs, start=1):
        try:
            run(run_on, standard, trial.working, sample)
        except RuntimeFailed as error:
            raise UsageError(f"inputs: the model does not run on sample {number}: {error}") from None
    if standard != runtime:  # the standard itself comes with superopt
        try:
            if trial.inputs:
                run(run_on, runtime, trial.working, trial.inputs[0], True)
            else:
                run(run_once, runtime, trial.working, trial.settings[0].draw(), True)
        except RuntimeFailed as error:
            trial.cost.alone.demand_runs()
            raise RuntimeFailed(f"runtime {runtime.key.runtime} cannot run the model: {error}") from None
    for setting in trial.settings:
        if not setting.shapes or (setting.likely and setting == trial.settings[0]):
            continue  # at the likely ones it was run already
        try:
            run(run_once, standard, trial.working, setting.draw())
        except RuntimeFailed as error:
            raise UsageError(f"shape: the model does not run at {setting}: {error}") from None
