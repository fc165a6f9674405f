"""`superopt optimize`, `replay` and `explain`: what takes or gives a report."""

from __future__ import annotations

import os
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from superopt import api, tables
from superopt.bars import progress_line
from superopt.cost.table import own_table
from superopt.errors import SuperoptError, UsageError
from superopt.explanation import explanation
from superopt.onnx_io import copy_model, load_inputs, may_hold_weights, save, weight_files
from superopt.options import (
    DryRun,
    ModelIn,
    ModelOut,
    OperatorFiles,
    Overwrite,
    ReportIn,
    ReportJson,
    ReportOut,
    RuntimeName,
    RuntimeThen,
    SampleFiles,
    SaveExternal,
    Seed,
    Shapes,
    Threads,
    ThreadsThen,
)  # fmt: skip
from superopt.outputs import beside, demand_writable, read_bytes, same_file, write_text, written_after
from superopt.search.objectives.by_name import OBJECTIVES
from superopt.search.report import read_report
from superopt.search.settings import read_shapes
from superopt.search.strategies.by_name import STRATEGIES

Timings = Annotated[
    Path | None,
    typer.Option(help="The table of what was measured and found, so that it is not again [default: the user's own]."),
]


def optimize(
    source: ModelIn,
    target: ModelOut = None,
    objective: Annotated[
        str, typer.Option(help=f"What is to be less: {' or '.join(OBJECTIVES)}. The result is never slower.")
    ] = api.Options.objective,
    time: Annotated[float, typer.Option(help="Time limit in seconds, from reading the model to the answer.")] = 60.0,
    runtime: RuntimeName = api.Options.runtime,
    threads: Threads = 1,
    strategy: Annotated[str, typer.Option(help=f"How to search: {' or '.join(STRATEGIES)}.")] = api.Options.strategy,
    alpha: Annotated[
        float, typer.Option(help="Go on from graphs that cost up to this much times the best.")
    ] = api.Options.alpha,
    seed: Seed = 0,
    rules: Annotated[
        list[Path] | None, typer.Option(help="Rule files, instead of those that come with superopt.")
    ] = None,
    operators: OperatorFiles = None,
    definitions: Annotated[bool, typer.Option(help="Unfold composite operators, and fold into them.")] = True,
    inputs: SampleFiles = None,
    shape: Shapes = None,
    timings: Timings = None,
    report: ReportOut = None,
    json: ReportJson = False,
    dry_run: DryRun = False,
    overwrite: Overwrite = False,
    save_external: SaveExternal = False,
) -> None:
    """Find an equivalent model that is faster, or smaller.

    The result was compared with the original, and measured to be faster on this machine, or to take less and not be
    slower; where nothing of the kind is found the original is written, byte for byte unless its weights have to get
    another name. Ctrl-C ends the search: what it has found is compared and measured, and another ends that too. Where
    nothing is found yet, the first ends all.

    Exit codes: 0 done, 1 the runtime asked for cannot run what onnxruntime can, or lacks the memory, 2 usage, 3 invalid
    model, 4 the result differs from the original, 5 out of time without an answer, 6 no room for what is written on the
    way, 130 ended by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP. Nothing is written but with 0.
    """
    target = target or beside(source, f"{source.stem}.optimized.onnx")
    target = None if dry_run else target
    read = [source, *(rules or ()), *(operators or ()), *(inputs or ())]
    _demand_targets(source, target, report, overwrite, read, timings)
    options = api.Options(
        objective=objective,
        time=time,
        runtime=runtime,
        threads=threads,
        strategy=strategy,
        alpha=alpha,
        seed=seed,
        rules=None if rules is None else tuple(rules),
        operators=tuple(operators or ()),
        definitions=definitions,
        timings=timings,
        inputs=tuple(load_inputs(p) for p in inputs or ()),
        shapes=read_shapes(shape or ()),
    )
    with progress_line() as progress:
        result = api.optimize(source, options, progress)
    _demand_targets(source, target, report, overwrite, read, timings)  # some may be there by now
    _deliver(result, source, target, report, save_external, json)


def replay(
    report: ReportIn,
    source: ModelIn,
    target: ModelOut = None,
    time: Annotated[float, typer.Option(help="Time limit in seconds, for measuring.")] = 60.0,
    runtime: RuntimeThen = None,
    threads: ThreadsThen = None,
    seed: Seed = 0,
    operators: OperatorFiles = None,
    inputs: SampleFiles = None,
    shape: Shapes = None,
    new_report: ReportOut = None,
    json: ReportJson = False,
    dry_run: DryRun = False,
    overwrite: Overwrite = False,
    save_external: SaveExternal = False,
) -> None:
    """Apply what a report found to a model again, without a search: the same model, or one that was trained anew.

    The result is compared with the model and measured beside it as after a search, on the runtime and at the sizes
    that were asked for then unless others are now, and the exit codes are the same.
    """
    target = target or beside(source, f"{source.stem}.optimized.onnx")
    target = None if dry_run else target
    read = [report, source, *(operators or ()), *(inputs or ())]
    _demand_targets(source, target, new_report, overwrite, read)
    found = read_report(report, read_bytes(report))
    samples = tuple(load_inputs(p) for p in inputs or ())
    then = found.settings
    if threads is None and then.threads > (os.cpu_count() or 1):
        raise UsageError(f"{report}: it is of {then.threads} threads, more than this machine has; give --threads")
    options = api.Options(
        time=time,
        runtime=runtime or then.runtime,
        threads=threads or then.threads,
        seed=seed,
        operators=tuple(operators or ()),
        inputs=samples,
        shapes=read_shapes(shape or [f"{name}:{sizes}" for name, sizes in then.shapes.items()]),
    )
    with progress_line() as progress:
        result = api.replay(found, source, options, progress)
    _demand_targets(source, target, new_report, overwrite, read)
    _deliver(result, source, target, new_report, save_external, json)


def explain(
    report: ReportIn,
    target: Annotated[
        Path | None, typer.Argument(metavar="OUT", help="The page to write [default: REPORT.html].", show_default=False)
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write a page of HTML about an optimization: before and after around each rewrite, its rule, proof and gain."""
    target = target or beside(report, f"{report.stem}.html")
    demand_writable(target, overwrite, [report])
    write_text(target, explanation(read_report(report, read_bytes(report)), report.stem))
    typer.echo(f"written to {target}")


def _demand_targets(
    source: Path,
    target: Path | None,
    report: Path | None,
    overwrite: bool,
    read: list[Path],
    timings: Path | None = None,
) -> None:
    """Raise `UsageError` for files to write that cannot be, before the work."""
    outputs = [path for path in (target, report) if path is not None]
    if timings is not None and any(same_file(timings, other) for other in (*read, *outputs)):
        raise UsageError(f"{timings}: this file is no place for timings too; name another one with --timings")
    if target is not None and report is not None:
        if same_file(target, report):
            raise UsageError(f"{report}: the model goes there; name another file for the report")
        if may_hold_weights(_in_folder(report), _in_folder(target)):
            raise UsageError(f"{report}: the model's weights may go there; name another file for the report")
    for path in outputs:
        demand_writable(path, overwrite, [*read, own_table()])
    folder = source.parent.resolve()  # in which a model's weights have to be
    existing = [p for p in (*outputs, timings) if p is not None and p.exists() and p.resolve().is_relative_to(folder)]
    weights = weight_files(source) if existing else []
    for path in existing:
        if any(same_file(path, file) for file in weights):
            raise UsageError(f"{path}: this file holds the model's weights, and is never overwritten; name another one")


def _in_folder(path: Path) -> Path:
    """A path whose folder is spelled in one way."""
    return path.parent.resolve() / path.name


def _deliver(
    result: api.Result, source: Path, target: Path | None, report: Path | None, save_external: bool, json: bool
) -> None:
    """Write what was asked for, and say what was found."""
    text = f"{result.report.model_dump_json(indent=2)}\n"
    written, left = list[Path](), list[Path]()
    with written_after(report, text.encode()) if report else nullcontext():  # both or none
        if target is not None:
            before = _weights_of(target)
            _write(result, source, target, save_external)
            written = [target, *weight_files(target)]
            left = sorted(before.difference(file.resolve() for file in (*written, *weight_files(source))))
    if json:
        typer.echo(result.report.model_dump_json(indent=2))
    else:
        Console(highlight=False).print(tables.optimization(result.report, source, written, left), crop=False)


def _weights_of(target: Path) -> set[Path]:
    """The files of the weights of a model that is to be replaced: they are left, as another model may read them."""
    with suppress(SuperoptError):  # no model is there, or not a whole one
        return {file.resolve() for file in weight_files(target)}
    return set()


def _write(result: api.Result, source: Path, target: Path, external: bool) -> None:
    """Write the answer: the optimized model, or the original byte for byte, unless its weights are to move out, or are
    in a file whose name another one has there.

    Weights that were in files stay in files.
    """
    changed = result.report.outcome != "original"
    if external or changed or not copy_model(source, target):
        save(result.model, target, external_data=external or bool(weight_files(source)) or None)
