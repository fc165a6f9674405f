"""`superopt optimize` and `show`, run as a user runs them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import onnx
import pytest

from superopt import Report, UsageError, folders
from superopt.cli import command_line
from superopt.onnx_io import load, understand
from superopt.operators.reader import read_term
from superopt.text import read
from tests.commands import COMMAND, Ran, files, superopt
from tests.models import assert_same, normalized, one_relu, silent, with_weights_beside


def quick(rules: Path, timings: Path) -> tuple[object, ...]:
    return ("--time", 20, "--rules", rules, "--timings", timings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("optimized")


@pytest.fixture(scope="module")
def ran(folder: Path, rules: Path, timings: Path) -> Ran:
    """A model with an LRN, optimized once for several tests: its report in a file, and printed."""
    onnx.save(normalized(), folder / "in.onnx")
    return superopt(
        "optimize", "in.onnx", "out.onnx", "--report", "r.json", "--json", *quick(rules, timings), cwd=folder
    )


def test_the_written_model_is_checked_by_onnx_and_computes_the_same(ran: Ran, folder: Path) -> None:
    assert ran.code == 0
    assert_same(folder / "out.onnx", folder / "in.onnx")


def test_an_lrn_is_unfolded_and_that_is_told_as_a_definition(ran: Ran, folder: Path) -> None:
    report = Report.model_validate_json(ran.out)
    assert report.outcome == "faster"
    assert report.measured is not None
    assert report.measured.speedup >= report.measured.low > 1.0
    assert ("definition of lrn", "definition") in {(r.name, r.known) for r in report.rewrites}
    assert "LRN" not in {n.op_type for n in onnx.load(folder / "out.onnx").graph.node}


def test_json_alone_is_printed_and_is_the_report_in_the_file(ran: Ran, folder: Path) -> None:
    assert ran.out == (folder / "r.json").read_text(encoding="utf-8")
    assert Report.model_validate(json.loads(ran.out)).model_dump_json(indent=2) + "\n" == ran.out


def test_progress_is_shown_on_terminals_only(ran: Ran) -> None:
    assert ran.err == ""


def test_nothing_but_the_answer_is_left_in_the_folder(ran: Ran, folder: Path) -> None:
    assert ran.code == 0
    assert set(files(folder)) == {"in.onnx", "out.onnx", "r.json"}


def test_where_nothing_is_faster_the_original_is_written_byte_for_byte(
    tmp_path: Path, rules: Path, timings: Path, inside: Callable[..., Ran]
) -> None:
    onnx.save(one_relu(), tmp_path / "m.onnx")
    ran = inside("optimize", "m.onnx", *quick(rules, timings), cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert "nothing faster was found: no rewrite makes a piece of it faster; the original comes back" in ran.out
    assert (tmp_path / "m.optimized.onnx").read_bytes() == (tmp_path / "m.onnx").read_bytes()


def test_where_nothing_is_faster_a_copy_elsewhere_has_its_weights(
    tmp_path: Path, rules: Path, timings: Path, inside: Callable[..., Ran]
) -> None:
    model = with_weights_beside(tmp_path / "from")
    (tmp_path / "to").mkdir()
    ran = inside("optimize", model, "to/o.onnx", "--no-definitions", *quick(rules, timings), cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    copied = {Path(k).name: v for k, v in files(tmp_path / "to").items()}
    assert copied == {"o.onnx": model.read_bytes(), "weights.bin": (model.parent / "weights.bin").read_bytes()}


def test_where_nothing_is_faster_a_copy_leaves_other_weights_of_the_same_name_as_they_are(
    tmp_path: Path, rules: Path, timings: Path, inside: Callable[..., Ran]
) -> None:
    model = with_weights_beside(tmp_path / "from")
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "weights.bin").write_bytes(b"of another model")
    ran = inside("optimize", model, "to/o.onnx", "--no-definitions", *quick(rules, timings), cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert (tmp_path / "to" / "weights.bin").read_bytes() == b"of another model"
    assert {path.name for path in (tmp_path / "to").iterdir()} == {"o.onnx", "o.onnx.data", "weights.bin"}
    assert_same(tmp_path / "to" / "o.onnx", model)


def test_a_model_whose_outputs_show_nothing_is_not_examined_and_comes_back(
    tmp_path: Path, rules: Path, timings: Path, inside: Callable[..., Ran]
) -> None:
    onnx.save(silent(), tmp_path / "m.onnx")
    ran = inside("optimize", "m.onnx", "--report", "r.json", *quick(rules, timings), cwd=tmp_path)
    report = Report.model_validate_json((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert (ran.code, report.outcome, report.rewrites) == (0, "original", ())
    assert 'not examined: "y" is constant' in ran.out
    assert report.compared is not None
    assert not report.compared.examined


def test_a_dry_run_writes_nothing(tmp_path: Path, rules: Path, timings: Path, inside: Callable[..., Ran]) -> None:
    onnx.save(normalized(), tmp_path / "m.onnx")
    before = files(tmp_path)
    ran = inside("optimize", "m.onnx", "--dry-run", *quick(rules, timings), cwd=tmp_path)
    assert (ran.code, files(tmp_path)) == (0, before)
    assert "faster (95 % interval" in ran.out
    assert "written to" not in ran.out


def test_files_that_exist_are_replaced_when_asked_for(
    tmp_path: Path, rules: Path, timings: Path, inside: Callable[..., Ran]
) -> None:
    onnx.save(one_relu(), tmp_path / "m.onnx")
    for name in ("o.onnx", "r.json"):
        (tmp_path / name).write_text("old")
    ran = inside(
        "optimize", "m.onnx", "o.onnx", "--report", "r.json", "--overwrite", *quick(rules, timings), cwd=tmp_path
    )
    assert ran.code == 0
    assert (tmp_path / "o.onnx").read_bytes() == (tmp_path / "m.onnx").read_bytes()
    assert Report.model_validate_json((tmp_path / "r.json").read_text(encoding="utf-8")).outcome == "original"


def test_where_the_report_cannot_be_written_the_model_is_not_either(
    tmp_path: Path, rules: Path, timings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx.save(one_relu(), tmp_path / "m.onnx")
    (tmp_path / "full").mkdir()  # as a full disk, it shows only when the report is written
    monkeypatch.setattr(folders, "unfinished", lambda path: tmp_path / "full")
    monkeypatch.chdir(tmp_path)
    before = files(tmp_path)
    asked = ["optimize", "m.onnx", "o.onnx", "--report", "r.json", *map(str, quick(rules, timings))]
    with pytest.raises(UsageError, match=r"r\.json: cannot be written"):
        command_line(asked)(asked, standalone_mode=False)
    assert files(tmp_path) == before


def test_a_command_whose_output_is_closed_is_none_that_fails(tmp_path: Path) -> None:
    run = subprocess.run(
        ["sh", "-c", 'exec "$0" -m superopt laws list >&-', sys.executable],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_hardly_any_time_gives_an_honest_answer(tmp_path: Path, rules: Path) -> None:
    onnx.save(normalized(), tmp_path / "m.onnx")
    ran = superopt(
        "optimize", "m.onnx", "--time", 0.001, "--rules", rules, "--timings", "new.sqlite", cwd=tmp_path, timeout=30
    )
    assert ran.code == 5
    assert ran.err.startswith("superopt: no piece of the model could be measured in time")
    assert not list(tmp_path.glob("*.optimized.onnx"))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.usefixtures("hangups_heeded")
def test_a_signal_ends_it_and_leaves_nothing_behind(
    number: signal.Signals, code: int, tmp_path: Path, rules: Path
) -> None:
    onnx.save(normalized(size=224), tmp_path / "m.onnx")
    before, temporary = files(tmp_path), tmp_path / ".cache"
    temporary.mkdir()
    run = subprocess.Popen(
        [*COMMAND, "optimize", "m.onnx", "--rules", str(rules), "--timings", ".cache/t.sqlite"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + 30
    while not list(temporary.glob("superopt-*")) and time.monotonic() < end:
        time.sleep(0.05)
    assert list(temporary.glob("superopt-*")), "it never began"
    os.killpg(run.pid, number)
    out, err = run.communicate(timeout=30)
    assert (run.returncode, out) == (code, "")
    assert "Traceback" not in err
    assert files(tmp_path) == before
    assert not list(temporary.glob("superopt-*"))


def test_weights_of_a_result_that_is_replaced_are_left_and_that_is_said(
    tmp_path: Path, rules: Path, timings: Path, inside: Callable[..., Ran]
) -> None:
    """Another model may read them, as this copy does."""
    model = with_weights_beside(tmp_path / "from")
    (tmp_path / "to").mkdir()
    arguments = ("optimize", model, "to/o.onnx", "--overwrite", *quick(rules, timings))
    first = inside(*arguments, cwd=tmp_path)
    shutil.copy(tmp_path / "to" / "o.onnx", tmp_path / "to" / "copy.onnx")
    second = inside(*arguments, cwd=tmp_path)
    assert (first.code, second.code) == (0, 0)
    assert "written to to/o.onnx, its weights to o.onnx.data\n" in first.out
    assert "are left" not in first.out
    assert "written to to/o.onnx, its weights to o.onnx.1.data\n" in second.out
    assert "the weights of the model that was there are left: o.onnx.data\n" in second.out
    for name in ("o.onnx", "copy.onnx"):
        assert_same(tmp_path / "to" / name, model)


def test_shown_terms_parse_back(tmp_path: Path, inside: Callable[..., Ran]) -> None:
    onnx.save(normalized(), tmp_path / "m.onnx")
    ran = inside("show", "m.onnx", cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "4 of 4 nodes are understood\n")
    program = understand(load(tmp_path / "m.onnx"))
    terms = {n: t for s in program.steps for n, t in zip(s.outputs, s.terms, strict=True)}
    shown = dict(line.split(" = ") for line in ran.out.splitlines())
    assert set(shown) == {f"?{n}" for n in terms}
    for name, text in shown.items():
        (sexp,) = read(text)
        assert read_term(sexp, program.values) is terms[name[1:]]


def test_weights_move_to_a_file_beside_when_asked_for(
    tmp_path: Path, rules: Path, timings: Path, inside: Callable[..., Ran]
) -> None:
    onnx.save(normalized(), tmp_path / "m.onnx")
    ran = inside("optimize", "m.onnx", "o.onnx", "--save-external", *quick(rules, timings), cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert (tmp_path / "o.onnx.data").exists()
    assert_same(onnx.load(tmp_path / "o.onnx"), normalized())


def test_weights_that_were_in_a_file_stay_in_one(
    tmp_path: Path, rules: Path, timings: Path, inside: Callable[..., Ran]
) -> None:
    model = with_weights_beside(tmp_path / "from")
    ran = inside("optimize", model, "o.onnx", *quick(rules, timings), cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert "nothing faster" not in ran.out
    assert (tmp_path / "o.onnx.data").exists()
    assert_same(onnx.load(tmp_path / "o.onnx"), normalized())


def test_the_version_is_that_of_the_package(inside: Callable[..., Ran], tmp_path: Path) -> None:
    assert inside("--version", cwd=tmp_path) == Ran(0, f"superopt {version('superopt')}\n", "")
