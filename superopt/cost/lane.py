"""One measures at a time on a machine: times that are taken while another process measures say little."""

from __future__ import annotations

import fcntl
import math
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from superopt.errors import OutOfTime, UsageError

_POLL_S = 0.02

_within = threading.RLock()
_held: set[Path] = set()
"""Which locks this process holds: a second file lock would wait for the first."""


def cache_directory() -> Path:
    """Where timings are kept unless a caller says otherwise: `superopt` in the XDG cache directory."""
    root = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(root) if Path(root).is_absolute() else Path.home() / ".cache") / "superopt"
    except RuntimeError:  # of a user without a home, as in containers
        return _temporary()


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
                acquire(turn, wait_s, start)
                acquire(lock, wait_s, start)
            held.pop_all()
            return lock
    except OSError as error:
        if others:
            return _locked(others, wait_s, start)
        raise UsageError(f"the lock for measuring {path} cannot be made: {error}") from None


def _temporary() -> Path:
    """The user's folder among the temporary ones."""
    return Path(tempfile.gettempdir()) / f"superopt-{os.getuid()}"


def acquire(handle: IO[str], wait_s: float = math.inf, start: float = 0.0) -> None:
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
