"""Every block of code on the page about adding an operator does what the page says."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import onnx
import pytest

from benchmarks.operators_page import entry
from superopt import Options, optimize
from superopt.operators.files import apart, declare_files
from superopt.rules.format import load_rules, parse_file
from superopt.verify.check import verify
from superopt.verify.prove import Proved
from tests.commands import superopt
from tests.models import assert_same

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "adding-an-operator.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
DECLARATION, MODEL, *PYTHON = [body for language, body in BLOCKS if language == "python"]


def block(start: str) -> str:
    """The one block that begins with some text."""
    (found,) = [body for _, body in BLOCKS if body.startswith(start)]
    return str(found)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page followed from top to bottom: its files, and what its commands write."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "mine.py").write_text(DECLARATION, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(MODEL, {})
    ran = superopt(*shlex.split(block("$ superopt rules generate").strip()[2:])[1:], cwd=folder)
    assert (ran.code, ran.out) == (0, ""), ran.err
    return folder


@pytest.fixture
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In that folder, and what is declared there is forgotten afterwards."""
    monkeypatch.chdir(folder)
    with apart():
        yield


def test_no_block_of_the_page_is_without_a_test() -> None:
    assert len(PYTHON) == 3
    assert [b.split()[1:3] for _, b in BLOCKS if b.startswith("$")] == [
        ["superopt", "show"],
        ["superopt", "rules"],
        ["superopt", "rules"],
        ["superopt", "optimize"],
    ]
    assert len(BLOCKS) == 2 + 3 + 4 + len(["rule", "documentation"])


def test_a_model_is_read(folder: Path) -> None:
    command, *shown = block("$ superopt show").splitlines()
    ran = superopt(*shlex.split(command[2:])[1:], cwd=folder)
    assert (ran.code, ran.out.splitlines()) == (0, shown)


@pytest.mark.usefixtures("inside")
def test_python_on_the_page_prints_what_it_says() -> None:
    names: dict[str, object] = {}
    for body in PYTHON:
        said = io.StringIO()
        with redirect_stdout(said):
            exec(body, names)
        expected = [line[2:] for line in body.splitlines() if line.startswith("# ")]
        assert said.getvalue().splitlines() == expected


@pytest.mark.usefixtures("inside")
def test_the_rule_on_the_page_is_found_and_proves() -> None:
    declare_files([Path("mine.py")])
    (shown,) = parse_file(block("(rule ")).rules
    assert shown in load_rules(Path("mine.rules")).rules
    verdict = verify(shown)
    assert isinstance(verdict, Proved)
    assert verdict.laws == shown.by


def test_the_rules_are_verified_from_their_text(folder: Path) -> None:
    ran = superopt(*shlex.split(block("$ superopt rules verify").strip()[2:])[1:], cwd=folder)
    assert (ran.code, ran.out) == (0, "")
    assert re.match(r"(\d+) of \1 rules proved", ran.err)


def test_a_model_with_it_is_optimized(folder: Path) -> None:
    ran = superopt(*shlex.split(block("$ superopt optimize").strip()[2:])[1:], "--time", 10, cwd=folder)
    assert (ran.code, ran.err) == (0, "")
    assert "searched 0 graphs" not in ran.out
    assert_same(onnx.load(folder / "faster.onnx"), onnx.load(folder / "model.onnx"))


@pytest.mark.usefixtures("inside")
def test_the_library_takes_the_file_as_an_option(tmp_path: Path) -> None:
    """A function that nobody declared is the two nodes that it stands for."""
    for files, understood in (((), 3), ((Path("mine.py"),), 2)):
        options = Options(time=20, operators=files, rules=(), timings=tmp_path / "table")
        report = optimize("model.onnx", options).report
        assert (report.understood, report.opaque) == (understood, {})


@pytest.mark.usefixtures("inside")
def test_its_documentation_begins_as_the_page_says() -> None:
    (declared,) = declare_files([Path("mine.py")])
    assert entry(declared).startswith(block("### squared_relu"))


def test_the_renderer_prints_it(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.operators_page", "mine.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.startswith(block("### squared_relu"))
