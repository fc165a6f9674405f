"""The memory that a runtime takes to run a model, as the system sees it: what the process grows by, at most."""

from __future__ import annotations

import re
from pathlib import Path

from superopt.cost.inputs import Draw
from superopt.cost.runtime import WARM_UP, Runtime
from superopt.errors import RuntimeFailed
from superopt.memory import trim

_CLEAR, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")
_FORGET_PEAK = "5"
"""What Linux takes the peak of a process back to its present size for (proc(5))."""


def peak_of_runs(runtime: Runtime, model: Path, draw: Draw) -> int:
    """The bytes that a process takes beyond what it has when a model is loaded, at most, while that is run on random
    inputs: its activations, and what kernels need while they run.

    It is run as often as a runtime needs to know what memory it wants. For a process of its own: one that ran others
    has memory left of them. Raises `RuntimeFailed`, also where the system does not tell.
    """
    session = runtime.session(model)
    bound = runtime.bound(session, runtime.feeds(session, 0, draw))
    trim()
    try:
        _CLEAR.write_text(_FORGET_PEAK)
        before = _kilobytes("VmRSS")
        for _ in range(WARM_UP):
            bound.run()
        return 1024 * max(_kilobytes("VmHWM") - before, 0)
    except OSError as error:
        raise RuntimeFailed(f"the peak of memory is not known here: {error.strerror or error}") from None


def _kilobytes(what: str) -> int:
    found = re.search(rf"^{what}:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    assert found, f"Linux tells {what} of every process"
    return int(found[1])
