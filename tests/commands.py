"""Runs the command as a user does: in a process of its own, with nothing known to it but its arguments."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

COMMAND = (sys.executable, "-m", "superopt")


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


def superopt(*arguments: object, cwd: Path, timeout: float = 60) -> Ran:
    """Run `superopt` with arguments in a folder."""
    run = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "100", "XDG_CACHE_HOME": str(cwd / ".cache")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Ran(run.returncode, run.stdout, run.stderr)


def assert_refused(ran: Ran, code: int, *named: str) -> None:
    """That a command ended with a code and one line on stderr that names the culprit, and with nothing else."""
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.count("\n") == 1, ran.err
    assert ran.err.startswith("superopt: ")
    for name in named:
        assert name in ran.err


def files(folder: Path) -> dict[str, bytes | None]:
    """All that a folder holds but the cache, hidden files too; None for a folder in it."""
    found = [p for p in folder.rglob("*") if ".cache" not in p.parts]
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in found}
