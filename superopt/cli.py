"""The command line, thin over `api`: `superopt optimize`, `inspect`, `show`, `rules`, `laws`, `serve`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from superopt import api, tables
from superopt.derive_commands import covers, derive, stats
from superopt.errors import SuperoptError, UsageError
from superopt.exchange_commands import export, import_
from superopt.explanation import explanation
from superopt.inspection import inspect_model
from superopt.law_commands import laws_app
from superopt.onnx_io import load, save, understand
from superopt.operators.files import declare_files
from superopt.operators.reader import term_text
from superopt.outputs import demand_writable, read_bytes, same_file, write_text
from superopt.proof_commands import obligations, verify_file
from superopt.rule_commands import OperatorFiles, rules_app
from superopt.search.report import read_report
from superopt.search.solve import Progress as Told
from superopt.search.strategies import STRATEGIES
from superopt.timings_commands import timings_app

app = typer.Typer(
    name="superopt",
    help="A graph superoptimizer for ONNX: an equivalent, faster model, by rules that were found and proved.",
    no_args_is_help=True,
    rich_markup_mode=None,  # it takes what stands in brackets for markup
    pretty_exceptions_enable=False,
    add_completion=False,
)
rules_app.command("verify")(verify_file)
rules_app.command("obligations")(obligations)
rules_app.command("import")(import_)
rules_app.command("export")(export)
rules_app.command("derive")(derive)
rules_app.command("covers")(covers)
rules_app.command("stats")(stats)
app.add_typer(rules_app, name="rules")
app.add_typer(laws_app, name="laws")
app.add_typer(timings_app, name="timings")

_INTERRUPTED = 130
"""What typer exits with after Ctrl-C."""

ModelIn = Annotated[Path, typer.Argument(metavar="IN", help="The ONNX model to read.", show_default=False)]


SampleFiles = Annotated[
    list[Path] | None, typer.Option(help="Samples (.npz, an array per input) to compare on besides random ones.")
]


@app.command()
def optimize(
    source: ModelIn,
    target: Annotated[
        Path | None,
        typer.Argument(
            metavar="OUT", help="Where to write the result [default: IN.optimized.onnx].", show_default=False
        ),
    ] = None,
    time: Annotated[float, typer.Option(help="Time limit in seconds, for searching and measuring.")] = 60.0,
    threads: Annotated[int, typer.Option(help="Threads that the runtime uses.")] = 1,
    strategy: Annotated[str, typer.Option(help=f"How to search: {' or '.join(STRATEGIES)}.")] = api.Options.strategy,
    alpha: Annotated[
        float, typer.Option(help="Go on from graphs that cost up to this much times the best.")
    ] = api.Options.alpha,
    seed: Annotated[int, typer.Option(help="Seed of all random choices.")] = 0,
    rules: Annotated[
        list[Path] | None, typer.Option(help="Rule files, instead of those that come with superopt.")
    ] = None,
    operators: OperatorFiles = None,
    definitions: Annotated[bool, typer.Option(help="Unfold composite operators by their definitions.")] = True,
    inputs: SampleFiles = None,
    timings: Annotated[
        Path | None, typer.Option(help="The table of measured kernels [default: the user's own].")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write the report, as JSON, to this file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON instead of tables.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Optimize and report, but write no model.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")] = False,
    save_external: Annotated[
        bool, typer.Option("--save-external", help="Write weights to OUT.data, not into OUT.")
    ] = False,
) -> None:
    """Find an equivalent, faster model.

    The result was compared with the original, and measured to be faster on this machine; where nothing faster is found
    the original is written, byte for byte. Exit codes: 0 done, 2 usage, 3 invalid model, 4 the result differs from the
    original (nothing is written), 5 out of time without an answer.
    """
    target = target or source.with_name(f"{source.stem}.optimized.onnx")
    read = [source, *(rules or ()), *(operators or ()), *(inputs or ())]
    if timings is not None and any(same_file(timings, other) for other in read):
        raise UsageError(f"{timings}: this is no table of timings; name another file")
    _demand_targets(source, None if dry_run else target, report, overwrite, read)
    options = api.Options(
        time=time,
        threads=threads,
        strategy=strategy,
        alpha=alpha,
        seed=seed,
        rules=None if rules is None else tuple(rules),
        operators=tuple(operators or ()),
        definitions=definitions,
        timings=timings,
        inputs=tuple(api.load_inputs(p) for p in inputs or ()),
    )
    with progress_line() as progress:
        result = api.optimize(source, options, progress)
    _deliver(result, source, None if dry_run else target, report, save_external, json)


@app.command()
def replay(
    report: Annotated[Path, typer.Argument(metavar="REPORT", help="What `optimize --report` wrote.")],
    source: ModelIn,
    target: Annotated[
        Path | None,
        typer.Argument(
            metavar="OUT", help="Where to write the result [default: IN.optimized.onnx].", show_default=False
        ),
    ] = None,
    time: Annotated[float, typer.Option(help="Time limit in seconds, for measuring.")] = 60.0,
    threads: Annotated[int, typer.Option(help="Threads that the runtime uses.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of all random choices.")] = 0,
    operators: OperatorFiles = None,
    inputs: SampleFiles = None,
    new_report: Annotated[Path | None, typer.Option("--report", help="Write a report of this, as JSON.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON instead of tables.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Apply and check, but write no model.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")] = False,
    save_external: Annotated[
        bool, typer.Option("--save-external", help="Write weights to OUT.data, not into OUT.")
    ] = False,
) -> None:
    """Apply what a report found to a model again, without a search: the same model, or one that was trained anew.

    The result is compared with the model and measured beside it as after a search, and the exit codes are the same.
    """
    target = target or source.with_name(f"{source.stem}.optimized.onnx")
    read = [report, source, *(operators or ()), *(inputs or ())]
    _demand_targets(source, None if dry_run else target, new_report, overwrite, read)
    found = read_report(report, read_bytes(report))
    samples = tuple(api.load_inputs(p) for p in inputs or ())
    options = api.Options(time=time, threads=threads, seed=seed, operators=tuple(operators or ()), inputs=samples)
    with progress_line() as progress:
        result = api.replay(found, source, options, progress)
    _deliver(result, source, None if dry_run else target, new_report, save_external, json)


@app.command()
def explain(
    report: Annotated[Path, typer.Argument(metavar="REPORT", help="What `optimize --report` wrote.")],
    target: Annotated[
        Path | None, typer.Argument(metavar="OUT", help="The page to write [default: REPORT.html].", show_default=False)
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")] = False,
) -> None:
    """Write a page of HTML about an optimization: before and after around each rewrite, its rule, proof and gain."""
    target = target or report.with_suffix(".html")
    demand_writable(target, overwrite, [report])
    write_text(target, explanation(read_report(report, read_bytes(report)), report.stem))
    typer.echo(f"written to {target}")


def _demand_targets(source: Path, target: Path | None, report: Path | None, overwrite: bool, read: list[Path]) -> None:
    """Raise `UsageError` for files to write that cannot be, before the work."""
    if target is not None:
        demand_writable(target, overwrite, read)
        beside = target.resolve().is_relative_to(source.parent.resolve())  # as a model's weights have to be
        if target.exists() and beside and any(same_file(target, f) for f in api.weight_files(source)):
            raise UsageError(
                f"{target}: this file holds the model's weights, and is never overwritten; name another one"
            )
    if report is not None:
        demand_writable(report, overwrite, [*read, *([] if target is None else [target])])


def _deliver(
    result: api.Result, source: Path, target: Path | None, report: Path | None, save_external: bool, json: bool
) -> None:
    """Write what was asked for, and say what was found."""
    if target is not None:
        _write(result, source, target, save_external)
    if report is not None:
        write_text(report, result.report.model_dump_json(indent=2) + "\n")
    if json:
        typer.echo(result.report.model_dump_json(indent=2))
    else:
        Console(highlight=False).print(tables.optimization(result.report, source, target), crop=False)


@app.command()
def show(source: ModelIn, operators: OperatorFiles = None) -> None:
    """Print a model as terms, a line for each node; opaque nodes say why they are."""
    declare_files(operators or ())
    program = understand(load(source))
    for step in program.steps:
        for name, term in zip(step.outputs, step.terms, strict=False):
            typer.echo(f"?{name} = {term_text(term)} ; {term.type}")
        if not step.terms:
            outputs = " ".join(f"?{n}" for n in step.outputs)
            typer.echo(
                f"{outputs} = ({step.node.op_type} {' '.join(f'?{n}' for n in step.inputs)}) ; opaque: {step.reason}"
            )
    summary = program.summary
    typer.echo(f"{summary.understood} of {summary.nodes} nodes are understood", err=True)


@app.command()
def inspect(
    source: ModelIn,
    operators: OperatorFiles = None,
    time: Annotated[
        bool, typer.Option("--time/--no-time", help="Run the model a few times, and show where its time goes.")
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="Print all that is known as JSON instead of a table.")] = False,
) -> None:
    """Say how much of a model is understood, and what is opaque and why, by ONNX operator.

    A node is understood where it was read as terms, so that rewrites can apply to it; opaque nodes are carried through
    as they are. The columns flops and time say how much it matters: each operator's share of the model's arithmetic,
    and of its measured time (onnxruntime's profiler, one thread, random inputs, nothing optimized, so that nodes stay
    the model's own). Symbolic sizes count as 1. Constants, and nodes that only compute constants, are not counted.

    Exit codes: 0 done, also where the model cannot be run and time is not shown; 2 usage; 3 invalid model.
    """
    declare_files(operators or ())
    with progress_line() as progress:
        found = inspect_model(source, time, progress)
    if time and found.not_timed is not None:
        typer.echo(f"superopt: time is not shown: {' '.join(found.not_timed.split())}", err=True)
    if json:
        typer.echo(found.model_dump_json(indent=2))
    else:
        Console(highlight=False).print(tables.inspection(found, source), crop=False)


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any free one.")] = 8000,
    max_bytes: Annotated[int, typer.Option(help="Largest model accepted, in bytes.")] = 512 * 2**20,
    time_limit: Annotated[float, typer.Option(help="Longest time for one model, in seconds.")] = 600.0,
    memory: Annotated[int, typer.Option(help="Most memory for one model, in bytes.")] = 8 * 2**30,
) -> None:
    """Serve POST /v1/optimize over HTTP (needs the extra: pip install 'superopt[service]')."""
    try:
        from service.app import serve as run
        from service.settings import Settings
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed; the service needs: pip install 'superopt[service]'") from None
    run(Settings(host=host, port=port, max_bytes=max_bytes, time_limit=time_limit, memory=memory))


def main() -> None:
    """Run the command; every error that a user can cause is one line on stderr, and its exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that temporary folders are removed
    try:
        app(standalone_mode=True)
    except SystemExit as end:
        if end.code == _INTERRUPTED:
            typer.echo("superopt: interrupted", err=True)
        raise
    except SuperoptError as error:
        one_line = " ".join(str(error).split())
        typer.echo(f"superopt: {one_line}", err=True)
        sys.exit(error.exit_code)


@contextmanager
def progress_line() -> Iterator[Told]:
    """A live line on stderr that says what is being done; nothing where stderr is no terminal."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as line:
        task = line.add_task("load", total=1.0)
        yield lambda stage, done: line.update(task, description=stage, completed=done)


def _write(result: api.Result, source: Path, target: Path, external: bool) -> None:
    """Write the answer: the optimized model, or the original byte for byte unless its weights are to move out.

    Weights that were in files stay in files.
    """
    if external:
        save(result.model, target, external_data=True)
    elif result.report.outcome == "faster":
        save(result.model, target, external_data=bool(api.weight_files(source)) or None)
    else:
        api.copy_model(source, target)


if __name__ == "__main__":
    main()
