"""What tests of the command and of the library share: timings that are measured once, and a rule file that proves."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from superopt.api import Options
from superopt.cli import main
from superopt.cost.table import Table
from superopt.rules.format import parse_file, print_file
from superopt.search import paired
from superopt.verify.trusted import sealed
from tests.commands import Ran
from tests.models import normalized

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


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    """An empty table of timings."""
    with Table(tmp_path / "t.sqlite") as empty:
        yield empty


@pytest.fixture(scope="module", autouse=True)
def settled() -> None:
    """All tests and their parameters, and what earlier files keep, are passed over where what is free is looked for:
    each model that is optimized asks for that several times.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def brief_looks() -> Iterator[None]:
    """Models are measured for half a second, not for four: what tests gain is half and more, not a hundredth."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paired, "LOOK_S", 0.5)
        yield


@pytest.fixture(scope="session")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sealed file of two rules."""
    path = tmp_path_factory.mktemp("rules") / "two.rules"
    path.write_text(print_file(sealed(parse_file(RULES).rules, {})), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def options(timings: Path, rules: Path) -> Options:
    """Twenty seconds, two rules, and the shared timings."""
    return Options(time=20, timings=timings, rules=(rules,))


@pytest.fixture(scope="session")
def endless() -> onnx.ModelProto:
    """A model whose last node, a loop, goes round for longer than anybody waits."""
    given = normalized()
    inner = [helper.make_tensor_value_info(n, t, []) for n, t in (("i", 7), ("go", 9), ("sum", 1))]
    turn = [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Cos", ["sum"], ["next"])]
    ends = [helper.make_tensor_value_info(n, t, []) for n, t in (("on", 9), ("next", 1))]
    body = helper.make_graph(turn, "turn", inner, ends)
    given.graph.initializer.append(numpy_helper.from_array(np.int64(2**62), "turns"))
    given.graph.initializer.append(numpy_helper.from_array(np.bool_(True), "true"))
    given.graph.node.append(helper.make_node("ReduceMax", ["answer"], ["most"], keepdims=0))
    given.graph.node.append(helper.make_node("Loop", ["turns", "true", "most"], ["end"], body=body))
    given.graph.output.append(helper.make_tensor_value_info("end", TensorProto.FLOAT, []))
    return given


@pytest.fixture
def hangups_heeded() -> Iterator[None]:
    """Processes that are started do not ignore SIGHUP, though under nohup this one does, as they would then too."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs the command within this process, in a folder: many times faster than a process of its own."""

    def run(*arguments: object, cwd: Path) -> Ran:
        monkeypatch.chdir(cwd)
        monkeypatch.setenv("XDG_CACHE_HOME", str(cwd / ".cache"))
        monkeypatch.setenv("COLUMNS", "100")
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
