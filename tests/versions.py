"""What only newer versions of libraries do; `make floors` runs the tests with the oldest ones that are allowed."""

from __future__ import annotations

from types import ModuleType


def since(library: ModuleType, *least: int) -> bool:
    """Whether a library is of this version or a later one, by its first numbers."""
    return tuple(map(int, library.__version__.split(".")[: len(least)])) >= least
