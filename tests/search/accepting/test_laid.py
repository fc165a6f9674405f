"""What is laid in files while models are compared comes back as it was, and what cannot be laid stays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from superopt.arithmetic.carrier import Array
from superopt.search.accepting.laid import LEAST_BYTES, Laid, laid, taken

COUNT = LEAST_BYTES
DRAWN = np.random.default_rng(0).standard_normal((2, COUNT // 2))
LARGE: dict[str, Array] = {
    kind: DRAWN.astype(kind) for kind in ("float16", "float32", "float64", "int64", "uint8", "bool", "complex64")
} | {"not in order": np.asarray(DRAWN, order="F"), "in part": DRAWN[:, ::-2]}
KEPT: dict[str, Array] = {
    "small": np.zeros(3),
    "no elements": np.zeros((0, 5)),
    "text": np.array(["cat", "dog"] * COUNT, object),
    "maps": np.zeros(COUNT, [("a", "f4"), ("b", "f4")]),
    "repeated": np.broadcast_to(DRAWN[:1], (50, *DRAWN[:1].shape)),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_array_of_numbers_comes_back_from_its_file(name: str, tmp_path: Path) -> None:
    given = LARGE[name]
    found = laid(given, tmp_path)
    assert isinstance(found, Laid)
    again = taken(found)
    assert again.dtype == given.dtype
    assert np.array_equal(again, given)


@pytest.mark.parametrize("name", KEPT)
def test_any_other_array_stays(name: str, tmp_path: Path) -> None:
    assert laid(KEPT[name], tmp_path) is KEPT[name]
    assert not list(tmp_path.iterdir())


def test_where_there_is_no_room_an_array_stays(tmp_path: Path) -> None:
    assert laid(DRAWN, tmp_path / "gone") is DRAWN
