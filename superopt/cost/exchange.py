"""Timings as text, so that a fleet of equal machines measures once: `superopt timings export` and `import`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from superopt.cost.table import Row, Table
from superopt.cost.timing import Key, Timing
from superopt.versioned import read_versioned

FORMAT = 1
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=1, lt=2**63)]  # as the table holds


def _in_utc(moment: str) -> str:
    """A moment as tables have it, so that texts of two compare as the moments do. Raises `ValueError` for none."""
    found = datetime.fromisoformat(moment)
    if found.tzinfo is None:
        raise ValueError(f"{moment} says no offset from UTC")
    return found.astimezone(UTC).isoformat(timespec="seconds")


class Entry(BaseModel):
    """One kernel's timing, as `Timing` has it, with what it depends on, as `Key` has it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    runtime: str
    version: str
    device: str
    threads: _Count
    signature: str
    seconds: _Positive
    spread: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    runs: _Count
    measured_at: Annotated[str, AfterValidator(_in_utc)]


class Exported(BaseModel):
    """A file of timings."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    format: Literal[1]
    timings: tuple[Entry, ...]


def exported(rows: Iterable[Row]) -> str:
    """Rows of a table as JSON, a line for each."""
    lines = [
        Entry(**vars(r.key), signature=r.signature, **vars(r.timing), measured_at=r.measured_at).model_dump_json()
        for r in rows
    ]
    return f'{{"format": {FORMAT}, "timings": [\n' + ",\n".join(lines) + "\n]}\n"


def read_exported(path: Path, text: str) -> list[Row]:
    """The rows of a file. Raises `UsageError` for what is no such file, or of another version."""
    entries = read_versioned(path, text, Exported, FORMAT, "table of timings", "superopt timings export").timings
    return [
        Row(
            Key(e.runtime, e.version, e.device, e.threads),
            e.signature,
            Timing(e.seconds, e.spread, e.runs),
            e.measured_at,
        )
        for e in entries
    ]


def merged(table: Table, rows: Iterable[Row]) -> int:
    """Enter rows, of the same kernel the one that was measured last; gives how many were new or newer."""
    known = {(r.key, r.signature): r.measured_at for r in table.rows()}
    last = {(r.key, r.signature): r for r in sorted(rows, key=lambda r: r.measured_at)}
    newer = [r for which, r in last.items() if known.get(which, "") < r.measured_at]
    table.enter(newer)
    return len(newer)
