"""What was measured, as a table for the terminal and as a page."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

import numpy as np
from rich.table import Table

from benchmarks.plots import chart
from benchmarks.runs import BOTH, EMPTY, FULL, Run

COLUMNS = (
    "network", "rules and definitions", "rules alone", "definitions alone", "predicted", "original",
    "s, empty table", "s, full table", "peak memory", "of allowed", "weights", "error",
)  # fmt: skip
_MB = 2**20
ALLOWED_TIMES = 2.5
"""How many times its own size an optimization may take, beside 500 MB."""


def rendered(runs: Sequence[Run]) -> Table:
    """The table for a terminal."""
    shown = Table(*COLUMNS, show_edge=False, pad_edge=False)
    for row in rows(runs):
        shown.add_row(*row)
    return shown


def page(runs: Sequence[Run], facts: Mapping[str, str], runtime: str) -> str:
    """The page: what was measured on which runtime and how, and the table."""
    lines = [COLUMNS, ("---",) * len(COLUMNS), *rows(runs)]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    said = "\n".join(f"- {key}: {value}" for key, value in facts.items())
    return f"""# Benchmarks

{said}

Networks of the onnx package, with random weights (`benchmarks/networks.py`). Speed-ups are of the whole model against
{runtime} with all of its own optimizations, on one thread and in that thread's time: in turns, in fresh pairs of
sessions (ten; fewer, but three, where the time is short), with their interval. *None* means that no gain was confirmed
and the original came back; what the best candidate measured stands beside it. Seconds are of the whole command, with an
empty table of timings and with the one that this left. *Predicted* is by how many times faster pieces are taken to be,
as they were measured or else by sums, each by its share of the sums of kernels. Memory is the peak of all four runs, of
all processes (libraries and files that they share count once); {ALLOWED_TIMES} times the model and 500 MB are allowed.
*Error* is the largest against the original, relative to its largest output.

{prediction(runs)}

{body}

{_plots(runs)}
"""


def _plots(runs: Sequence[Run]) -> str:
    """What each network gains, and what superopt takes for it."""
    full, empty = ([r for r in runs if r.uses == BOTH and r.timings == kind] for kind in (FULL, EMPTY))
    names, gains = [r.network for r in full], [_gain(r) for r in full]
    peaks = [max(r.peak_bytes for r in runs if r.network == name) / _MB for name in names]
    speed, time = "times faster (bars), and the interval (lines)", "seconds: empty table (bars), full one (line)"
    return "\n\n".join(
        (
            chart(speed, names, "times", [g[1] for g in gains], [[g[0] for g in gains], [g[2] for g in gains]]),
            chart(time, names, "s", [r.seconds for r in empty], [[r.seconds for r in full]]),
            chart("peak memory", names, "MB", peaks),
        )
    )


def _gain(run: Run) -> tuple[float, float, float]:
    """How many times faster the result is, between the ends of the interval; 1 where the original came back."""
    report = run.report or {}
    m = report.get("measured") if report.get("outcome") == "faster" else None
    return (m["low"], m["speedup"], m["high"]) if m else (1.0, 1.0, 1.0)


def prediction(runs: Sequence[Run]) -> str:
    """How well predicted speed-ups tell measured ones, over all candidates that were measured whole, each once."""
    pairs = []
    for run in runs:
        predicted, measured = (run.report or {}).get("predicted"), (run.report or {}).get("measured")
        if predicted and measured and measured["optimized"] and not measured["remembered"]:
            pairs.append((predicted["original"] / predicted["optimized"], measured["speedup"]))
    if len(pairs) < 3:
        return f"Too few candidates ({len(pairs)}) were measured whole to say how well they were predicted."
    ours, theirs = np.argsort(np.argsort(np.array(pairs), axis=0), axis=0).T
    ranks = np.asarray(np.corrcoef(ours, theirs))
    errors = [abs(p / m - 1) for p, m in pairs]
    return (
        f"Of {len(pairs)} candidates measured whole, predicted and measured speed-ups have a rank correlation of "
        f"{ranks[0, 1]:.2f} (Spearman); the predicted ones are off by {statistics.median(errors):.1%} in "
        f"the median, {max(errors):.1%} at most."
    )


def rows(runs: Sequence[Run]) -> list[tuple[str, ...]]:
    """A row for each network, in the order they were run."""
    found = []
    for name in dict.fromkeys(r.network for r in runs):
        ours = [r for r in runs if r.network == name]
        by = {(r.uses, r.timings): r for r in ours}
        full, empty = by[BOTH, FULL], by[BOTH, EMPTY]
        alone = [speedup(by[uses, FULL]) for uses in ("rules", "definitions")]
        peak, allowed = max(r.peak_bytes for r in ours), ALLOWED_TIMES * full.model_bytes + 500 * _MB
        memory = (f"{peak / _MB:.0f} MB", f"{peak / allowed:.0%}")
        seconds = (_seconds(empty), _seconds(full))
        found.append((name, speedup(full), *alone, *_times(full), *seconds, *memory, *_growth_and_error(full)))
    return found


def line(run: Run) -> str:
    """One run, as it ends."""
    said = run.error or (run.report or {}).get("reason", "")
    memory = f"{run.peak_bytes / _MB:.0f} MB"
    return f"{run.network}, {run.uses}, {run.timings} table: {speedup(run)} in {run.seconds:.1f} s, {memory}; {said}"


def speedup(run: Run) -> str:
    """How many times faster the result is, with its interval; *none* where the original came back."""
    m = (run.report or {}).get("measured")
    measured = f"{m['speedup']:.3f} ({m['low']:.3f} to {m['high']:.3f})" if m and m["optimized"] else ""
    gained = run.report is not None and run.report["outcome"] == "faster"
    return measured if gained else f"{without_gain(run)}; {measured}".removesuffix("; ")


def without_gain(run: Run) -> str:
    """Why nothing faster came of a run: it failed, its time was too short to begin, or there was nothing."""
    if run.report is None:
        return f"failed ({run.code})"
    searched = run.report["searched"]
    return "no time" if searched["pieces"] and not searched["distinct"] else "none"


def _seconds(run: Run) -> str:
    return f"{run.seconds:.1f}" + (f", failed ({run.code})" if run.code else "")


def _times(run: Run) -> tuple[str, str]:
    report = run.report or {}
    predicted, measured = report.get("predicted"), report.get("measured")
    ratio = f"{predicted['original'] / predicted['optimized']:.3f}" if predicted else ""
    return ratio, f"{measured['original']['seconds'] * 1e3:.1f} ms" if measured else ""


def _growth_and_error(run: Run) -> tuple[str, str]:
    report = run.report or {}
    if report.get("optimized") is None:
        return "", ""
    growth = report["optimized"]["bytes"] / report["original"]["bytes"] - 1
    error = max((o["error"] for o in report["compared"]["outputs"]), default=0.0)
    return f"{growth:+.1%}", f"{error:.1e}"
