"""`superopt rules import`, `export`, `obligations` and `verify`, run as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from superopt.rules.exchange.json_form import parse_json
from superopt.rules.format import load_rules
from superopt.verify.trusted import facts_of, sealed
from tests.commands import Ran, assert_refused, files, superopt

CASES = Path(__file__).parent / "verify" / "cases"
TASO = Path(__file__).parent / "rules" / "cases" / "taso.pb"


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that TASO's rules are imported into."""
    folder = tmp_path_factory.mktemp("imported")
    assert superopt("rules", "import", TASO, "--from", "taso", "--out", "t.rules", cwd=folder).code == 0
    return folder / "t.rules"


def test_rules_of_taso_are_imported_each_under_its_condition_and_prove_again(
    inside: Callable[..., Ran], tmp_path: Path
) -> None:
    done = inside("rules", "import", TASO, "--from", "taso", "--out", "t.rules", "--witnesses", "wrong", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "2 refuted" in done.err
    assert "taso-18: refuted: 1 on the left and 0 on the right" in done.out
    assert "taso-12: unknown" in done.out
    assert "holds if (= h n)" in done.out
    assert {p.name for p in (tmp_path / "wrong").iterdir()} == {"taso-18", "taso-23"}
    again = inside("rules", "verify", "t.rules", cwd=tmp_path)
    assert again.code == 0, again.err
    assert again.err.startswith(f"{len(load_rules(tmp_path / 't.rules').rules)} of ")
    back = inside("rules", "export", "t.rules", "--to", "taso", "--out", "t.pb", "--skip", cwd=tmp_path)
    assert back.code == 0, back.err
    assert "left out: taso-18: it holds under a condition" in back.err


def test_the_witness_saved_is_one_that_a_runtime_runs(inside: Callable[..., Ran], tmp_path: Path) -> None:
    done = inside("rules", "verify", CASES / "refuted.rules", "--witnesses", "w", "--json", cwd=tmp_path)
    assert done.code == 2
    assert "does not prove: refuted: " in done.err
    for row in json.loads(done.out):
        folder = tmp_path / "w" / row["rule"]
        arrays, outputs = np.load(folder / "inputs.npz"), []
        for side in ("source", "target"):
            session = ort.InferenceSession(folder / f"{side}.onnx", providers=["CPUExecutionProvider"])
            given = {i.name: arrays[i.name] for i in session.get_inputs()}
            outputs.append(session.run(None, given)[row["witness"]["output"]])
        assert outputs[0].shape != outputs[1].shape or not np.allclose(*outputs)


@pytest.mark.parametrize("form", ["json", "egg", "onnxscript", "taso"])
def test_rules_are_exported(inside: Callable[..., Ran], form: str, tmp_path: Path) -> None:
    done = inside("rules", "export", CASES / "proved.rules", "--to", form, "--out", "out", "--skip", cwd=tmp_path)
    assert done.code == 0, done.err
    assert (tmp_path / "out").stat().st_size > 100
    left_out = done.err.count("left out: ")
    written = len(load_rules(CASES / "proved.rules").rules) - left_out
    assert f"{written} of {written + left_out} rules written to out" in done.err


def test_what_a_format_cannot_say_is_refused_by_name_and_nothing_is_written(
    inside: Callable[..., Ran], tmp_path: Path
) -> None:
    done = inside("rules", "export", CASES / "proved.rules", "--to", "taso", "--out", "out", cwd=tmp_path)
    assert_refused(done, 2, "--skip leaves them out. The first: ")
    assert not files(tmp_path)


def test_json_goes_there_and_back(inside: Callable[..., Ran], tmp_path: Path) -> None:
    assert inside("rules", "export", CASES / "proved.rules", "--to", "json", "--out", "a.json", cwd=tmp_path).code == 0
    given = load_rules(CASES / "proved.rules")
    assert parse_json((tmp_path / "a.json").read_text(), "a.json").rules == given.rules
    done = inside("rules", "import", "a.json", "--from", "json", "--out", "b.rules", cwd=tmp_path)
    assert done.code == 0, done.err
    assert [r.name for r in load_rules(tmp_path / "b.rules").rules] == [r.name for r in given.rules]


def test_each_obligation_is_unsatisfiable_by_the_solver_alone(inside: Callable[..., Ran], tmp_path: Path) -> None:
    done = inside("rules", "obligations", CASES / "proved.rules", "--out", "smt", cwd=tmp_path)
    assert done.code == 0, done.err
    written = sorted((tmp_path / "smt").iterdir())
    assert {p.stem for p in written} == {r.name for r in load_rules(CASES / "proved.rules").rules}
    solver = Path(sys.executable).with_name("z3")
    for path in written:
        answer = subprocess.run([solver, "-T:60", path], capture_output=True, text=True, check=True)
        assert answer.stdout.strip() == "unsat", path.name


def test_an_edited_file_says_so_and_is_proved_afresh(
    inside: Callable[..., Ran], imported: Path, tmp_path: Path
) -> None:
    text = imported.read_text(encoding="utf-8")
    (tmp_path / "t.rules").write_text(text.replace("(rule taso-0\n", "(rule mine\n"))
    done = inside("rules", "verify", "t.rules", "--quiet", cwd=tmp_path)
    assert done.code == 0
    assert "t.rules:1:1: the file, the operators or the laws are not what was sealed; --seal seals it anew" in done.err


def test_sealing_a_file_makes_it_one_that_is_not_proved_again(
    inside: Callable[..., Ran], imported: Path, tmp_path: Path
) -> None:
    text = imported.read_text(encoding="utf-8")
    (tmp_path / "t.rules").write_text(text.replace("(rule taso-0\n", "(rule mine\n"))
    assert inside("rules", "verify", "t.rules", "--quiet", "--seal", cwd=tmp_path).code == 0
    file = load_rules(tmp_path / "t.rules")
    assert file.header == sealed(file.rules, facts_of(file)).header
    assert file.rules[0].name == "mine"
    assert file.header["settings"] == "from=taso file=taso.pb"


def test_a_file_with_a_wrong_rule_is_never_sealed(inside: Callable[..., Ran], tmp_path: Path) -> None:
    wrong = "(rules :format 1)\n(rule wrong (given (?x n)) (from (relu ?x)) (to ?x))\n"
    (tmp_path / "w.rules").write_text(wrong)
    assert inside("rules", "verify", "w.rules", "--seal", cwd=tmp_path).code == 2
    assert (tmp_path / "w.rules").read_text() == wrong


@pytest.mark.parametrize(
    ("data", "form", "why"),
    [
        (TASO.read_bytes()[:-5], "taso", "no file of TASO's rules, or cut short"),
        (b"", "taso", "no file of TASO's rules"),
        (b"{", "json", "expected JSON"),
        (b"\xff\xfe", "json", "no text in UTF-8 at byte 0"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(
    inside: Callable[..., Ran], data: bytes, form: str, why: str, tmp_path: Path
) -> None:
    (tmp_path / "given").write_bytes(data)
    done = inside("rules", "import", "given", "--from", form, "--out", "out.rules", cwd=tmp_path)
    assert_refused(done, 2, why)
    assert set(files(tmp_path)) == {"given"}


def test_rules_of_which_none_holds_write_nothing(inside: Callable[..., Ran], tmp_path: Path) -> None:
    text = "(rules :format 1) (rule r (given (?x n n) (?y n n)) (from (matmul ?x ?y)) (to (matmul ?y ?x)))"
    (tmp_path / "r.rules").write_text(text)
    inside("rules", "export", "r.rules", "--to", "json", "--out", "r.json", cwd=tmp_path)
    done = inside("rules", "import", "r.json", "--from", "json", "--out", "out.rules", cwd=tmp_path)
    assert done.code == 2
    assert "r.json: none of its 1 rules holds, so nothing was written" in done.err
    assert not (tmp_path / "out.rules").exists()
