"""Files that commands write: refused before the work where they cannot be written, and written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from superopt import folders
from superopt.errors import UsageError


def demand_writable(path: Path, overwrite: bool, read: Iterable[Path] = ()) -> None:
    """Raise `UsageError` for a file that exists (unless `overwrite`), that the same command reads, or that cannot be
    written where it is.
    """
    for other in read:
        if same_file(path, other):
            raise UsageError(f"{path}: this file is read, and never overwritten; name another one")
    try:
        if path.exists() and not path.is_file():
            what = "a folder" if path.is_dir() else "no regular file"
            raise UsageError(f"{path}: cannot be written, it is {what}")
        if path.exists() and not overwrite:
            raise UsageError(f"{path}: exists already; give another name, or --overwrite")
        if not path.parent.is_dir():
            raise UsageError(f"{path}: cannot be written, there is no folder {path.parent}")
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}."):
            pass
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from None


def beside(path: Path, name: str) -> Path:
    """A file of another name in the folder of a file. Raises `UsageError` for a path that names none, as `.` does."""
    if not path.name:
        raise UsageError(f"{path}: this is a folder; name a file")
    return path.with_name(name)


def same_file(a: Path, b: Path) -> bool:
    """Whether two paths lead to the same file, or would if it existed."""
    if os.path.realpath(a) == os.path.realpath(b):
        return True
    try:
        return a.samefile(b)
    except OSError:
        return False


def read_bytes(path: Path) -> bytes:
    """The content of a file. Raises `UsageError`."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None


def write_text(path: Path, text: str) -> None:
    """`write_bytes` of a text."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file; another process sees the whole of it or nothing. Raises `UsageError`."""
    with written_after(path, data):
        pass


@contextmanager
def written_after(path: Path, data: bytes) -> Iterator[None]:
    """Write a file as a whole after the block, for which there is room before it; where that fails nothing is written.
    Raises `UsageError`.
    """
    written = folders.unfinished(path)
    try:
        with _refusing(path):
            written.write_bytes(data)
        yield
        with _refusing(path):
            written.replace(path)
    finally:
        with suppress(OSError):
            written.unlink(missing_ok=True)


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from None
