"""A signal ends the process wherever it comes."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

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

RAISED = {
    signal.SIGINT: "KeyboardInterrupt()",
    signal.SIGTERM: "SystemExit(143)",
    signal.SIGHUP: "SystemExit(129)",
}


@pytest.mark.usefixtures("hangups_heeded")
@pytest.mark.parametrize("number", RAISED, ids=lambda number: number.name)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_signal_is_never_lost(moment: str, number: signal.Signals) -> None:
    arguments = [sys.executable, "-c", SCRIPT, str(int(number)), MOMENTS[moment]]
    ran = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert ran.stdout.splitlines()[-1] == RAISED[number], ran.stdout
    assert "lost" not in ran.stdout
    assert ran.stderr == ""


def test_a_hangup_that_is_ignored_stays_so() -> None:
    ignoring = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + SCRIPT
    arguments = [sys.executable, "-c", ignoring, "1", "signal.raise_signal(signal.SIGHUP); sys.exit('went on')"]
    assert subprocess.run(arguments, capture_output=True, text=True, timeout=60).stdout == "SystemExit('went on')\n"


IMPORTED = """
import signal, sys
class Finder:
    def find_spec(name, path, target=None):
        if name == sys.argv[1]:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Finder)
from superopt.__main__ import main
main()
"""


@pytest.mark.parametrize("module", ["superopt.cli", "numpy", "onnxruntime", "z3"])
def test_ctrl_c_is_quiet_while_the_command_is_imported(module: str) -> None:
    arguments = [sys.executable, "-c", IMPORTED, module, "laws", "check"]
    ran = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (130, "superopt: interrupted\n")
