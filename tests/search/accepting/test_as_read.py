"""A model that gains by what is written otherwise is left so where its pieces gain nothing in the whole."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from superopt.onnx_io import load, understand
from superopt.search.accepting import as_read
from superopt.search.accepting.trial import Trial
from superopt.search.cutting.pieces import cut_into_pieces
from superopt.search.paired import Paired, Timed
from superopt.search.strategies.found import Found, Outcome, Solved
from tests.search.accepting.test_anew import written_out


@pytest.mark.parametrize("otherwise", [True, False])
@pytest.mark.parametrize("gain", [1.05, 1.2])
@pytest.mark.parametrize("ratio", [0.99, 1.01, None])
def test_a_model_written_otherwise_is_left_as_it_is_read_where_it_is_faster_so(
    otherwise: bool, gain: float, ratio: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where pieces should gain much it is not measured, nor is it where the model as it is read is the original."""
    (piece,) = cut_into_pieces(understand(load(written_out())))
    start = Found(piece.canonical, 1.0, ())
    cover = [Solved((piece,), Outcome(start), replace(start, cost=1.0 / gain), gain)]
    alone = Timed(0.01, 0.01, 0.01, 6, 60)
    found = None if ratio is None else Paired(alone, alone, ratio, ratio - 0.05, ratio + 0.05, 6, 60, (ratio,) * 6)
    monkeypatch.setattr(as_read, "is_in_time", lambda *_: True)
    monkeypatch.setattr(as_read, "measured_beside", lambda *_: found)
    objective = SimpleNamespace(better="faster", total=sum)
    trial = SimpleNamespace(program=SimpleNamespace(otherwise=otherwise), objective=objective)
    left = as_read.as_read_if_faster(cover, cast(Trial, trial), None)
    assert [s.gain for s in left] == [1.0 if (otherwise, gain, ratio) == (True, 1.05, 0.99) else gain]
