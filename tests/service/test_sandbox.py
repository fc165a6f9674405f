"""Commands under limits: they end in a reason, and nothing of them stays."""

import asyncio
import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from service.sandbox import Ending, Stop, run_limited

MIB = 1 << 20
START_A_SLEEPER = "import subprocess; p = subprocess.Popen(['sleep', '600']); open('pid', 'w').write(str(p.pid)); "


def run(script: str, folder: Path, *, seconds: float = 30, memory: int = 1024 * MIB) -> Ending:
    return asyncio.run(_run(script, folder, seconds, memory))


async def _run(script: str, folder: Path, seconds: float, memory: int) -> Ending:
    command = [sys.executable, "-c", script]
    return await run_limited(command, folder=folder, environment=os.environ, seconds=seconds, memory=memory)


def ends(pid: int) -> bool:
    """Whether the process is gone within a second: one that was killed stays a moment until it is reaped."""
    for _ in range(100):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.01)
    return False


def test_a_command_that_exits_tells_its_code_and_last_words(tmp_path: Path) -> None:
    ending = run("import sys; print('first\\nlast\\n', file=sys.stderr); sys.exit(7)", tmp_path)
    assert (ending.stop, ending.code, ending.last_line) == (Stop.EXITED, 7, "last")


def test_a_command_runs_in_its_folder(tmp_path: Path) -> None:
    assert run("open('here', 'w').close()", tmp_path).code == 0
    assert (tmp_path / "here").exists()


def test_a_command_that_runs_too_long_is_killed(tmp_path: Path) -> None:
    started = time.monotonic()
    assert run("import time; time.sleep(60)", tmp_path, seconds=0.5).stop is Stop.OUT_OF_TIME
    assert time.monotonic() - started < 10


def test_what_a_command_started_dies_with_it(tmp_path: Path) -> None:
    run(START_A_SLEEPER + "import time; time.sleep(60)", tmp_path, seconds=1)
    assert ends(int((tmp_path / "pid").read_text()))


def test_what_a_command_left_behind_dies_too(tmp_path: Path) -> None:
    assert run(START_A_SLEEPER, tmp_path).code == 0
    assert ends(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("bytearray(2 << 30)", id="python"),
        pytest.param("import numpy; numpy.ones(1 << 28)", id="numpy"),
        pytest.param("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", id="killed by the kernel"),
    ],
)
def test_a_command_that_needs_too_much_memory_ends_for_that_reason(script: str, tmp_path: Path) -> None:
    assert run(script, tmp_path).stop is Stop.OUT_OF_MEMORY


def test_memory_within_the_limit_is_granted(tmp_path: Path) -> None:
    assert run("bytearray(512 << 20)", tmp_path).code == 0


def test_a_cancelled_run_kills_its_command(tmp_path: Path) -> None:
    async def cancel_once_it_runs() -> None:
        task = asyncio.create_task(_run(START_A_SLEEPER + "import time; time.sleep(60)", tmp_path, 60, 1024 * MIB))
        while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text()):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_once_it_runs())
    assert ends(int((tmp_path / "pid").read_text()))
