"""A server whose disk is full says so, and not that the optimizer failed."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.types import Message

from service import problems
from service.health import Probe
from service.line import Line
from service.optimize import _optimized
from service.problems import Problem
from service.schemas import Wish
from service.settings import Settings
from service.upload import receive_model


def sent() -> Request:
    """A request with a few bytes."""

    async def receive() -> Message:
        return {"type": "http.request", "body": b"model", "more_body": False}

    return Request({"type": "http", "headers": []}, receive)


def test_a_model_that_there_is_no_room_for_is_told_as_that(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(Problem) as told:
        asyncio.run(receive_model(sent(), Path("/dev/full"), max_bytes=100, seconds=10.0))
    assert told.value.kind is problems.NO_ROOM
    assert "No space left" in caplog.text


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No temporary folder can be made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))


@pytest.mark.usefixtures("nowhere")
def test_where_no_folder_can_be_made_the_client_is_told_that_there_is_no_room() -> None:
    with pytest.raises(Problem) as told:
        asyncio.run(_optimized(sent(), Wish(), Settings(), Line(0)))
    assert told.value.kind is problems.NO_ROOM


@pytest.mark.usefixtures("nowhere")
def test_a_probe_that_cannot_be_made_is_a_fault_with_a_reason(caplog: pytest.LogCaptureFixture) -> None:
    probe = Probe()
    asyncio.run(probe.run(Settings()))
    assert probe.fault is not None
    assert "the server's log says why" in probe.fault
    assert "gone" in caplog.text
