"""Who is optimized when: one at a time, in order of arrival, with a bounded number waiting.

Two searches at once would disturb each other's measurements, so there is exactly one.
"""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from service.problems import BUSY, Problem


class Line:
    """A queue in front of the one optimizer."""

    def __init__(self, waiting: int) -> None:
        self._places = waiting + 1  # the one being served has a place too
        self._taken = 0
        self._turn = asyncio.Lock()
        self._until = 0.0
        self._empty = asyncio.Event()
        self._empty.set()

    def require_room(self) -> None:
        """Raises the problem `busy` where all places are taken."""
        if self._taken >= self._places:
            raise Problem(
                BUSY,
                f"{self._taken} requests are already here, which is all that this server lets wait",
                headers={"Retry-After": str(self._seconds_left())},
            )

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """A place in the line, from before a model is received, so that uploads are bounded too.

        Raises the problem `busy` where all are taken.
        """
        self.require_room()
        self._taken += 1
        self._empty.clear()
        try:
            yield
        finally:
            self._taken -= 1
            if not self._taken:
                self._empty.set()

    async def emptied(self) -> None:
        """Wait until nobody is here."""
        await self._empty.wait()

    @asynccontextmanager
    async def turn(self, seconds: float) -> AsyncIterator[None]:
        """Wait for one's turn, which lasts at most `seconds`."""
        async with self._turn:
            self._until = asyncio.get_running_loop().time() + seconds
            yield

    def _seconds_left(self) -> int:
        """Until the one being served must be done; a second where nobody is served yet."""
        return max(1, math.ceil(self._until - asyncio.get_running_loop().time()))
