"""The command line, thin over `api`: what has no module of its own, and how errors and interrupts are told."""

from __future__ import annotations

import importlib.metadata
import io
import os
import sys
from typing import Annotated

import typer
from rich.console import Console

from superopt import tables
from superopt.bars import progress_line
from superopt.derive_commands import covers, derive, stats
from superopt.errors import NoRoom, SuperoptError, UsageError
from superopt.exchange_commands import export, import_
from superopt.inspection import inspect_model
from superopt.interrupts import INTERRUPTED
from superopt.law_commands import laws_app
from superopt.memory import settle
from superopt.onnx_io import load, understand
from superopt.operators.files import declare_files
from superopt.operators.reader import term_text
from superopt.optimize_commands import explain, optimize, replay
from superopt.options import ModelIn, OperatorFiles
from superopt.proof_commands import obligations, verify_file
from superopt.rule_commands import rules_app
from superopt.timings_commands import timings_app

app = typer.Typer(
    name="superopt",
    help="A graph superoptimizer for ONNX: an equivalent, faster model, by rules that were found and proved.",
    no_args_is_help=True,
    rich_markup_mode=None,  # it takes what stands in brackets for markup
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command()(optimize)
app.command()(replay)
app.command()(explain)
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


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"superopt {importlib.metadata.version('superopt')}")
        raise typer.Exit


@app.callback()
def _before_all(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    """Options of the command itself."""


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
    the model's own). Symbolic sizes count as likely ones, which are told. Constants, and nodes that only compute
    constants, are not counted.

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
    memory: Annotated[
        int, typer.Option(help="Most memory of each process for a model, in bytes; it has two, or three.")
    ] = 8 * 2**30,
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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a name or a sign that the terminal lacks is no reason to fail
    settle()
    try:
        try:
            app(standalone_mode=True)
        finally:
            if sys.stdout is not None:  # it may have been closed by who started this
                sys.stdout.flush()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            typer.echo("superopt: interrupted", err=True)
        raise
    except SuperoptError as error:
        one_line = " ".join(str(error).split())
        typer.echo(f"superopt: {one_line}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:  # of stdout, mostly: what reads and writes files says which
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
        typer.echo(f"superopt: {error.strerror or error}", err=True)
        sys.exit(NoRoom.exit_code)
