"""What another search found, put in its places and judged."""

from __future__ import annotations

from collections.abc import Sequence

from superopt.errors import UsageError
from superopt.search.accepting.judge import judged
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.cutting.pieces import cut_into_pieces, joined_pieces
from superopt.search.deciding import changes_more
from superopt.search.replay import Fit, fits
from superopt.search.report import Solution
from superopt.search.runnable import demand_runs


def replay(trial: Trial, solutions: Sequence[Solution]) -> tuple[Attempt, list[Fit]]:
    """Put what another search found in its places, and judge that; and what fitted where. Raises as `attempt`, and
    `UsageError` where nothing of it fits this model.
    """
    demand_runs(trial)
    pieces = cut_into_pieces(trial.program)
    tried = Attempt(pieces)
    found = fits([*pieces, *joined_pieces(trial.program, pieces)], solutions)
    if not found and not trial.branched and (solutions or not changes_more(trial)):
        raise UsageError("nothing of the report fits this model: it is about another one")
    return judged(tried, trial, [fit.placement(trial.program) for fit in found]), found
