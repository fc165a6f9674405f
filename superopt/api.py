"""The library's own entrance: `optimize` a model, and `replay` what a report says on it."""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir

from superopt.cost.bench import Bench
from superopt.cost.child import Child, within
from superopt.cost.liveness import activations
from superopt.cost.measured import MeasuredCost
from superopt.cost.runtimes import RUNTIMES, runtime_named
from superopt.cost.table import Table
from superopt.cost.whole import around, take_much
from superopt.errors import NoRoom, UsageError
from superopt.folders import temporary_folder
from superopt.memory import give_back, seldom_collecting
from superopt.onnx_io import (
    LARGE,
    ModelFacts,
    Program,
    demand_inputs,
    facts,
    held,
    highest_opset,
    load,
    opset_of,
    save,
    to_proto,
    understand,
)
from superopt.operators.declare import CATALOGUE, Declared
from superopt.operators.files import declare_files
from superopt.operators.meanings import FURTHER_DEFINITIONS, SPELLINGS
from superopt.rules.otherwise import otherwise
from superopt.search import report as parts
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.account import report_of
from superopt.search.objectives.by_name import OBJECTIVES
from superopt.search.optimize import attempt
from superopt.search.optimize import replay as apply_again
from superopt.search.replay import Fit, report_again
from superopt.search.rewriting.rewrites import Rewrite, rewrites_of
from superopt.search.settings import Range, Setting, as_range, assumed, settings_of, shape_text
from superopt.search.settled import PATIENCE_S, settled
from superopt.search.solving.remembered import Memory, digest
from superopt.search.strategies.by_name import STRATEGIES
from superopt.search.strategies.found import Progress
from superopt.search.widening import attempted
from superopt.shipped import shipped_rules
from superopt.verify.trusted import trusted_rules

_LOG = logging.getLogger("superopt")

Model = str | Path | onnx.ModelProto | ir.Model

TRYING_SHARE = 0.25
"""Of the time limit, what running the model at sizes that nobody gave may take."""


@dataclass(frozen=True)
class Options:
    """How to optimize. `objective` is what is to be less, one of `OBJECTIVES`; `time` is the limit in seconds;
    `runtime` is one of `RUNTIMES`; `strategy` is one of `STRATEGIES`, and `alpha` how much dearer than the best the
    graphs may be that it goes on from; `rules` are rule files (None: those that come with superopt); `operators` are
    Python files that declare further operators, for as long as the process lives; `definitions` allows composite
    operators to be unfolded; `timings` is the table of what was measured and found (None: the user's own); `inputs` are
    samples to compare on, besides random ones, and the first is measured on; `shapes` gives inputs their sizes, each a
    number or a range.
    """

    objective: str = "latency"
    time: float = 60.0
    runtime: str = "onnxruntime"
    threads: int = 1
    strategy: str = "backtrack"
    alpha: float = 1.15
    seed: int = 0
    rules: tuple[Path, ...] | None = None
    operators: tuple[Path, ...] = ()
    definitions: bool = True
    timings: Path | None = None
    inputs: tuple[Mapping[str, np.ndarray], ...] = ()
    shapes: Mapping[str, Sequence[int | Range]] | None = None

    def __post_init__(self) -> None:
        cores = os.cpu_count() or 1
        for fits, name, value, domain in (
            (self.objective in OBJECTIVES, "objective", self.objective, " or ".join(OBJECTIVES)),
            (0 < self.time < math.inf, "time", self.time, "a number of seconds above 0"),
            (1 <= self.threads <= cores, "threads", self.threads, f"1 to {cores}, as many as this machine has"),
            (self.runtime in RUNTIMES, "runtime", self.runtime, " or ".join(RUNTIMES)),
            (self.strategy in STRATEGIES, "strategy", self.strategy, " or ".join(STRATEGIES)),
            (1 <= self.alpha < math.inf, "alpha", self.alpha, "a number of at least 1"),
            (self.seed >= 0, "seed", self.seed, "at least 0"),
        ):
            if not fits:
                raise UsageError(f"{name} is {domain}; got {value}")
        self.ranges()

    def ranges(self) -> dict[str, tuple[Range, ...]]:
        """Of each size of an input that is given, the least and the most. Raises `UsageError`."""
        return {name: tuple(as_range(name, d) for d in sizes) for name, sizes in (self.shapes or {}).items()}


@dataclass(frozen=True)
class Result:
    """A model that is the same as the original and, where `report.outcome` is *faster* or *smaller*, measured to be.

    Otherwise `model` is the original itself.
    """

    model: ir.Model
    report: parts.Report

    def save(self, path: str | Path, *, external_data: bool = False) -> None:
        """Write the model; another process sees the whole file or none, and a model that is there is replaced. Its
        weights go to a file beside it if asked, if they were in one, or above 2 GB. Raises `UsageError`.
        """
        save(self.model, path, external_data=external_data or None)

    def proto(self) -> onnx.ModelProto:
        """The model as onnx has it. Weights in files stay there."""
        return to_proto(self.model)


def optimize(model: Model, options: Options | None = None, progress: Progress | None = None) -> Result:
    """Optimize a model, given as a path, an onnx.ModelProto or an onnx_ir.Model; the argument is never changed.

    Raises `InvalidModel`, `UsageError`, `RuleError`, `VerificationFailed` (a candidate differs from the original),
    `OutOfTime` (the limit passed without an answer), `NoRoom` (for temporary files) and `RuntimeFailed` (the runtime
    asked for does not run the model, or no memory is left for that).
    """
    options, progress = options or Options(), progress or _silent
    progress("load", 0.0)
    declare_files(options.operators)
    files = tuple(shipped_rules()) if options.rules is None else options.rules
    rewrites = cache(partial(_rewrites, files, options, progress))  # 15 MB, and more than a second for each search
    with _trial(model, options, progress) as (before, trial):

        def memory(own: Trial, share: float = 1.0) -> Memory:
            table, searched = own.bench.table, _search_digest(options, files, own.cost)
            return Memory(table, own.bench.runtime.key, searched, share * options.time)

        def solve(own: Trial, share: float) -> Attempt:
            return attempt(own, rewrites, STRATEGIES[options.strategy], options.alpha, memory(own, share))

        trial, tried = attempted(trial, solve, memory(trial))
        return _result(model, before, trial, tried, options, files)


def _silent(stage: str, done: float) -> None:
    """Progress that nobody is told of."""


def _rewrites(files: Sequence[Path], options: Options, progress: Progress) -> list[Rewrite]:
    with seldom_collecting():
        proved = trusted_rules(files, progress)
        rules = [*proved, *otherwise(proved)]
        return rewrites_of(rules, definitions(), SPELLINGS) if options.definitions else rewrites_of(rules, [])


def replay(
    report: parts.Report, model: Model, options: Options | None = None, progress: Progress | None = None
) -> Result:
    """Apply what a report found to a model again, without a search, and check it as `optimize` does.

    The model is the one of the report, or one of the same structure with other weights; the objective is the report's.
    Raises what `optimize` does,
    and `UsageError` where nothing of the report fits.
    """
    options, progress = replace(options or Options(), objective=report.settings.objective), progress or _silent
    solutions = [s for s in report.solutions if s.text is not None]
    if not report.solutions and not report.constants and report.outcome == "original":
        raise UsageError("the report found nothing faster, so there is nothing to replay")
    if len(solutions) < len(report.solutions):
        _LOG.warning("of %d pieces %d have a text and are replayed", len(report.solutions), len(solutions))
    declare_files(options.operators)
    with _trial(model, options, progress) as (before, trial):
        fitting = dict[int, list[Fit]]()

        def solve(own: Trial, _: float) -> Attempt:
            tried, found = apply_again(own, solutions)
            fitting[id(tried)] = found
            return tried

        try:
            trial, tried = attempted(replace(trial, way=report.way), solve)
        except UsageError:
            if solutions or not report.solutions:
                raise
            why = "the pieces of the report have no text, so they cannot be replayed; optimize the model again"
            raise UsageError(why) from None
        found = [fit for one in (tried, *(branch for _, branch in tried.branches)) for fit in fitting[id(one)]]
        again = _result(model, before, trial, tried, options, ())
    if again.report.outcome == "original":
        return again
    return Result(again.model, report_again(again.report, report, found, trial.program))


@contextmanager
def _trial(model: Model, options: Options, progress: Progress) -> Iterator[tuple[ModelFacts, Trial]]:
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
        working = _working_copy(loaded, model, folder)
        original = Path(model) if isinstance(model, str | Path) else working
        before, loaded = facts(loaded), load(working)
        give_back()  # the model that was read, with all of its weights
        program, opset = understand(loaded), opset_of(loaded) or 1
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


def _result(
    model: Model,
    before: ModelFacts,
    trial: Trial,
    tried: Attempt,
    options: Options,
    files: Sequence[Path],
) -> Result:
    trial.bench.child.close()  # with its sessions, whose memory the model needs
    optimized = None
    if tried.accepted and tried.candidate is not None:
        optimized = load(tried.candidate)
        held(optimized)  # the folder goes, and with it the files of the weights
    after = None if optimized is None else facts(optimized)
    asked = _settings(options, files, assumed(trial.program, trial.asked[0], trial.settings[0]))
    report = report_of(tried, before, after, trial.program, trial.cost, asked, str(trial.settings[0]), trial.way)
    return Result(load(model) if optimized is None else optimized, report)


def _working_copy(loaded: ir.Model, model: Model, folder: Path) -> Path:
    """Where a model lies whose large weights are external: the runtime loads such a one several times faster.

    That is where it was given, if they are, and a copy in the folder otherwise.
    """
    tensors = [v.const_value for g in loaded.graphs() for v in g.initializers.values() if v.const_value is not None]
    within = sum(t.nbytes for t in tensors if not isinstance(t, ir.ExternalTensor))
    if within <= LARGE and isinstance(model, str | Path):
        return Path(model)
    try:
        save(loaded, folder / "original.onnx", external_data=within > LARGE or None)
    except UsageError as error:
        raise NoRoom(f"{error}; make room for a copy of the model, or name another folder by TMPDIR") from None
    return folder / "original.onnx"


def _search_digest(options: Options, files: Sequence[Path], cost: MeasuredCost) -> str:
    """A digest of all that what a search finds for a piece depends on, besides the piece and the runtime."""
    asked = (
        options.objective,
        options.strategy,
        options.alpha,
        options.definitions,
        sorted(cost.bench.sizes.items()),
        cost.bench.opset,
        cost.bench.highest,
        cost.around,
        cost.bench.loses_sizes,
    )
    code = sorted(Path(__file__).parent.rglob("*.py"))  # of another version anything may be found
    return digest((*code, *files, *options.operators), asked)


def definitions() -> list[str]:
    """What operators can be replaced by: the composite ones by name, then further definitions."""
    own = [name for name, cls in CATALOGUE.items() if cls.definition is not Declared.definition]
    return [*own, *FURTHER_DEFINITIONS]


def _settings(options: Options, files: Sequence[Path], sizes: dict[str, str]) -> parts.Settings:
    return parts.Settings(
        objective=options.objective,
        time=options.time,
        threads=options.threads,
        strategy=options.strategy,
        alpha=options.alpha,
        seed=options.seed,
        definitions=options.definitions,
        runtime=options.runtime,
        shapes={n: shape_text(ranges) for n, ranges in options.ranges().items()},
        assumed=sizes,
        rules=tuple(f.name for f in files),
    )
