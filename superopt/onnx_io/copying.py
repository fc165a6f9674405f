"""Copying a model file with the files of its weights."""

from __future__ import annotations

import filecmp
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from superopt.errors import UsageError
from superopt.folders import unfinished
from superopt.onnx_io.files import weight_files


def copy_model(source: Path, target: Path) -> bool:
    """Copy a model byte for byte, with the files of its external data where the folder differs; or copy nothing, and
    say so, where one of these would replace another file. Raises `UsageError` where that cannot be written.
    """
    names = [path.relative_to(source.parent) for path in weight_files(source)]
    moved = names if source.parent.resolve() != target.parent.resolve() else []
    beside = {source.parent / name: target.parent / name for name in moved}
    try:
        for old, new in beside.items():
            if new.exists() and not (new.is_file() and filecmp.cmp(old, new, shallow=False)):
                return False
        with _or_nothing(list(beside.values()), source, target):
            for old, new in beside.items():
                new.parent.mkdir(parents=True, exist_ok=True)
                _copy(old, new)
            _copy(source, target)
    except OSError as error:
        raise UsageError(f"{target}: cannot be written: {error.strerror or error}") from None
    return True


@contextmanager
def _or_nothing(made: list[Path], source: Path, target: Path) -> Iterator[None]:
    """Where an error or an interrupt ends it before the model is in place, those of the files are gone that were not
    there before, and their folders.
    """
    files = [path for path in made if not path.exists()]
    folders = {folder for path in files for folder in path.parents if not folder.exists()}
    try:
        yield
    except BaseException:
        if not (target.exists() and filecmp.cmp(source, target, shallow=False)):
            for path in files:
                with suppress(OSError):
                    path.unlink(missing_ok=True)
            for folder in sorted(folders, reverse=True):  # those within others first
                with suppress(OSError):
                    folder.rmdir()
        raise


def _copy(source: Path, target: Path) -> None:
    """Copy a file; another process sees the whole of it or nothing."""
    copied = unfinished(target)
    try:
        shutil.copyfile(source, copied)
        copied.replace(target)
    finally:
        copied.unlink(missing_ok=True)
