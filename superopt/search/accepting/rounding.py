"""What to leave out of a candidate that rounds more than it may: pieces that do so, each alone in the whole model."""

from __future__ import annotations

import time
from collections.abc import Sequence

from superopt.errors import OutOfTime, SuperoptError
from superopt.onnx_io import gone_after
from superopt.search.accepting.anew import as_it_stands, placed
from superopt.search.accepting.compared import compared
from superopt.search.accepting.fed import DRAWS
from superopt.search.accepting.judge import together, written
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.strategies.found import Solved


def without_rounding(tried: Attempt, trial: Trial, end: float) -> list[Solved] | None:
    """The places of a candidate, with those as they stand that alone make the whole model round more than it may; None
    where nothing is left then, or there is no time until `end`, one of `time.monotonic`, to tell.

    Halves are looked at before pieces, so that one of many is found by twice the logarithm of their number.
    """
    winners = [s for s in tried.cover if s.gain > 1.0]
    try:
        guilty = _guilty(winners, trial, end)
    except OutOfTime:
        return None
    if len(guilty) in (0, len(winners)):  # or each half agrees alone
        return None
    ids = set(map(id, guilty))
    return [as_it_stands(s) if id(s) in ids else s for s in tried.cover]


def _guilty(pieces: Sequence[Solved], trial: Trial, end: float) -> list[Solved]:
    """Those of pieces that do not agree together that do not alone either. Raises `OutOfTime` where there is no time to
    tell.
    """
    if len(pieces) == 1:
        return list(pieces)
    found = list[Solved]()
    for half in (pieces[: len(pieces) // 2], pieces[len(pieces) // 2 :]):
        if time.monotonic() >= end:
            raise OutOfTime("no time is left to tell which pieces round more than they may")
        if not _agrees(half, trial):
            found += _guilty(half, trial, end)
    return found


def _agrees(pieces: Sequence[Solved], trial: Trial) -> bool:
    """Whether the model with these pieces replaced alone is the same. Raises `OutOfTime`."""
    trial.progress("compare pieces", 0.0)
    path, program = trial.folder / "half.onnx", trial.program
    try:
        with gone_after(path):
            whole = together(program, placed(program, pieces))
            written(program, whole, path)
            program.release_weights()
            return compared(trial, path, whole, trial.seed, DRAWS).agrees
    except OutOfTime:
        raise
    except SuperoptError:  # it cannot be written alone
        return False
