"""Timings on disk, and what was found by them, so that nothing is measured or searched twice."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeVar

from superopt.cost.lane import cache_directory
from superopt.cost.opened import IN_MEMORY, is_damage, open_file
from superopt.cost.timing import Key, Timing
from superopt.errors import UsageError

WHOLE = "(whole "
"""How the signature of a whole piece begins."""

T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """A timing in the table: what it depends on, and when it was measured (ISO 8601, UTC)."""

    key: Key
    signature: str
    timing: Timing
    measured_at: str

    @property
    def is_whole(self) -> bool:
        """Whether it is of a whole piece beside another one, and of no kernel."""
        return self.signature.startswith(WHOLE)


def own_table() -> Path:
    """The user's own table."""
    return cache_directory() / "timings.sqlite"


class Table:
    """Timings by runtime and signature, in an SQLite file that several processes may use at once.

    A table that is damaged is set aside under another name and a new one begun; `on_warning` is told. Timings are cheap
    to measure again, so nothing else is tried. Raises `UsageError` where the file cannot be opened at all, and for what
    never was such a table; where it is the user's own that cannot be, and where nothing can be written to it,
    `on_warning` is told that too, and nothing is kept.
    """

    def __init__(self, path: Path | None = None, on_warning: Callable[[str], None] | None = None) -> None:
        self.path = own_table() if path is None else Path(path)
        self.in_memory = str(self.path) == IN_MEMORY
        self._warn = on_warning or (lambda _: None)
        self._keeps = True
        try:
            self._connection = open_file(self.path, self._warn)
        except UsageError as error:
            if path is not None:
                raise
            self._tell_lost(error)  # as where the user's own folder is read-only
            self.path, self.in_memory = Path(IN_MEMORY), True
            self._connection = open_file(self.path, self._warn)

    def get(self, key: Key, signature: str) -> Timing | None:
        """The timing of a kernel, where it is known."""

        def read(connection: sqlite3.Connection) -> Timing | None:
            row = connection.execute(
                "SELECT seconds, spread, runs FROM timings"
                " WHERE (runtime, version, device, threads, signature) = (?, ?, ?, ?, ?)",
                (*_columns(key), signature),
            ).fetchone()
            return Timing(*row) if row and _is_timing(row) else None

        return self._mended(read)

    def put(self, key: Key, signature: str, timing: Timing) -> None:
        """Enter a timing, if anything can be; a newer one of the same kernel replaces the older."""
        row = Row(key, signature, timing, datetime.now(UTC).isoformat(timespec="seconds"))
        self._if_possible(lambda: self.enter([row]))

    def enter(self, rows: Sequence[Row]) -> None:
        """Enter rows, all of them or none."""
        values = [(*_columns(r.key), r.signature, *_numbers(r.timing), r.measured_at) for r in rows]

        def write(connection: sqlite3.Connection) -> None:
            connection.execute("BEGIN")
            try:
                connection.executemany("INSERT OR REPLACE INTO timings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

        self._mended(write)

    def answer(self, key: Key, asked: str) -> str | None:
        """What was found on a runtime, as text, by a digest of all that it depends on."""

        def read(connection: sqlite3.Connection) -> str | None:
            row = connection.execute(
                "SELECT answer FROM answers WHERE (runtime, version, device, threads, asked) = (?, ?, ?, ?, ?)",
                (*_columns(key), asked),
            ).fetchone()
            return row[0] if row else None

        return self._mended(read)

    def keep_answer(self, key: Key, asked: str, answer: str) -> None:
        """Enter what was found, if anything can be; it replaces an older answer to the same question."""
        row, insert = (*_columns(key), asked, answer), "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)"
        self._if_possible(lambda: self._mended(lambda c: c.execute(insert, row)))

    def forget_answer(self, key: Key, asked: str) -> None:
        """Remove what was found, if it can be."""
        row, where = (*_columns(key), asked), "(runtime, version, device, threads, asked) = (?, ?, ?, ?, ?)"
        delete = f"DELETE FROM answers WHERE {where}"  # noqa: S608
        self._if_possible(lambda: self._mended(lambda c: c.execute(delete, row)))

    def rows(self) -> list[Row]:
        """All timings, in the order of what they depend on; what can be none is left out."""
        found = self._mended(lambda c: c.execute("SELECT * FROM timings").fetchall())
        return [
            Row(Key(*row[:4]), row[4], Timing(*row[5:8]), row[8])
            for row in found
            if _is_timing(row[5:8]) and _is_time(row[8])
        ]

    def __len__(self) -> int:
        return int(self._mended(lambda c: c.execute("SELECT COUNT(*) FROM timings").fetchone()[0]))

    def close(self) -> None:
        """Release the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _if_possible(self, write: Callable[[], object]) -> None:
        """Write to the table; where that fails, as it is read-only or the disk is full, say so once."""
        try:
            write()
        except UsageError as error:
            if self._keeps:
                self._tell_lost(error)

    def _tell_lost(self, error: UsageError) -> None:
        self._keeps = False
        self._warn(f"{error}; what is measured and found now is not kept")

    def _mended(self, action: Callable[[sqlite3.Connection], T]) -> T:
        """Act on the table; once more on a new one where the file turns out to be damaged."""
        try:
            return action(self._connection)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise UsageError(f"the table of timings {self.path} cannot be used: {error}") from None
            self._connection.close()
            self._connection = open_file(self.path, self._warn)
            return action(self._connection)


def _is_timing(values: Sequence[Any]) -> bool:
    seconds, spread, runs = values
    numbers = isinstance(seconds, float) and isinstance(spread, float) and isinstance(runs, int)
    return numbers and 0.0 < seconds < math.inf and 0.0 <= spread < math.inf and runs > 0


def _is_time(text: Any) -> bool:
    """Whether a text says when something was."""
    try:
        datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return False
    return True


def _columns(key: Key) -> tuple[Any, ...]:
    return key.runtime, key.version, key.device, key.threads


def _numbers(timing: Timing) -> tuple[Any, ...]:
    return timing.seconds, timing.spread, timing.runs
