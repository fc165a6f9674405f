"""What a shape rule demands of sizes: it holds, it does not, or it is noted for who decides it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from superopt.dim import Condition, Truth
from superopt.errors import ShapeError, Undecided

_collected: ContextVar[list[Condition] | None] = ContextVar("collected", default=None)


@contextmanager
def assuming() -> Iterator[list[Condition]]:
    """Within this block an undecided `require` is noted in the list that is given, instead of raising."""
    conditions: list[Condition] = []
    token = _collected.set(conditions)
    try:
        yield conditions
    finally:
        _collected.reset(token)


def require(truth: Truth, message: str) -> None:
    """Demand something of sizes. Raises `ShapeError` where it is false, `Undecided` where that is not known and no
    `assuming` block notes it.
    """
    if isinstance(truth, Condition):
        conditions = _collected.get()
        if conditions is None:
            raise Undecided(f"{message} (undecided: {truth})")
        conditions.append(truth)
    elif not truth:
        raise ShapeError(message)
