"""What a run holds in memory: that of all its processes, and what they share once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.zoo import resident

HOLD = "import sys, numpy; kept = numpy.ones({}, numpy.uint8); print(kept.sum(), flush=True); sys.stdin.read()"
PARENT = "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', {!r}]); child.wait()"
MEGABYTES = 64


def held(program: str) -> int:
    """What a process holds that runs a program, once it has said something."""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = resident(process.pid)
        process.communicate()
    return found


def test_memory_of_processes_adds_up_and_their_libraries_count_once() -> None:
    alone, more = held(HOLD.format(1)), held(HOLD.format(MEGABYTES * 2**20))
    assert 0.9 * MEGABYTES < (more - alone) / 2**20 < 1.1 * MEGABYTES
    both = held(PARENT.format(HOLD.format(MEGABYTES * 2**20)))
    assert more < both < 2 * more - alone + 2**20 * MEGABYTES / 2, "a second interpreter has little of its own"


def test_a_process_that_ended_holds_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert not Path(f"/proc/{process.pid}").exists()
    assert resident(process.pid) == 0
    assert resident(os.getpid()) > 0
