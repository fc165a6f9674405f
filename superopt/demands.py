"""What a shape rule demands of sizes: it holds, it does not, or it is noted for who decides it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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


def noted(since: int = 0) -> Sequence[Condition]:
    """What the innermost `assuming` block has noted, but for the first so many."""
    conditions = _collected.get()
    return conditions[since:] if conditions else ()


def note_again(conditions: Iterable[Condition]) -> None:
    """Have the innermost `assuming` block, if there is one, note what another one did."""
    collected = _collected.get()
    if collected is not None:
        collected.extend(conditions)


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
