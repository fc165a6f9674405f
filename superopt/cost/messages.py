"""Python objects through pipes, arrays as they lie in memory: pickled as a whole, all of them would be there twice."""

from __future__ import annotations

import pickle
from multiprocessing.connection import Connection
from typing import Any

_OUT_OF_BAND = 5
"""The protocol of pickle that leaves memory out (PEP 574)."""


def send(pipe: Connection, message: object) -> None:
    """Send an object that can be pickled."""
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(message, _OUT_OF_BAND, buffer_callback=buffers.append)
    pipe.send((len(buffers), pickled))
    for buffer in buffers:
        with buffer.raw() as memory:
            pipe.send_bytes(memory)


def receive(pipe: Connection) -> Any:
    """The next object; its arrays can be written to. Raises `EOFError` where the other end is closed."""
    count, pickled = pipe.recv()
    return pickle.loads(pickled, buffers=[bytearray(pipe.recv_bytes()) for _ in range(count)])  # noqa: S301
