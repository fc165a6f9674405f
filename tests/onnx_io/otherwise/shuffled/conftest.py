"""Of how many channels blocks are, and what is worth it."""

from __future__ import annotations

import pytest

from superopt.onnx_io.otherwise.shuffled import pieces, shuffled


@pytest.fixture(params=[8, 16])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(pieces, "block", lambda: request.param)
    return int(request.param)


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is shuffled is worth it."""
    monkeypatch.setattr(shuffled, "cost_of", lambda *_: -1.0)
