"""Where the time of a model goes: seconds for each of its nodes, by the runtime's own profiler."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from superopt.cost.inputs import Draw
from superopt.cost.lane import measuring
from superopt.cost.ort import OnnxRuntime
from superopt.cost.runtime import WARM_UP

RUNS, RUNS_S = (1, 20), 2.0
"""How often a model is run after the warm-up: at least, at most, and for about how many seconds."""

_MEASURED = "_kernel_time"
"""How the profiler's events end that say how long a kernel ran; what stands before it is the node's name."""

Event: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True)
class Profile:
    """Seconds a run. `nodes` has the median of each node that was run as it stands, by name.

    `added` is the rest: casts that the runtime puts in, and the bodies of operators that it has no kernel for.
    """

    nodes: dict[str, float]
    added: float
    runs: int


def profile(
    model: Path, names: Collection[str], folder: Path, runtime: OnnxRuntime, draw: Draw | None = None
) -> Profile:
    """Run a model on random inputs as it stands, without the runtime's optimizations, and time its nodes.

    `names` are those of the nodes of its main graph, each once. `folder` is where the profiler may write. Raises
    `RuntimeFailed`.
    """
    session = runtime.session(model, optimize=False, profile=folder / "profile")
    written, runs = None, 0
    try:
        feeds = runtime.feeds(session, seed=0, draw=draw)
        with measuring():
            end = time.perf_counter() + RUNS_S
            while runs < RUNS[0] + 1 or (runs < RUNS[1] + WARM_UP and time.perf_counter() < end):
                runtime.run(session, feeds)
                runs += 1
    finally:
        written = Path(session.end_profiling())  # also where a run fails: it holds the file open
    events = json.loads(written.read_text(encoding="utf-8"))
    return _summed(events, frozenset(names), runs)


def _summed(events: Iterable[Event], names: frozenset[str], runs: int) -> Profile:
    times: dict[str, list[float]] = {}
    for name, seconds in _of_main_graph(events, names):
        times.setdefault(name, []).append(seconds)
    # A model that takes long may have been run once after a single run of warm-up.
    skipped = min(WARM_UP, runs - 1)
    medians = {name: statistics.median(own[skipped:]) for name, own in times.items() if len(own) == runs}
    added = sum(seconds for name, seconds in medians.items() if name not in names)
    return Profile({n: s for n, s in medians.items() if n in names}, added, runs - skipped)


def _of_main_graph(events: Iterable[Event], names: frozenset[str]) -> Iterator[tuple[str, float]]:
    """Kernels with their seconds. Those of subgraphs are left out: the node that runs them counts their time."""
    kernels = [e for e in events if e.get("cat") == "Node" and str(e["name"]).endswith(_MEASURED)]
    end = 0
    for event in sorted(kernels, key=lambda e: (e["ts"], -e["dur"])):
        name, stop = str(event["name"]).removesuffix(_MEASURED), event["ts"] + event["dur"]
        if name in names or stop > end:
            end = max(end, stop)
            yield name, event["dur"] * 1e-6
