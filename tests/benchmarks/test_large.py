"""The large model: as large as asked, and understood."""

from __future__ import annotations

from pathlib import Path

import onnx

from benchmarks.large import model
from superopt.onnx_io import load, understand
from superopt.search.cutting.pieces import cut_into_pieces, distinct


def test_it_is_understood_and_its_blocks_are_equal_pieces(tmp_path: Path) -> None:
    made = model(600)
    assert 600 <= len(made.graph.node) < 800
    onnx.checker.check_model(made, full_check=True)
    onnx.save(made, tmp_path / "m.onnx")
    program = understand(load(tmp_path / "m.onnx"))
    assert not program.summary.opaque
    pieces = cut_into_pieces(program)
    assert len(distinct(pieces)) < len(pieces) * 0.8
