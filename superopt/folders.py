"""Folders and files that are there for a while; no end of the process leaves folders behind but a kill."""

from __future__ import annotations

import atexit
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from superopt.errors import NoRoom, UsageError

_OURS: set[Path] = set()
"""Folders of this process that are not known to be gone."""


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A new folder, which is gone after the block.

    Its name is noted before it is made and until it is gone, as `tempfile` does not: a signal ends the process between
    any two steps, and what is still noted then is removed as it exits. Raises `NoRoom` where it cannot be made.
    """
    place = Path(tempfile.gettempdir())
    demand_utf8(place)
    folder = place / f"superopt-{secrets.token_hex(8)}"
    _OURS.add(folder)
    try:
        try:
            folder.mkdir(mode=0o700)
        except OSError as error:
            raise NoRoom(
                f"no folder can be made in {place}: {error.strerror or error}; make room, or name another by TMPDIR"
            ) from None
        yield folder
    finally:
        _remove(folder)


def unfinished(path: Path) -> Path:
    """A file beside another one, of a name that nobody else thinks of: once it is whole it takes the other's place."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")


def demand_utf8(path: Path) -> None:
    """Raise `UsageError` for a path that is not UTF-8: onnxruntime opens no such files."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise UsageError(f"{str(path)!a}: the path is not UTF-8, so no runtime opens it; rename it") from None


@atexit.register
def _remove_all() -> None:
    for folder in tuple(_OURS):
        _remove(folder)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():  # else a process that is being ended still puts files there
        _OURS.discard(folder)
