"""A model before anything is tried with it: read, copied, and of sizes at which it runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from superopt.asked import Options
from superopt.cost.bench import Bench
from superopt.cost.child import Child, within
from superopt.cost.liveness import activations
from superopt.cost.measured import MeasuredCost
from superopt.cost.runtimes import runtime_named
from superopt.cost.table import Table
from superopt.cost.whole import around, take_much
from superopt.errors import UsageError
from superopt.folders import temporary_folder
from superopt.memory import give_back
from superopt.onnx_io import (
    Model,
    ModelFacts,
    Program,
    demand_inputs,
    facts,
    highest_opset,
    load,
    opset_of,
    understand,
    working_copy,
)
from superopt.search.accepting.trial import Trial
from superopt.search.objectives.by_name import OBJECTIVES
from superopt.search.settings import Setting, settings_of
from superopt.search.settled import PATIENCE_S, settled
from superopt.search.strategies.found import Progress

_LOG = logging.getLogger("superopt")

TRYING_SHARE = 0.25
"""Of the time limit, what running the model at sizes that nobody gave may take."""


@contextmanager
def prepared(model: Model, options: Options, progress: Progress) -> Iterator[tuple[ModelFacts, Trial]]:
    """What a model is made of, and what is tried with it; its files are gone afterwards."""
    start, runtime = time.monotonic(), runtime_named(options.runtime, options.threads)
    loaded = load(model)
    reading = time.monotonic() - start  # as long as reading the answer takes, once all is decided
    for sample in options.inputs:
        demand_inputs(loaded, sample)
    with (
        closing(Child()) as child,
        temporary_folder() as folder,
        Table(options.timings, _LOG.warning) as table,
    ):
        child.started()  # while the model is read on
        working = working_copy(loaded, model, folder)
        original = Path(model) if isinstance(model, str | Path) else working
        before, loaded = facts(loaded), load(working)
        give_back()  # the model that was read, with all of its weights
        program, opset = understand(loaded), opset_of(loaded)
        asked = settings_of(program, options.ranges()) if options.shapes else _seen_in(program, options.inputs)
        progress("run", 0.0)
        ask = within(child, min(PATIENCE_S, TRYING_SHARE * options.time))
        found = settled(program, working, asked, runtime.standard, ask, folder)
        sizes, highest = dict(found.sizes), highest_opset(program)
        values = activations(program, sizes)
        bench = Bench(runtime, table, opset, sizes, highest=highest, loses_sizes=program.loses_sizes, child=child)
        cost = MeasuredCost(bench, around(before.bytes, values))
        trial = Trial(
            program=program,
            original=original,
            working=working,
            folder=folder,
            objective=OBJECTIVES[options.objective](cost),
            limit=max(options.time - reading, options.time / 2),
            seed=options.seed,
            inputs=[dict(i) for i in options.inputs],
            progress=progress,
            settings=found.settings,
            asked=asked,
            one_by_one=take_much(before.bytes, values),
            bytes=before.bytes,
            start=start,
            writing_s=reading,
        )
        yield before, trial


def _seen_in(program: Program, samples: Sequence[Mapping[str, np.ndarray]]) -> tuple[Setting, ...]:
    """The sizes of the user's own first sample, where they are symbolic in the model and it is of them throughout.

    They are likely, and not asked for: the model may run on the sample there, and on no random input.
    """
    given = samples[0] if samples else {}
    shapes = {n: a.shape for n, a in given.items() if n in program.values and not program.values[n].sized}
    try:
        found = settings_of(program, {n: tuple((d, d) for d in shape) for n, shape in shapes.items() if 0 not in shape})
    except UsageError:
        return (Setting(),)
    return tuple(replace(setting, likely=bool(setting.shapes)) for setting in found)
