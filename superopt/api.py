"""The library's own entrance: `optimize` a model, and `replay` what a report says on it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import onnx
import onnx_ir as ir

from superopt.asked import Options, search_digest, settings_told
from superopt.errors import UsageError
from superopt.memory import seldom_collecting
from superopt.onnx_io import Model, ModelFacts, facts, held, load, save, to_proto
from superopt.operators.declare import CATALOGUE
from superopt.operators.declared import Declared
from superopt.operators.files import declare_files
from superopt.operators.meanings import FURTHER_DEFINITIONS, SPELLINGS
from superopt.prepared import prepared
from superopt.rules.otherwise import otherwise
from superopt.search import report as parts
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.account import report_of
from superopt.search.optimize import attempt
from superopt.search.replay import Fit, report_again
from superopt.search.replayed import replay as apply_again
from superopt.search.rewriting.rewrites import Rewrite, rewrites_of
from superopt.search.settings import assumed
from superopt.search.solving.remembered import Memory
from superopt.search.strategies.by_name import STRATEGIES
from superopt.search.strategies.found import Progress
from superopt.search.widening import attempted
from superopt.shipped import shipped_rules
from superopt.verify.trusted import trusted_rules

__all__ = ["Model", "Options", "Result", "definitions", "optimize", "replay"]

_LOG = logging.getLogger("superopt")


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


@seldom_collecting()
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
    with prepared(model, options, progress) as (before, trial):

        def memory(own: Trial, share: float = 1.0) -> Memory:
            table, searched = own.bench.table, search_digest(options, files, own.cost)
            return Memory(table, own.bench.runtime.key, searched, share * options.time)

        def solve(own: Trial, share: float) -> Attempt:
            return attempt(own, rewrites, STRATEGIES[options.strategy], options.alpha, memory(own, share))

        trial, tried = attempted(trial, solve, memory(trial))
        return _result(model, before, trial, tried, options, files)


def _silent(stage: str, done: float) -> None:
    """Progress that nobody is told of."""


def _rewrites(files: Sequence[Path], options: Options, progress: Progress) -> list[Rewrite]:
    proved = trusted_rules(files, progress)
    rules = [*proved, *otherwise(proved)]
    return rewrites_of(rules, definitions(), SPELLINGS) if options.definitions else rewrites_of(rules, [])


@seldom_collecting()
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
    with prepared(model, options, progress) as (before, trial):
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
    asked = settings_told(options, files, assumed(trial.program, trial.asked[0], trial.settings[0]))
    report = report_of(tried, before, after, trial.program, trial.cost, asked, str(trial.settings[0]), trial.way)
    return Result(load(model) if optimized is None else optimized, report)


def definitions() -> list[str]:
    """What operators can be replaced by: the composite ones by name, then further definitions."""
    own = [name for name, cls in CATALOGUE.items() if cls.definition is not Declared.definition]
    return [*own, *FURTHER_DEFINITIONS]
