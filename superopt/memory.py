"""Memory that is no longer used, given back to the system: models, their 64-bit values and the sessions of the runtime
share what there is.

Only where the C library is glibc, which keeps most of what is freed; elsewhere nothing is done.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -2, -3, -8  # malloc.h
_LARGE_BYTES = 2**19
_KEPT_BYTES = 2**25
_OBJECTS = 20_000
_MUCH_BYTES = 2**28
_ENTERING = Lock()
_BEFORE: list[tuple[int, int, int]] = []
"""How often cycles were looked for when each of those came that are within `seldom_collecting` now."""


def settle() -> None:
    """Let what is alive stay to the end, modules and their tables mostly: `give_back` passes it over from here on.

    Looking through it takes a tenth of a second, as often as a model is given back. Once in a process: what is garbage
    at a later time would stay too.
    """
    if not gc.get_freeze_count():
        gc.freeze()


def give_back() -> None:
    """Give back what is free. Models lie in reference cycles, with all of their weights."""
    gc.collect()
    trim()


def trim() -> None:
    """Give back what is free, without looking for more: that takes long where there are many objects."""
    _call("malloc_trim", 0)


def trim_much() -> None:
    """Give back what is free where much is held: what large models leave when they are run one after the other.

    Where little is, it stays: an allocation whose pages come anew each time takes longer, which small models show.
    """
    if resident() > _MUCH_BYTES:
        trim()


def resident() -> int:
    """The bytes that this process has in memory; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * mmap.PAGESIZE
    except (OSError, ValueError, IndexError):
        return 0


@contextmanager
def giving_back_large() -> Iterator[None]:
    """Within it large arrays are given back as soon as they are freed, and small ones of all threads kept in one place.

    The 64-bit evaluation of a DenseNet needs 40 MB at a time; 240 MB were kept of it. It takes up to 1.7 times as long,
    since all comes back as new pages; with 128 KB for the half megabyte twice as long, for 10 MB less.
    """
    _call("mallopt", _M_MMAP_THRESHOLD, _LARGE_BYTES)
    _call("mallopt", _M_ARENA_MAX, 1)
    try:
        yield
    finally:
        keep_freed()


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Within it reference cycles are looked for after every 20,000 objects that were made and kept, and not after 700.

    A search makes terms by the million, which are in no cycles; looking through them took a sixth of its time, and a
    third of that of reading a model of thousands of nodes. Of several threads the last one to leave has it as it was.
    """
    with _ENTERING:
        before = gc.get_threshold()
        _BEFORE.append(before)
        gc.set_threshold(max(before[0], _OBJECTS) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        with _ENTERING:
            first = _BEFORE.pop()
            if not _BEFORE:
                gc.set_threshold(*first)


def keep_freed() -> None:
    """From now on keep what is freed, up to 32 MB, as long as the process lives.

    Each proof has a solver of its own. Where its memory came from the system and went back each time, which depends on
    what happens to lie behind it, proofs took up to twice as long.
    """
    _call("mallopt", _M_TRIM_THRESHOLD, _KEPT_BYTES)
    _call("mallopt", _M_TOP_PAD, _KEPT_BYTES // 4)
    _call("mallopt", _M_MMAP_THRESHOLD, _KEPT_BYTES)


def _call(name: str, *arguments: int) -> None:
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if hasattr(library, name):
        getattr(library, name)(*arguments)
