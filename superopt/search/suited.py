"""Nodes written otherwise as it suits the runtime: by those ways alone that make a model no slower on it.

The ways are those in which onnxruntime takes less time on a processor, and so they are taken there unseen. OpenVINO
2026.4 takes a GridSample between four neighbours itself, and 2.4 times as long for the products that `attended` makes
of attention at such places; and it refuses a Scan whose body reads what is not given to it.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection
from dataclasses import replace

from superopt.errors import OutOfTime, RuntimeFailed
from superopt.onnx_io import Program, fingerprint, understand
from superopt.search.accepting.trial import Trial
from superopt.search.sight import at_first_sight
from superopt.search.solving.remembered import Memory

LEAST_RATIO = 0.98
"""Ways that seem to take longer by more than chance at first sight are not taken."""

_LOG = logging.getLogger("superopt")


def suited(trial: Trial, memory: Memory | None = None) -> Trial:
    """The trial with nodes of its model written otherwise as all ways say, if it is no slower so on its runtime, else
    by all of these that are none by themselves, if they are none together. What was seen is remembered.
    """
    runtime, program = trial.bench.runtime, trial.program
    if runtime == runtime.standard or not program.ways or program.plain is None:
        return trial
    kept = _remembered(trial, memory)
    return trial if kept == program.ways else replace(trial, program=_in_ways(program, kept))


def _remembered(trial: Trial, memory: Memory | None) -> frozenset[str]:
    """The ways that are taken, as they were at first sight."""
    if memory is None:
        return _seen(trial)
    ways = trial.program.ways
    facts = memory.search_digest, "ways", fingerprint(trial.program.model), *sorted(ways), *map(str, trial.settings)
    asked = hashlib.sha256(repr(facts).encode()).hexdigest()[:32]
    known = memory.table.answer(memory.key, asked)
    if known is not None and ways.issuperset(known.split()):
        return frozenset(known.split())
    kept = _seen(trial)
    memory.table.keep_answer(memory.key, asked, " ".join(sorted(kept)))
    return kept


def _seen(trial: Trial) -> frozenset[str]:
    program = trial.program
    if _is_no_slower(trial, program):
        return program.ways
    each = ((way, _in_ways(program, {way})) for way in sorted(program.ways) if len(program.ways) > 1)
    kept = frozenset(way for way, alone in each if alone.ways and _is_no_slower(trial, alone))
    if len(kept) > 1 and not _is_no_slower(trial, _in_ways(program, kept)):
        kept = frozenset()
    _LOG.info("nodes are not written otherwise by %s: that is slower", ", ".join(sorted(program.ways - kept)))
    return kept


def _is_no_slower(trial: Trial, program: Program) -> bool:
    """Whether a program runs, and takes no longer than its model as it is given; also where that takes too long to be
    seen.
    """
    try:
        return at_first_sight(trial, program) >= LEAST_RATIO
    except OutOfTime:
        return True
    except RuntimeFailed:
        return False


def _in_ways(program: Program, ways: Collection[str]) -> Program:
    """The same model with nodes written otherwise in some ways alone."""
    assert program.plain is not None
    return understand(program.plain, only=ways)
