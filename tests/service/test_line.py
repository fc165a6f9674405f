"""The line in front of the optimizer."""

import asyncio
from collections.abc import Coroutine

import pytest

from service.line import Line
from service.problems import BUSY, Problem


def run(work: Coroutine[None, None, None]) -> None:
    asyncio.run(work)


def test_one_has_its_turn_at_a_time_and_in_order_of_arrival() -> None:
    events: list[str] = []

    async def visit(line: Line, name: str) -> None:
        async with line.place(), line.turn(1):
            events.append(f"{name} in")
            await asyncio.sleep(0.01)
            events.append(f"{name} out")

    async def three() -> None:
        line = Line(waiting=2)
        await asyncio.gather(*(visit(line, name) for name in "abc"))

    run(three())
    assert events == ["a in", "a out", "b in", "b out", "c in", "c out"]


def test_a_full_line_refuses_and_says_when_to_come_back() -> None:
    async def overfill() -> None:
        line = Line(waiting=0)
        async with line.place(), line.turn(30):
            with pytest.raises(Problem) as refused:
                line.require_room()
        assert refused.value.kind is BUSY
        assert refused.value.headers == {"Retry-After": "30"}

    run(overfill())


def test_a_place_is_free_again_when_its_holder_leaves() -> None:
    async def leave_and_return() -> None:
        line = Line(waiting=0)
        for _ in range(3):
            with pytest.raises(RuntimeError, match="left"):
                async with line.place():
                    raise RuntimeError("left")
        line.require_room()

    run(leave_and_return())
