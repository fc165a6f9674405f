"""Model files copied with the files of their weights."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from superopt.errors import UsageError
from superopt.onnx_io import copy_model
from tests.onnx_io.test_files import large_weight


def test_a_failing_copy_of_a_model_leaves_none_of_its_weights(tmp_path: Path) -> None:
    source, target = tmp_path / "from", tmp_path / "to"
    for folder in (source / "parts", source / "rest", target):
        folder.mkdir(parents=True)
    given = large_weight()
    second = onnx.TensorProto.FromString(given.graph.initializer[0].SerializeToString())
    second.name = "more"
    given.graph.initializer.append(second)
    for weight, place in zip(given.graph.initializer, ("parts/a.data", "rest/b.data"), strict=True):
        onnx.external_data_helper.set_external_data(weight, place)
        (source / place).write_bytes(weight.raw_data)
        weight.ClearField("raw_data")
    (source / "m.onnx").write_bytes(given.SerializeToString())
    (target / "rest").write_text("no folder")
    with pytest.raises(UsageError, match="cannot be written"):
        copy_model(source / "m.onnx", target / "m.onnx")
    assert [p.name for p in target.iterdir()] == ["rest"]
    (target / "rest").unlink()
    assert copy_model(source / "m.onnx", target / "m.onnx")
    assert (target / "parts/a.data").read_bytes() == (source / "parts/a.data").read_bytes()
