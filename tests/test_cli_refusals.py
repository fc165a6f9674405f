"""Bad input: one line that names the culprit, the right exit code, and no file touched or left."""

from __future__ import annotations

import os
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from superopt import api
from tests.commands import Ran, assert_refused, files, superopt
from tests.models import model, normalized, one_relu, weight, with_weights_beside
from tests.usable import why_not

Command = Callable[..., Ran]

UNUSABLE = [name for name in ("onnxruntime-cuda", "onnxruntime-tensorrt") if why_not(name)]
UNREADABLE = ["empty", "text", "truncated", "unchecked", "without weights"]


def unreadable(kind: str, folder: Path) -> Path:
    """A file that is no valid model."""
    path = folder / "m.onnx"
    whole = normalized().SerializeToString()
    if kind == "unchecked":
        broken = one_relu()
        broken.graph.node[0].input[0] = "nobody"
        onnx.save(broken, path)
    elif kind == "without weights":
        onnx.save(onnx.load(with_weights_beside(folder / "other"), load_external_data=False), path)
    else:
        path.write_bytes({"empty": b"", "text": b"hello, model\n", "truncated": whole[: len(whole) // 2]}[kind])
    return path


@pytest.mark.parametrize("kind", UNREADABLE)
def test_an_invalid_model_is_refused_by_name(inside: Command, kind: str, tmp_path: Path, rules: Path) -> None:
    unreadable(kind, tmp_path)
    before = files(tmp_path)
    ran = inside("optimize", "m.onnx", "o.onnx", "--report", "r.json", "--rules", rules, cwd=tmp_path)
    assert_refused(ran, 3, "m.onnx", "weights.bin" if kind == "without weights" else "")
    assert files(tmp_path) == before


def test_a_file_that_appears_during_a_search_is_left_as_it_is(
    inside: Command, tmp_path: Path, rules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx.save(one_relu(), tmp_path / "m.onnx")
    searched = api.optimize

    def meanwhile(*given: Any) -> api.Result:
        (tmp_path / "o.onnx").write_text("precious")
        return searched(*given)

    monkeypatch.setattr(api, "optimize", meanwhile)
    ran = inside("optimize", "m.onnx", "o.onnx", "--report", "r.json", "--rules", rules, "--time", "5", cwd=tmp_path)
    assert_refused(ran, 2, "o.onnx", "exists already")
    assert files(tmp_path).keys() == {"m.onnx", "o.onnx"}
    assert (tmp_path / "o.onnx").read_text() == "precious"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a clumsy user has at hand; nothing of it may change."""
    path = tmp_path_factory.mktemp("clumsy")
    onnx.save(one_relu(), path / "m.onnx")
    with_weights_beside(path / "big")
    (path / "a folder").mkdir()
    os.mkfifo(path / "pipe.onnx")
    (path / "old").write_text("precious")
    taken = helper.make_node("Gather", ["table", "i"], ["y"])
    ends = [("i", TensorProto.INT64, [4]), ("y", TensorProto.FLOAT, [4, 8])]
    onnx.save(model([taken], ends[:1], ends[1:], {"table": weight(16, 8)}), path / "table.onnx")
    np.savez(path / "beyond.npz", i=np.full(4, 99))
    np.savez(path / "other.npz", z=np.zeros(3))
    np.savez(path / "wide.npz", x=np.zeros((1, 4), np.float32))
    np.savez_compressed(path / "damaged.npz", x=np.arange(999.0))
    whole = (path / "damaged.npz").read_bytes()
    (path / "damaged.npz").write_bytes(whole[:200] + bytes(100) + whole[300:])
    with zipfile.ZipFile(path / "mixed.npz", "w") as archive:
        archive.writestr("notes", "hello")
    with closing(sqlite3.connect(path / "theirs.db")) as theirs:
        theirs.execute("CREATE TABLE customers (name TEXT)")
    (path / "syntax.rules").write_text(
        "(rules :format 1)\n(rule r\n  (given (?x n))\n  (from (relu ?x)) (to (relu ?x))"
    )
    (path / "unknown.rules").write_text("(rule r (given (?x n))\n  (from (sinh ?x)) (to (relu ?x)))")
    (path / "wrong.rules").write_text("(rule mine (given (?x n)) (from (relu (relu ?x))) (to (add ?x ?x)))")
    return path


REFUSED = {
    "the model is missing": (["nowhere.onnx"], "nowhere.onnx"),
    "the model is a folder": (["a folder"], "a folder"),
    "the model is a pipe": (["pipe.onnx"], "pipe.onnx: cannot be read as often as is needed, it is no regular file"),
    "the result exists": (["m.onnx", "old"], "old"),
    "the report exists": (["m.onnx", "o.onnx", "--report", "old"], "old"),
    "the result is the model": (["m.onnx", "big/../m.onnx", "--overwrite"], "m.onnx"),
    "the result is the model's weights": (["big/m.onnx", "big/weights.bin", "--overwrite"], "weights.bin"),
    "the report is the result": (["m.onnx", "o.onnx", "--report", "./o.onnx"], "o.onnx: the model goes there"),
    "the report is where the result's weights go": (
        ["m.onnx", "o.onnx", "--report", "o.onnx.data"],
        "o.onnx.data: the model's weights may go there",
    ),
    "the report is there, in other words": (
        ["m.onnx", "o.onnx", "--report", "big/../o.onnx.data"],
        "o.onnx.data: the model's weights may go there",
    ),
    "the report is where they go if others are there": (["m.onnx", "o.onnx", "--report", "o.onnx.2.data"], "weights"),
    "the result is a folder, and that is told first": (["m.onnx", "a folder"], "it is a folder"),
    "the report is a rule file": (
        ["m.onnx", "o.onnx", "--rules", "wrong.rules", "--report", "wrong.rules", "--overwrite"],
        "wrong.rules",
    ),
    "the result's folder is missing": (["m.onnx", "none/o.onnx"], "none"),
    "the result is below a file": (["m.onnx", "old/o.onnx"], "old/o.onnx"),
    "the result is a folder": (["m.onnx", "a folder", "--overwrite"], "a folder"),
    "the result is a device": (["m.onnx", "/dev/null", "--overwrite"], "/dev/null"),
    "the result's name is too long": (["m.onnx", "o" * 300], "too long"),
    "the timings are the model": (["m.onnx", "--timings", "m.onnx"], "m.onnx"),
    "the timings are the model's weights": (["big/m.onnx", "--timings", "big/weights.bin"], "weights.bin"),
    "the timings are somebody's notes": (["m.onnx", "--timings", "old"], "old"),
    "the timings are the report": (["m.onnx", "--timings", "r", "--report", "r"], "r: "),
    "the timings are another program's": (["m.onnx", "--timings", "theirs.db"], "another program's"),
    "the timings have no name": (["m.onnx", "--timings", "."], "no table of timings"),
    "the report is the model's weights": (
        ["big/m.onnx", "o.onnx", "--report", "big/weights.bin", "--overwrite"],
        "weights.bin",
    ),
    "the model has no name": (["."], ".: this is a folder"),
    "the model's name is not UTF-8": (["m\udcff.onnx"], "'m\\udcff.onnx': the path is not UTF-8"),
    "no time": (["m.onnx", "--time", "0"], "time"),
    "endless time": (["m.onnx", "--time", "nan"], "time"),
    "alpha below 1": (["m.onnx", "--alpha", "0.5"], "alpha"),
    "no threads": (["m.onnx", "--threads", "0"], "threads"),
    "too many threads": (["m.onnx", "--threads", "100000"], "threads"),
    "a runtime that nobody knows": (["m.onnx", "--runtime", "ours"], "runtime"),
    **{f"{name} without a GPU": (["m.onnx", "--runtime", name], f"runtime {name} ") for name in UNUSABLE},
    "a shape without sizes": (["m.onnx", "--shape", "x"], "shape"),
    "a shape of no input": (["m.onnx", "--shape", "nowhere:1"], "nowhere"),
    "a negative seed": (["m.onnx", "--seed", "-1"], "seed"),
    "samples that are missing": (["m.onnx", "--inputs", "none.npz"], "none.npz"),
    "samples that are no arrays": (["m.onnx", "--inputs", "m.onnx"], "m.onnx"),
    "samples that are damaged": (["m.onnx", "--inputs", "damaged.npz"], "damaged.npz"),
    "samples beside other files": (["m.onnx", "--inputs", "mixed.npz"], "'notes'"),
    "samples of other inputs": (["m.onnx", "--inputs", "other.npz"], "'x'"),
    "samples of another shape": (["m.onnx", "--inputs", "wide.npz"], "(1, 4)"),
    "samples that the model does not run on": (
        ["table.onnx", "--inputs", "beyond.npz"],
        "inputs: the model does not run on sample 1: ",
    ),
    "rules that are missing": (["m.onnx", "--rules", "none.rules"], "none.rules"),
    "rules that do not parse": (["m.onnx", "--rules", "syntax.rules"], "syntax.rules:2:1:"),
    "rules of an unknown operator": (["m.onnx", "--rules", "unknown.rules"], "unknown.rules:2:9:"),
    "rules that do not prove": (["m.onnx", "--rules", "wrong.rules"], "wrong.rules: rule mine does not prove"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_refused_before_anything_is_written(inside: Command, case: str, folder: Path) -> None:
    arguments, named = REFUSED[case]
    before = files(folder)
    assert_refused(inside("optimize", *arguments, cwd=folder), 2, named)
    assert files(folder) == before


@pytest.mark.parametrize("arguments", [["optimize"], ["optimize", "m.onnx", "--colour", "red"], ["paint"]])
def test_a_line_that_is_no_command_is_explained(inside: Command, arguments: list[str], folder: Path) -> None:
    ran = inside(*arguments, cwd=folder)
    assert (ran.code, ran.out) == (2, "")
    assert "\nError: " in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("command", "explained"),
    [
        ("optimize", ["Exit codes", "--time", "--overwrite", "OUT", "IN.optimized.onnx", "--json"]),
        ("show", ["IN", "opaque"]),
        ("serve", ["--host", "superopt[service]"]),
        ("rules generate", ["--operators", "--only", "--max-ops", "--seed"]),
        ("rules verify", ["exit code 2"]),
    ],
)
def test_help_explains_each_command(inside: Command, command: str, explained: list[str], folder: Path) -> None:
    ran = inside(*command.split(), "--help", cwd=folder)
    assert (ran.code, ran.err) == (0, "")
    for word in explained:
        assert word in ran.out


@pytest.mark.parametrize(
    "command",
    [
        *(("optimize", "m.onnx", "new.onnx"), ("show", "m.onnx"), ("inspect", "m.onnx", "--no-time")),
        *(("rules", "generate", "--out", "new.rules"), ("rules", "verify", "unknown.rules")),
        *(("rules", "list", "unknown.rules"), ("rules", "show", "r", "--file", "unknown.rules")),
    ],
)
def test_a_file_of_operators_that_cannot_be_used_is_refused(
    inside: Command, command: tuple[str, ...], folder: Path
) -> None:
    before = files(folder)
    assert_refused(inside(*command, "--operators", "mine.py", cwd=folder), 2, "mine.py", "No such file")
    assert files(folder) == before


def test_a_refusal_is_one_line_and_an_exit_code_of_a_real_process(folder: Path) -> None:
    assert_refused(superopt("optimize", "m.onnx", "old", cwd=folder), 2, "old")


def test_a_model_that_the_runtime_does_not_know_comes_back_and_why(
    tmp_path: Path, rules: Path, inside: Command
) -> None:
    ours = one_relu()
    ours.graph.node[0].domain = "of.our.own"
    ours.opset_import.append(helper.make_opsetid("of.our.own", 1))
    onnx.save(ours, tmp_path / "m.onnx")
    ran = inside("optimize", "m.onnx", "o.onnx", "--rules", rules, "--timings", ".cache/t", cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert "it could not be measured" in ran.out
    assert "of.our.own" in ran.out
    assert (tmp_path / "o.onnx").read_bytes() == (tmp_path / "m.onnx").read_bytes()


def test_weights_are_not_overwritten_where_the_model_is_a_link(inside: Command, tmp_path: Path) -> None:
    """They lie beside the link, as it is read."""
    given = with_weights_beside(tmp_path / "here")
    weights = given.with_name("weights.bin")
    given.rename(tmp_path / "m.onnx")
    given.symlink_to(tmp_path / "m.onnx")
    before = weights.read_bytes()
    ran = inside("optimize", given, weights, "--overwrite", cwd=tmp_path)
    assert_refused(ran, 2, weights.name, "weights")
    assert weights.read_bytes() == before


@pytest.mark.parametrize(("kernel", "taken"), [(7, "1,3,224,8"), (701, "1,3,1,8")])
def test_sizes_that_nobody_gave_are_told_and_how_to_give_others(
    kernel: int, taken: str, tmp_path: Path, rules: Path, inside: Command
) -> None:
    """A convolution that has room at a likely size, and one that has at none: that it could not be measured is told."""
    ends = [("x", TensorProto.FLOAT, [1, 3, "H", 8]), ("y", TensorProto.FLOAT, [1, 2, "h", 2])]
    node = helper.make_node("Conv", ["x", "k"], ["y"])
    onnx.save(model([node], ends[:1], ends[1:], {"k": weight(2, 3, kernel, 7)}), tmp_path / "m.onnx")
    asked = ("optimize", "m.onnx", "o.onnx", "--rules", rules, "--timings", ".cache/t")
    ran = inside(*asked, cwd=tmp_path)
    assert ("it could not be measured" in ran.out) == (kernel > 700)
    assert f"symbolic sizes were taken as by --shape x:{taken}" in " ".join(ran.out.split())
    given = inside(*asked, "--shape", f"x:1,3,{kernel},8", "--overwrite", cwd=tmp_path)
    assert "it could not be measured" not in given.out
    assert "symbolic sizes were taken" not in given.out
