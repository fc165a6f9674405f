"""The search of a model piece by piece, in shares of its time limit."""

from __future__ import annotations

import time
from dataclasses import replace

from superopt.search.accepting.runs import Once
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.solving.across import solve_joined
from superopt.search.solving.cuttings import Cuttings
from superopt.search.solving.joined import JOINED_LEAST, JOINED_SHARE, begun_of, solved_as_pieces
from superopt.search.solving.plan import Times
from superopt.search.solving.schedule import scheduled
from superopt.search.solving.searching import Search, kept
from superopt.search.solving.solve import solve

SEARCH_SHARE, ONCE_SHARE, ONCE_MOST, SEARCH_MOST, SEARCH_PATIENT = 0.45, 0.15, 0.2, 0.23, 0.6
"""Of what reading leaves of the time limit, what the search may take with its first kernels timed; what it may without
these, and at most so where timing them takes long; with pieces whose time was over searched again; and so where nothing
is gained before that. The rest is for comparing and measuring whole models.
"""

CHOOSING_MOST = 0.65
"""What the search may take with pieces searched again where sessions choose algorithms; searching them once may take
the first of the shares above there.
"""


def searched(tried: Attempt, trial: Trial, cut: Cuttings, search: Search) -> None:
    """Solve the pieces, then those that are joined of them in a share of that time, and choose among their places."""
    start, chooses = time.monotonic(), trial.bench.runtime.chooses_algorithms
    once = (SEARCH_SHARE, SEARCH_SHARE) if chooses else (ONCE_SHARE, ONCE_MOST)
    most = CHOOSING_MOST if chooses else SEARCH_MOST
    latest, patient = (start + share * trial.left for share in (most, max(most, SEARCH_PATIENT)))
    least_s, most_s = (share * trial.left for share in once)
    loading_s, original_s = Once() if cut.all_known else trial.once
    times = Times(
        trial.end,
        latest,
        patient,
        len(trial.settings),
        least_s,
        most_s,
        loading_s,
        trial.writing_s,
        JOINED_SHARE if cut.joined else 0.0,
        original_s,
    )
    tried.solved = solve(cut.groups, cut.known, search, times, trial.progress) if cut.pieces else []
    known = cut.known_joined | solved_as_pieces(cut.joined, cut.groups, tried.solved)
    begun = begun_of(cut.joined, tried.solved, trial.program.values)
    now = time.monotonic()
    allowed_s = max(JOINED_SHARE * (now - start), JOINED_LEAST * trial.limit)
    deadline = min(now + allowed_s, trial.bench.deadline)
    search = replace(search, memory=search.memory and search.memory.of_joined)
    tried.joined = solve_joined(cut.joined, known, begun, search, deadline, trial.progress)
    tried.interrupted = search.stopped
    if search.stopped:
        kept([*tried.solved, *tried.joined])
    tried.cover = scheduled(tried.solved, tried.joined)
