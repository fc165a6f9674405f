"""A signal ends the process wherever it comes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from tests.commands import COMMAND

MOMENTS = {
    "in a finalizer": """
class Held:
    def __del__(self):
        signal.raise_signal(number)
        held.append("told and forgotten" if held else "once")
Held()
""",
    "as a weak reference ends": """
class Held: pass
thing = Held()
kept = weakref.ref(thing, lambda _: signal.raise_signal(number))
del thing
""",
    "as ctypes converts an argument": """
import z3
true = z3.BoolVal(True)
class Converted:
    def from_param(given):
        signal.raise_signal(number)
        return given
function = z3.z3core.Z3_is_well_sorted.__defaults__[0].f
function.argtypes = [Converted, z3.z3types.Ast]
try:
    z3.z3core.Z3_is_well_sorted(true.ctx.ref(), true.as_ast())
except ctypes.ArgumentError as error:
    print("lost:", error)
""",
    "in a proof": """
from superopt.verify import elements
elements.LONGEST_MS = 1_000
cubes = "(declare-fun x () Int) (declare-fun y () Int) (declare-fun z () Int)" \\
    "(assert (= (+ (* x x x) (* y y y) (* z z z)) 114)) (assert (> x 1000))"
threading.Timer(0.3, signal.raise_signal, (number,)).start()
print("it ended by itself:", elements.solved(cubes, 100_000_000))
""",
}
"""What raises a signal of this number, at which moment."""

SCRIPT = """
import ctypes, signal, sys, threading, time, weakref
from superopt.interrupts import heed_signals
heed_signals()
number, held = int(sys.argv[1]), []
try:
    exec(sys.argv[2])
    time.sleep(10)
except BaseException as raised:
    print(repr(raised))
"""

RAISED = {signal.SIGINT: "KeyboardInterrupt()", signal.SIGTERM: "SystemExit(143)"}


@pytest.mark.parametrize("number", RAISED, ids=lambda number: number.name)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_signal_is_never_lost(moment: str, number: signal.Signals) -> None:
    arguments = [sys.executable, "-c", SCRIPT, str(int(number)), MOMENTS[moment]]
    ran = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert ran.stdout.splitlines()[-1] == RAISED[number], ran.stdout
    assert "lost" not in ran.stdout
    assert ran.stderr == ""


@pytest.mark.parametrize("after_s", [0.15, 0.4, 0.8])
def test_ctrl_c_is_quiet_from_the_beginning(after_s: float) -> None:
    """While the command is still being imported too."""
    with subprocess.Popen(
        [*COMMAND, "laws", "check"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        time.sleep(after_s)
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=60)
    assert (run.returncode, said) == (130, "superopt: interrupted\n")
