"""The command line, thin over `api`: what has no module of its own, and how errors and interrupts are told."""

from __future__ import annotations

import importlib.metadata
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from superopt.errors import NoRoom, SuperoptError, UsageError
from superopt.interrupts import INTERRUPTED
from superopt.memory import settle

HOMES = {
    "optimize": "superopt.optimize_commands:optimize",
    "replay": "superopt.optimize_commands:replay",
    "explain": "superopt.optimize_commands:explain",
    "show": "superopt.model_commands:show",
    "inspect": "superopt.model_commands:inspect",
    "serve": "superopt.cli:serve",
    "rules generate": "superopt.rule_commands:generate",
    "rules list": "superopt.rule_commands:list_rules",
    "rules show": "superopt.rule_commands:show_rule",
    "rules verify": "superopt.proof_commands:verify_file",
    "rules obligations": "superopt.proof_commands:obligations",
    "rules import": "superopt.exchange_commands:import_",
    "rules export": "superopt.exchange_commands:export",
    "rules derive": "superopt.derive_commands:derive",
    "rules covers": "superopt.derive_commands:covers",
    "rules stats": "superopt.derive_commands:stats",
    "laws list": "superopt.law_commands:list_laws",
    "laws check": "superopt.law_commands:check",
    "timings show": "superopt.timings_commands:show",
    "timings export": "superopt.timings_commands:export_",
    "timings import": "superopt.timings_commands:import_",
}
"""Where each command lives."""

GROUPS = {
    "rules": "Find rewrite rules, prove them, look at them.",
    "laws": "Look at the laws that rules are proved from, and check them.",
    "timings": "The table of measured kernels: show it, and share it.",
}


def command_line(words: Sequence[str]) -> typer.Typer:
    """All commands; where the first words name one, that alone, so that nobody waits for the modules of others: those
    of the optimizer take more than a second.
    """
    app = _group("A graph superoptimizer for ONNX: an equivalent, faster model, by rules that were found and proved.")
    app.callback()(_before_all)
    groups = dict[str, typer.Typer]()
    for name in _named(words) or HOMES:
        *above, own = name.split()
        module, function = HOMES[name].split(":")
        for group in above:
            if group not in groups:
                groups[group] = _group(GROUPS[group])
                groups[group].callback()(lambda: None)  # else one command by itself would be the whole group
                app.add_typer(groups[group], name=group)
        home = groups[above[0]] if above else app
        home.command(own)(getattr(import_module(module), function))
    return app


def _named(words: Sequence[str]) -> list[str]:
    """The command that the first words name, or all of the group that the first one names."""
    if list(words) == ["--version"]:
        return ["serve"]  # any will do
    begun = [name for name in HOMES if name.split()[:1] == list(words[:1])]
    return [name for name in begun if name.split() == list(words[: len(name.split())])] or begun


def _group(told: str) -> typer.Typer:
    return typer.Typer(
        name="superopt",
        help=told,
        no_args_is_help=True,
        rich_markup_mode=None,  # it takes what stands in brackets for markup
        pretty_exceptions_enable=False,
        add_completion=False,
    )


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"superopt {importlib.metadata.version('superopt')}")
        raise typer.Exit


def _before_all(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    """Options of the command itself."""


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
    try:
        app = command_line(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("superopt: interrupted\n")
        sys.exit(INTERRUPTED)
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
