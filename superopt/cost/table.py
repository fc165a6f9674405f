"""Timings on disk, and what was found by them, so that nothing is measured or searched twice; and a lock, so that one
measures at a time.
"""

from __future__ import annotations

import fcntl
import math
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Self, TypeVar

from superopt.cost.runtime import Key, Timing
from superopt.errors import OutOfTime, UsageError

_SCHEMA = (
    """
CREATE TABLE IF NOT EXISTS timings (
    runtime TEXT, version TEXT, device TEXT, threads INTEGER, signature TEXT,
    seconds REAL NOT NULL, spread REAL NOT NULL, runs INTEGER NOT NULL, measured_at TEXT NOT NULL,
    PRIMARY KEY (runtime, version, device, threads, signature)
) WITHOUT ROWID
""",
    """
CREATE TABLE IF NOT EXISTS answers (
    runtime TEXT, version TEXT, device TEXT, threads INTEGER, asked TEXT, answer TEXT NOT NULL,
    PRIMARY KEY (runtime, version, device, threads, asked)
) WITHOUT ROWID
""",
)
_COLUMNS = ["runtime", "version", "device", "threads", "signature", "seconds", "spread", "runs", "measured_at"]
VERSION = 1
"""Of the table's layout; 0 is what was written before there were versions, and the same."""

_SUFFIXES, _MAGIC = (".sqlite", ".sqlite3", ".db"), b"SQLite format 3\0"
"""How databases are called, and begin."""

WHOLE = "(whole "
"""How the signature of a whole piece begins."""

_IN_MEMORY = ":memory:"

_WAIT_S = 30.0
_POLL_S = 0.02
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


def cache_directory() -> Path:
    """Where timings are kept unless a caller says otherwise: `superopt` in the XDG cache directory."""
    root = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(root) if Path(root).is_absolute() else Path.home() / ".cache") / "superopt"
    except RuntimeError:  # of a user without a home, as in containers
        return _temporary()


class Table:
    """Timings by runtime and signature, in an SQLite file that several processes may use at once.

    A table that is damaged is set aside under another name and a new one begun; `on_warning` is told. Timings are cheap
    to measure again, so nothing else is tried. Raises `UsageError` where the file cannot be opened at all, and for what
    never was such a table; where it is the user's own that cannot be, and where nothing can be written to it,
    `on_warning` is told that too, and nothing is kept.
    """

    def __init__(self, path: Path | None = None, on_warning: Callable[[str], None] | None = None) -> None:
        self.path = own_table() if path is None else Path(path)
        self.in_memory = str(self.path) == _IN_MEMORY
        self._warn = on_warning or (lambda _: None)
        self._keeps = True
        try:
            self._connection = self._open()
        except UsageError as error:
            if path is not None:
                raise
            self._tell_lost(error)  # as where the user's own folder is read-only
            self.path, self.in_memory = Path(_IN_MEMORY), True
            self._connection = self._open()

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
        return [Row(Key(*row[:4]), row[4], Timing(*row[5:8]), row[8]) for row in found if _is_timing(row[5:8])]

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
            if not _is_damage(error):
                raise UsageError(f"the table of timings {self.path} cannot be used: {error}") from None
            self._connection.close()
            self._connection = self._open()
            return action(self._connection)

    def _open(self) -> sqlite3.Connection:
        try:
            if self.in_memory:
                return _connect(self.path)
            _demand_table(self.path)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Two processes that find the damage at once must not set the new file aside too.
            with _lock_file(self.path).open("a") as lock:
                _acquire(lock)
                try:
                    return _connect(self.path)
                except sqlite3.DatabaseError as error:
                    if not _is_damage(error):
                        raise
                    aside = self._set_aside()
                    told = " ".join(str(error).split())
                    self._warn(f"{self.path} was damaged ({told}); it is now {aside}, and a new table is begun")
                    return _connect(self.path)
        except (OSError, sqlite3.Error) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise UsageError(f"{self.path}: no table of timings can be opened there: {why}; name another") from None

    def _set_aside(self) -> Path:
        numbers = iter(range(1, 10_000))
        aside = next(p for n in numbers if not (p := self.path.with_name(f"{self.path.name}.damaged-{n}")).exists())
        self.path.rename(aside)
        for suffix in ("-wal", "-shm"):
            # They belong to the damaged file; beside a new one they would damage it as well.
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        return aside


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        for statement in _SCHEMA:
            connection.execute(statement)
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        columns = [row[1] for row in connection.execute("PRAGMA table_info(timings)")]
        if columns != _COLUMNS:
            raise sqlite3.DatabaseError(f"its columns are {columns}")
        if connection.execute("PRAGMA user_version").fetchone() != (VERSION,):
            connection.execute(f"PRAGMA user_version = {VERSION}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _demand_table(path: Path) -> None:
    """Raise `UsageError` for a file that is no table of timings, not even a damaged one: others are left alone."""
    if not path.name or path.is_dir():
        raise UsageError(f"{path}: this is no table of timings, it is a folder; name a file")
    if not path.is_file():
        return
    with path.open("rb") as file:
        magic = file.read(len(_MAGIC))
    if magic not in (b"", _MAGIC) and path.suffix not in _SUFFIXES and not _lock_file(path).exists():
        raise UsageError(f"{path}: this is no table of timings; name another file")
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as found:
        tables = {name for (name,) in found.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and "timings" not in tables:
            raise UsageError(f"{path}: this is no table of timings, but another program's; name another file")
        (version,) = found.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            ours = f"this superopt reads version {VERSION}"
            raise UsageError(f"{path}: this is a table of timings of version {version}, {ours}; name another file")


def _lock_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _is_timing(values: Sequence[Any]) -> bool:
    seconds, spread, runs = values
    numbers = isinstance(seconds, float) and isinstance(spread, float) and isinstance(runs, int)
    return numbers and 0.0 < seconds < math.inf and 0.0 <= spread < math.inf


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    # Locks, permissions and full disks are `OperationalError`s.
    return type(error) is sqlite3.DatabaseError


def _columns(key: Key) -> tuple[Any, ...]:
    return key.runtime, key.version, key.device, key.threads


def _numbers(timing: Timing) -> tuple[Any, ...]:
    return timing.seconds, timing.spread, timing.runs


_within = threading.RLock()
_held: set[Path] = set()
"""Which locks this process holds: a second file lock would wait for the first."""


@contextmanager
def measuring(directory: Path | None = None, wait_s: float = math.inf) -> Iterator[None]:
    """Within this block no other process of the user on the machine measures, nor another thread. May be nested in one
    thread.

    Whoever waits is next: who measures again and again has to get past it, by a second lock that is held while waiting
    for the first. Raises `OutOfTime` where another measures for longer than `wait_s` seconds, `UsageError` without
    access.
    """
    path, start = (directory or cache_directory()) / "measuring.lock", time.monotonic()
    with _alone(wait_s):
        if path in _held:
            yield
            return
        with _locked([path] if directory else [path, _temporary() / path.name], wait_s, start):
            _held.add(path)
            try:
                yield
            finally:
                _held.remove(path)


@contextmanager
def _alone(wait_s: float) -> Iterator[None]:
    """Within this block no other thread measures. Raises `OutOfTime` where one does so for longer."""
    if not _within.acquire(timeout=min(max(wait_s, 0.0), threading.TIMEOUT_MAX)):
        raise OutOfTime(f"another thread has been measuring for {wait_s:.0f} s")
    try:
        yield
    finally:
        _within.release()


def _locked(paths: Sequence[Path], wait_s: float, start: float) -> IO[str]:
    """The file that holds the lock, until it is closed: at the first of these paths at which it can be made, and is on
    a file system that has locks, as some of clusters have none. Raises `OutOfTime`, as waiting for it does.
    """
    path, *others = paths
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with ExitStack() as held:
            lock = held.enter_context(path.open("a"))
            with path.with_suffix(".next").open("a") as turn:
                _acquire(turn, wait_s, start)
                _acquire(lock, wait_s, start)
            held.pop_all()
            return lock
    except OSError as error:
        if others:
            return _locked(others, wait_s, start)
        raise UsageError(f"the lock for measuring {path} cannot be made: {error}") from None


def _temporary() -> Path:
    """The user's folder among the temporary ones."""
    return Path(tempfile.gettempdir()) / f"superopt-{os.getuid()}"


def _acquire(handle: IO[str], wait_s: float = math.inf, start: float = 0.0) -> None:
    """Wait for the exclusive lock on an open file, for so long from the start; it is released when the file is closed
    or the process ends.

    All look again and again: those that the system lets wait would come before them.
    """
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= start + wait_s:
                raise OutOfTime(f"another process has been measuring on this machine for {wait_s:.0f} s") from None
            time.sleep(_POLL_S)
        else:
            return
