"""Memory that is no longer used, given back to the system: models, their 64-bit values and the sessions of the runtime
share what there is.

Only where the C library is glibc, which keeps most of what is freed; elsewhere nothing is done.
"""

from __future__ import annotations

import ctypes
import gc
import sys

_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # malloc.h
_LARGE_BYTES = 2**17


def give_back() -> None:
    """Give back what is free. Models lie in reference cycles, with all of their weights."""
    gc.collect()
    _call("malloc_trim", 0)


def give_back_large() -> None:
    """From now on give large arrays back as soon as they are freed, and keep small ones of all threads in one place.

    The 64-bit evaluation of a DenseNet needs 40 MB at a time; 240 MB were kept of it. It takes up to twice as long,
    since all comes back as new pages.
    """
    _call("mallopt", _M_MMAP_THRESHOLD, _LARGE_BYTES)
    _call("mallopt", _M_ARENA_MAX, 1)


def _call(name: str, *arguments: int) -> None:
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if hasattr(library, name):
        getattr(library, name)(*arguments)
