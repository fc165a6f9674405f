"""What the front page shows works as it stands there."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

import superopt
from superopt.rules.format import load_rules, parse_file
from superopt.shipped import shipped_rules
from tests.commands import Ran
from tests.models import assert_same, normalized
from tests.usable import why_not

TASO = Path(__file__).parent / "rules" / "cases" / "taso.pb"
README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
COMMANDS = [line.split("#")[0] for line in README.splitlines() if line.startswith("superopt ")]
LONG = ("rules generate", "rules verify", "rules export", "serve")
"""Commands that take minutes, or never end; they have tests of their own."""


def shipped(family: str) -> Path:
    """The rules of a family."""
    (path,) = (p for p in shipped_rules() if p.stem == family)
    return path


def block(kind: str, holding: str) -> str:
    """The one block of code on the page that holds some text."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    blocks = [body for language, body in found if language == kind and holding in body]
    assert len(blocks) == 1
    return str(blocks[0])


def test_the_rule_on_the_page_is_one_of_those_shipped() -> None:
    (shown,) = parse_file(block("", "(rule ")).rules
    assert shown in [rule for path in shipped_rules() for rule in load_rules(path).rules]


def test_the_example_in_python_runs(tmp_path: Path) -> None:
    onnx.save(normalized(), tmp_path / "model.onnx")
    done = subprocess.run(
        [sys.executable, "-c", block("python", "import superopt")],
        cwd=tmp_path,
        env={"XDG_CACHE_HOME": str(tmp_path / ".cache"), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("faster ")
    assert_same(onnx.load(tmp_path / "faster.onnx"), normalized())


def test_every_command_on_the_page_is_known_here() -> None:
    assert len(COMMANDS) == len([c for c in COMMANDS if c.startswith(tuple(f"superopt {x}" for x in LONG))]) + 15


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory, timings: Path) -> Path:
    """The report of an optimization."""
    folder = tmp_path_factory.mktemp("reported")
    report = superopt.optimize(normalized(), superopt.Options(time=20, timings=timings)).report
    (folder / "report.json").write_text(report.model_dump_json(), encoding="utf-8")
    return folder / "report.json"


@pytest.mark.parametrize("command", [c for c in COMMANDS if not any(x in c for x in LONG)])
def test_a_command_on_the_page_runs(command: str, inside: Callable[..., Ran], reported: Path, tmp_path: Path) -> None:
    given = normalized(batch="N", size="side") if "--shape" in command else normalized()
    onnx.save(given, tmp_path / "model.onnx")
    (tmp_path / "taso.pb").write_bytes(TASO.read_bytes())
    (tmp_path / "my.rules").write_bytes(shipped("core").read_bytes())
    if "covers" in command:  # another writes it
        (tmp_path / "theirs.rules").write_bytes(shipped("identities").read_bytes())
    if "report.json" in command:
        onnx.save(normalized(), tmp_path / "retrained.onnx")
        (tmp_path / "report.json").write_bytes(reported.read_bytes())
    ran = inside(*shlex.split(command)[1:], cwd=tmp_path)
    if "onnxruntime-cuda" in command and (reason := why_not("onnxruntime-cuda")):
        assert (ran.code, ran.err) == (2, f"superopt: {reason}\n")
        return
    assert ran.code == 0
    assert ran.out
    if "--json" in command:
        assert json.loads(ran.out)["outcome"] == "faster"
