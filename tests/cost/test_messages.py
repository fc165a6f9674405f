"""Objects come through pipes as they are, and arrays beside what is pickled."""

from __future__ import annotations

import os
import tracemalloc
from multiprocessing import Pipe
from threading import Thread

import numpy as np
import pytest

from superopt.cost.messages import receive, send


def sent(message: object) -> object:
    """What comes out of a pipe for what goes in."""
    ours, theirs = Pipe()
    with ours, theirs:
        sender = Thread(target=send, args=(ours, message))
        sender.start()
        found = receive(theirs)
        sender.join()
    return found


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4),
        np.arange(12.0).reshape(3, 4).T[::2],
        np.zeros((0, 3), np.int8),
        np.array(["a", "bc"], object),
        np.broadcast_to(np.float32(2), (3, 2)),
    ],
    ids=["plain", "parts", "empty", "words", "repeated"],
)
def test_arrays_come_as_they_are_and_can_be_written_to(array: np.ndarray) -> None:
    found = sent({"x": [array, "y"]})
    assert isinstance(found, dict)
    (one, text) = found["x"]
    assert (one.dtype, one.shape, text) == (array.dtype, array.shape, "y")
    np.testing.assert_array_equal(one, array)
    one[...] = one[...]


def test_errors_come_as_they_are() -> None:
    found = sent((False, ValueError("no")))
    assert isinstance(found, tuple)
    assert str(found[1]) == "no"


def test_who_sends_an_array_does_not_hold_it_twice() -> None:
    ours, theirs = Pipe()
    array = np.ones(2**22)

    def drain() -> None:
        left = array.nbytes
        while left > 0:
            left -= len(os.read(theirs.fileno(), 2**16))

    with ours, theirs:
        reader = Thread(target=drain)
        reader.start()
        tracemalloc.start()
        send(ours, array)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        reader.join()
    assert peak < array.nbytes / 8
