"""How often reference cycles are looked for is as it was, in the end."""

from __future__ import annotations

import gc
from contextlib import ExitStack

import pytest

from superopt.memory import seldom_collecting


def entered() -> ExitStack:
    """A thread's own block, that it leaves when it is closed."""
    own = ExitStack()
    own.enter_context(seldom_collecting())
    return own


def test_whoever_leaves_last_has_it_as_it_was() -> None:
    before = gc.get_threshold()
    first = entered()
    second = entered()
    first.close()
    assert gc.get_threshold()[0] > before[0]
    second.close()
    assert gc.get_threshold() == before


def test_an_error_leaves_it_as_it_was() -> None:
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="within"), seldom_collecting(), seldom_collecting():
        raise ValueError("within")
    assert gc.get_threshold() == before
