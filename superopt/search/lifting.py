"""Branches of a model and bodies of its loops as models of their own, each at sizes that it runs at."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from superopt.cost.child import Ask, within
from superopt.cost.liveness import activations
from superopt.errors import SuperoptError
from superopt.onnx_io import LARGE, Branch, Choice, facts, lifted, load, opset_of, save, understand
from superopt.search.accepting.trial import Trial
from superopt.search.cutting.pieces import cut_into_pieces
from superopt.search.running import asked_of, of_a_turn, ways_of
from superopt.search.settled import PATIENCE_S, settled

MOST_BRANCHES = 8
"""So many branches are optimized, at most."""

TRYING_SHARE = 0.1
"""Of the time that is left, what finding sizes may take at which branches run."""

_LOG = logging.getLogger("superopt")


def inner_trials(trial: Trial, ways: Sequence[Choice]) -> dict[Branch, Trial]:
    """Each branch as a model that may be optimized, at sizes that it runs at."""
    every = sorted({b for _, run in ways for b in run}, key=lambda b: (b.position, b.name))
    ask = within(trial.bench.child, patience_s(trial))
    found = {}
    for number, branch in enumerate(every[:MOST_BRANCHES]):
        try:
            deciding = [given for given, run in ways if branch in run]
            inner = _lifted(trial, branch, number, deciding, ask)
        except SuperoptError as error:
            _LOG.info("%s stays as it is: %s", branch.name, error)
            continue
        if inner is not None:
            found[branch] = inner
    return found


def patience_s(trial: Trial) -> float:
    """The seconds that finding sizes may take."""
    return min(PATIENCE_S, TRYING_SHARE * trial.left)


def _lifted(trial: Trial, branch: Branch, number: int, deciding: Sequence[Mapping[str, int]], ask: Ask) -> Trial | None:
    """A branch as a model in the trial's folder; None where it cannot be one, or nothing of it is understood."""
    model = lifted(trial.program, branch)
    if model is None:
        return None
    path, size = trial.folder / f"{name_of(trial, number)}.onnx", facts(model).bytes
    save(model, path, external_data=size > LARGE or None, shared=True)
    program = understand(load(path))
    if not (cut_into_pieces(program) or ways_of(program)):
        return None
    asked = of_a_turn(trial, program) if branch.is_body else asked_of(trial, deciding, program)
    found = settled(program, path, asked, trial.bench.runtime.standard, ask, trial.folder)
    highest = opset_of(program.model)  # the whole model has one
    return replace(
        trial.of(program, found.sizes, size, activations(program, found.sizes), highest),
        original=path,
        working=path,
        inputs=(),
        settings=found.settings,
        asked=asked,
        branched=False,
        is_branch=True,
        wide=None,
        way=None,
    )


def name_of(trial: Trial, number: int) -> str:
    """What files of a branch are called: others than those of branches within it."""
    return f"{trial.original.stem}-{number}" if trial.is_branch else f"branch-{number}"
