"""What tests of the command and of the library share: timings that are measured once, and a rule file that proves."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from superopt.api import Options
from superopt.cli import main
from superopt.rules.format import parse_file, print_file
from superopt.verify.trusted import sealed
from tests.commands import Ran

RULES = """
(rule relu-relu (given (?x n c)) (from (relu (relu ?x))) (to (relu ?x)))
(rule share-left
  (given (?a m k) (?b k n) (?c k r))
  (from (matmul ?a ?b) (matmul ?a ?c))
  (where (?w (matmul ?a (concat 1 ?b ?c))))
  (to (slice 1 0 n ?w) (slice 1 n (+ n r) ?w)))
"""


@pytest.fixture(scope="session")
def timings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A table of timings for all tests of a run; the lock for measuring is theirs too, so they wait for nobody."""
    folder = tmp_path_factory.mktemp("timings")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder / "table.sqlite"


@pytest.fixture(scope="session")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sealed file of two rules."""
    path = tmp_path_factory.mktemp("rules") / "two.rules"
    path.write_text(print_file(sealed(parse_file(RULES).rules, {})), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def options(timings: Path, rules: Path) -> Options:
    """Six seconds, two rules, and the shared timings."""
    return Options(time=20, timings=timings, rules=(rules,))


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs the command within this process, in a folder: many times faster than a process of its own."""

    def run(*arguments: object, cwd: Path) -> Ran:
        monkeypatch.chdir(cwd)
        monkeypatch.setenv("XDG_CACHE_HOME", str(cwd / ".cache"))
        monkeypatch.setattr(signal, "signal", lambda *_: None)
        monkeypatch.setattr(sys, "argv", ["superopt", *map(str, arguments)])
        code: object = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        said = capsys.readouterr()
        assert isinstance(code, int)
        return Ran(code, said.out, said.err)

    return run
