"""What long work shows on a terminal: on stderr, and nothing where that is no terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)  # fmt: skip

if TYPE_CHECKING:  # commands about rules need no search, nor what reads models
    from superopt.enumerate.grow import Progress as StageTold
    from superopt.search.strategies.found import Progress as Told


@contextmanager
def progress_line() -> Iterator[Told]:
    """A live line that says what is being done, and how much of the whole is."""
    with _bars(SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()) as line:
        task = line.add_task("load", total=1.0)
        yield lambda stage, done: line.update(task, description=stage, completed=done)


@contextmanager
def stage_bar() -> Iterator[StageTold]:
    """A bar for each stage, which counts."""
    counted = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with _bars(*counted, TimeElapsedColumn(), TimeRemainingColumn()) as bar:
        task = bar.add_task("start", total=None)
        yield lambda stage, done, whole: bar.update(task, description=stage, completed=done, total=whole)


def _bars(*columns: ProgressColumn) -> Progress:
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
