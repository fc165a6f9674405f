"""Models that gain by what is written otherwise: whether what was found in their pieces gains any more."""

from __future__ import annotations

from superopt.search.accepting.anew import as_it_stands, is_in_time, measured_beside
from superopt.search.accepting.trial import Trial
from superopt.search.solving.remembered import Memory
from superopt.search.strategies.found import Solved, expected_gain, taken_as_they_stand

MUCH = 1.1
"""What pieces are to gain by themselves that gain something in the whole model, too, whatever stands around them."""

SHARE = 0.15
"""What measuring that may take of the time that is left: whatever is found is compared and measured after it."""


def as_read_if_faster(cover: list[Solved], trial: Trial, memory: Memory | None) -> list[Solved]:
    """The cover, or none of its pieces replaced where the model, whose nodes are written otherwise, is faster so.

    That is measured where little is expected of pieces: what they gain by themselves may then be chance, or be lost
    where their images are laid out anew for the next, and the model gains by what was written otherwise all the same.
    """
    gain, all_s = expected_gain(cover, trial.objective.total), taken_as_they_stand(cover)
    if not trial.program.otherwise or trial.objective.better != "faster" or not 1.0 < gain < MUCH:
        return cover
    as_read = [as_it_stands(s) for s in cover]
    in_time = is_in_time(all_s, trial, SHARE)
    measured = measured_beside(as_read, cover, trial, memory, SHARE) if in_time else None
    return as_read if measured is not None and measured.ratio < 1.0 else cover
