"""Every test of a model draws the same numbers, whichever tests ran before it."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def drawn_anew(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a module draws from begins anew."""
    for name, value in vars(request.module).items():
        if isinstance(value, np.random.Generator):
            monkeypatch.setattr(request.module, name, np.random.default_rng(0))
