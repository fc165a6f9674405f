"""Runs one command under limits of time and memory, and leaves no process behind.

The server starts `python -m service.sandbox BYTES PARENT COMMAND...`, which limits itself and then *becomes* the
command: no Python code runs between fork and exec, where a server with threads could deadlock.
"""

import asyncio
import ctypes
import os
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Final

_TAIL: Final = 1 << 16
_NO_MEMORY: Final = ("MemoryError", "bad_alloc", "bad allocation", "out of memory", "llocate memory")
_PR_SET_PDEATHSIG: Final = 1


class Stop(Enum):
    """Why a command ended."""

    EXITED = auto()
    OUT_OF_TIME = auto()
    OUT_OF_MEMORY = auto()


@dataclass(frozen=True)
class Ending:
    """How a command ended: why, its exit code (negative: the signal), and the end of what it wrote to stderr."""

    stop: Stop
    code: int
    errors: str

    @property
    def last_line(self) -> str:
        """The last line on stderr that is not blank; empty where there is none."""
        return next((line.strip() for line in reversed(self.errors.splitlines()) if line.strip()), "")


async def run_limited(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str], seconds: float, memory: int
) -> Ending:
    """Run a command in `folder` for at most `seconds` of wall time and `memory` bytes of data.

    However this ends, cancelled included, the command and all that it started are killed before it returns.
    """
    log = folder / "stderr.log"
    launcher = (sys.executable, "-P", "-m", "service.sandbox", str(memory), str(os.getpid()))
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *launcher,
            *command,
            cwd=folder,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
    stop = Stop.EXITED
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
    except TimeoutError:
        stop = Stop.OUT_OF_TIME
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        code = await process.wait()
    tail = _tail(log)
    if stop is Stop.EXITED and _ran_out_of_memory(code, tail):
        stop = Stop.OUT_OF_MEMORY
    return Ending(stop, code, tail)


def _tail(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL))
        return file.read().decode(errors="replace")


def _ran_out_of_memory(code: int, errors: str) -> bool:
    """Whether a crash was for want of memory; SIGKILL that is not ours comes from the kernel when none is left."""
    crashed = code == 1 or code < 0
    return code == -signal.SIGKILL or (crashed and any(sign in errors for sign in _NO_MEMORY))


def become(memory: int, parent: int, command: Sequence[str]) -> None:
    """Limit this process to `memory` bytes of data, tie its life to its parent's, and turn it into the command."""
    # RLIMIT_DATA counts what is really written to; RLIMIT_AS would count reserved address space too, of which thread
    # arenas and memory-mapped weights take gigabytes without using them.
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        # A server that is killed outright cannot kill its children: the kernel does.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it was killed before we said so
            sys.exit(1)
    os.execvp(command[0], list(command))  # noqa: S606 — no shell is what we want


if __name__ == "__main__":
    become(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
