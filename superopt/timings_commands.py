"""`superopt timings`: what the table of measured kernels holds, and how machines share it."""

from __future__ import annotations

import json as json_
from collections import defaultdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Shown

from superopt.cost.exchange import exported, merged, read_exported
from superopt.cost.table import Row, Table, own_table
from superopt.cost.timing import Key
from superopt.errors import UsageError
from superopt.outputs import demand_writable, read_bytes, same_file, write_text

TableFile = Annotated[Path | None, typer.Option("--timings", help="The table [default: the user's own].")]


def show(
    timings: TableFile = None,
    kernels: Annotated[int, typer.Option(help="How many of the kernels that take longest to list.", min=0)] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Say for which runtimes and machines kernels were measured, and how many; and whole pieces beside each other."""
    rows = _rows(timings)
    groups: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.key].append(row)
    longest = sorted((r for r in rows if not r.is_whole), key=lambda r: -r.timing.seconds)[:kernels]
    if json:
        found = [{**vars(k), **_counts(own), "last": max(r.measured_at for r in own)} for k, own in groups.items()]
        slow = [{**vars(r.key), "signature": r.signature, **vars(r.timing)} for r in longest]
        typer.echo(json_.dumps({"groups": found, "longest": slow}))
        return
    shown = Shown(
        "runtime",
        "version",
        "device",
        "threads",
        "kernels",
        "whole pieces",
        "last measured",
        show_edge=False,
        pad_edge=False,
    )
    for key, own in groups.items():
        last = max(r.measured_at for r in own)
        counts = map(str, _counts(own).values())
        shown.add_row(key.runtime, key.version, key.device, str(key.threads), *counts, last)
    console = Console(highlight=False)
    console.print(shown)
    for row in longest:
        console.print(f"{row.timing.seconds * 1e3:10.3f} ms  {row.signature}", markup=False, soft_wrap=True)


def _counts(rows: list[Row]) -> dict[str, int]:
    whole = sum(row.is_whole for row in rows)
    return {"kernels": len(rows) - whole, "whole_pieces": whole}


def export_(
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.", show_default=False)],
    timings: TableFile = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")] = False,
) -> None:
    """Write all timings as text (JSON), for another machine like this one to import."""
    demand_writable(target, overwrite, [timings or own_table()])
    rows = _rows(timings)
    write_text(target, exported(rows))
    typer.echo(f"{len(rows)} timings written to {target}")


def import_(
    source: Annotated[Path, typer.Argument(metavar="IN", help="What `export` wrote.", show_default=False)],
    timings: TableFile = None,
) -> None:
    """Enter the timings of a file into the table; of two of the same kernel the one that was measured last stays.

    They count for the runtime, version, device and threads that they were measured with, and no other.
    """
    if same_file(source, timings or own_table()):
        raise UsageError(f"{source}: timings are to be entered into this file; name another one")
    rows = read_exported(source, read_bytes(source).decode("utf-8", "replace"))
    with Table(timings or own_table(), _warn) as table:
        new = merged(table, rows)
    typer.echo(f"{new} of {len(rows)} timings were new")


def _rows(path: Path | None) -> list[Row]:
    if path is not None and not path.exists():
        raise UsageError(f"{path}: there is no such table of timings")
    with Table(path or own_table(), _warn) as table:
        return table.rows()


def _warn(message: str) -> None:
    typer.echo(f"superopt: {message}", err=True)
