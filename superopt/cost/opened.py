"""The file of a table of timings: opened, made anew where it is damaged, refused where it is something else."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from superopt.cost.lane import acquire
from superopt.errors import UsageError

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

IN_MEMORY = ":memory:"

_WAIT_S = 30.0


def open_file(path: Path, warn: Callable[[str], None]) -> sqlite3.Connection:
    """A connection to the table in a file, or in none; a damaged file is set aside, of which `warn` is told.

    Raises `UsageError` where none can be opened there, and for what is no table of timings.
    """
    try:
        if str(path) == IN_MEMORY:
            return _connect(path)
        _demand_table(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Two processes that find the damage at once must not set the new file aside too.
        with _lock_file(path).open("a") as lock:
            acquire(lock)
            try:
                return _connect(path)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                aside, told = _set_aside(path), " ".join(str(error).split())
                warn(f"{path} was damaged ({told}); it is now {aside}, and a new table is begun")
                return _connect(path)
    except (OSError, sqlite3.Error) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise UsageError(f"{path}: no table of timings can be opened there: {why}; name another") from None


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether an error tells of a damaged file. (Locks, permissions and full disks are `OperationalError`s.)"""
    return type(error) is sqlite3.DatabaseError


def _set_aside(path: Path) -> Path:
    numbers = iter(range(1, 10_000))
    aside = next(p for n in numbers if not (p := path.with_name(f"{path.name}.damaged-{n}")).exists())
    path.rename(aside)
    for suffix in ("-wal", "-shm"):
        # They belong to the damaged file; beside a new one they would damage it as well.
        path.with_name(path.name + suffix).unlink(missing_ok=True)
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
