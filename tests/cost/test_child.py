"""What runs in a process of its own may crash or never end: who asked for it survives, and says what happened."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from superopt.cost.bench import Bench
from superopt.cost.child import Child, Unending
from superopt.cost.measured import MeasuredCost
from superopt.cost.table import Table
from superopt.errors import OutOfTime, RuntimeFailed, UsageError
from superopt.operators.pointwise import Relu, Sqrt
from tests.cost.graphs import graph, tensor
from tests.fragile import Fragile, Stuck


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process finds this module too."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


@pytest.fixture
def child() -> Iterator[Child]:
    made = Child()
    yield made
    made.close()


def refuse(what: str) -> None:
    raise UsageError(what)


def test_a_call_gives_what_the_function_gives(child: Child) -> None:
    assert [child.call(60.0, divmod, 7, n) for n in (2, 3)] == [(3, 1), (2, 1)]


def test_it_is_another_process_and_the_same_for_all_calls(child: Child) -> None:
    pids = {child.call(60.0, os.getpid) for _ in range(2)}
    assert len(pids) == 1
    assert os.getpid() not in pids


def test_an_error_comes_back_as_it_was(child: Child) -> None:
    with pytest.raises(UsageError, match="not this"):
        child.call(60.0, refuse, "not this")
    assert child.call(60.0, abs, -1) == 1


def test_a_process_that_cannot_be_started_is_told_and_the_next_call_works(
    child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", "/nowhere/python")
        with pytest.raises(RuntimeFailed, match=r"no process can be started to run models in: .*No such file"):
            child.call(60.0, abs, -1)
    assert child.call(60.0, abs, -1) == 1


def test_a_crash_is_told_by_its_signal_and_the_next_call_works(child: Child) -> None:
    with pytest.raises(RuntimeFailed, match=r"crashed \(SIGABRT\)"):
        child.call(60.0, os.abort)
    assert child.call(60.0, abs, -1) == 1


def test_what_never_ends_is_ended(child: Child) -> None:
    first = child.call(60.0, os.getpid)
    with pytest.raises(Unending, match="did not end within 1 s"):
        child.call(1.0, time.sleep, 600)
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    assert child.call(60.0, os.getpid) != first


def test_an_interrupt_is_not_for_it(child: Child) -> None:
    os.kill(child.call(60.0, os.getpid), signal.SIGINT)
    assert child.call(60.0, abs, -1) == 1


def interrupt_who_asked() -> None:
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(600)


@pytest.fixture
def heeding() -> Iterator[None]:
    """Interrupts count, which what a shell runs in the background ignores."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeding")
def test_an_interrupted_call_leaves_no_answer_for_the_next(child: Child) -> None:
    with pytest.raises(KeyboardInterrupt):
        child.call(60.0, interrupt_who_asked)
    assert child.call(60.0, abs, -1) == 1


def test_a_kernel_that_crashes_the_runtime_costs_infinitely_much_and_is_named(table: Table, tmp_path: Path) -> None:
    x = tensor("x", 4, 4)
    cost = MeasuredCost(Bench(Fragile(), table, 17, lock_directory=tmp_path))
    assert cost.cost(graph(Sqrt()(x))) == float("inf")
    ((signature, why),) = cost.alone.unrunnable.items()
    assert "sqrt" in signature
    assert why == "the runtime crashed (SIGABRT)"
    assert cost.cost(graph(Relu()(x))) < float("inf")


def test_a_whole_piece_that_crashes_the_runtime_is_not_run_again(table: Table, tmp_path: Path) -> None:
    x = tensor("x", 4, 4)
    cost = MeasuredCost(Bench(Fragile(), table, 17, lock_directory=tmp_path))
    for _ in range(2):
        with pytest.raises(RuntimeFailed, match="the runtime crashed"):
            cost.whole(graph(Relu()(x)), graph(Sqrt()(x)))
        unused: Any = Unused()
        cost.bench.child = unused


class Unused:
    """A process of which nothing can be asked."""


def test_a_kernel_that_never_ends_takes_no_more_than_the_time_that_is_left(table: Table, tmp_path: Path) -> None:
    cost = MeasuredCost(Bench(Stuck(), table, 17, lock_directory=tmp_path))
    cost.cost(graph(Relu()(tensor("x", 4, 4))))
    cost.bench.deadline = time.monotonic() + 1.0
    with pytest.raises(OutOfTime, match="no time is left"):
        cost.cost(graph(Sqrt()(tensor("x", 4, 4))))
    assert time.monotonic() < cost.bench.deadline + 5.0


@pytest.mark.parametrize(
    "module", ["superopt.cost.timed", "superopt.cost.peak", "superopt.search.accepting.runs", "superopt.search.paired"]
)
def test_a_process_that_runs_models_imports_nothing_that_reads_them(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{'onnx', 'onnx_ir', 'pydantic', 'z3'}} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == []
