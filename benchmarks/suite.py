"""Models of single classes under superopt and under the tools people use, each against onnxruntime alone.

`python -m benchmarks.suite [NAME...]` writes `docs/suite.md`. Every result is measured beside the original, with all of
onnxruntime's own optimizations, in turns in fresh pairs of sessions, on one thread and in its time. Peers: onnxsim,
onnxslim and onnxscript's optimizer (`pip install superopt[bench]`).
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from benchmarks.attainable import attainable
from benchmarks.classes import CLASSES, model
from benchmarks.runs import BOTH, DEFINITIONS_ALONE, EMPTY, FULL, OF_ONE_OUTPUT, Run
from benchmarks.table import speedup
from benchmarks.zoo import ROOT, run_once
from superopt.cost.ort import OnnxRuntime
from superopt.cost.runtime import RuntimeFailed
from superopt.rules.format import load_rules, print_file
from superopt.rules.rule import Rule
from superopt.search.paired import Paired, compare
from superopt.shipped import shipped_rules
from superopt.verify.trusted import sealed

T = TypeVar("T")

FOLDER = ROOT / "build/classes"
PAGE = ROOT / "docs/suite.md"
BUDGET_S = 6.0

_ONNXSCRIPT = "import sys, onnx, onnxscript.optimizer as o; onnx.save(o.optimize(onnx.load(sys.argv[1])), sys.argv[2])"
PEERS = {
    "onnxsim": [sys.executable, "-m", "onnxsim"],
    "onnxslim": [str(Path(sys.executable).with_name("onnxslim"))],
    "onnxscript": [sys.executable, "-c", _ONNXSCRIPT],
}
"""The tools by name, each a command that takes the model and the file to write."""

COLUMNS = (
    "model", "attainable", "superopt", *PEERS, "definitions alone", "and rules of one output", "original",
    "s, empty table", "s, full table", "peak memory", "error",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One model: how much faster it is after each tool, and what superopt took. None where a tool failed.

    `less` are runs that may use definitions alone, and these and rules of one output.
    """

    model: str
    attainable: float
    ours: Paired | None
    peers: dict[str, Paired | None]
    empty: Run
    full: Run
    less: tuple[Run, ...]

    def cells(self) -> tuple[str, ...]:
        """What the table says."""
        report = self.full.report or {}
        error = max((o["error"] for o in (report.get("compared") or {}).get("outputs", [])), default=0.0)
        measured = (report.get("measured") or {}).get("original", {}).get("seconds", 0.0)
        return (
            self.model,
            f"{self.attainable:.2f}",
            "none" if self.ours is None else _shown(self.ours),
            *("failed" if p is None else _shown(p) for p in self.peers.values()),
            *map(speedup, self.less),
            f"{measured * 1e3:.2f} ms",
            f"{self.empty.seconds:.1f}",
            f"{self.full.seconds:.1f}",
            f"{max(self.empty.peak_bytes, self.full.peak_bytes) / 2**20:.0f} MB",
            f"{error:.1e}" if self.ours else "",
        )


def measured(name: str, limit: float, folder: Path) -> Row:
    """Optimize a model with each tool, and measure what comes out."""
    model, timings, out = FOLDER / f"{name}.onnx", folder / f"{name}.sqlite", folder / "out.onnx"
    given = ["--timings", str(timings)]
    empty, full = (run_once(model, BOTH, kind, given, limit, folder) for kind in (EMPTY, FULL))
    gained = full.report is not None and full.report["outcome"] == "faster"
    ours = _compared(model, out) if gained else None
    peers: dict[str, Paired | None] = {}
    for peer, command in PEERS.items():
        theirs = folder / f"{peer}.onnx"
        theirs.unlink(missing_ok=True)
        ended = subprocess.run([*command, str(model), str(theirs)], capture_output=True, check=False, timeout=600)
        peers[peer] = _compared(model, theirs) if ended.returncode == 0 and theirs.exists() else None
    fewer: tuple[tuple[str, list[Rule]], ...] = (
        (DEFINITIONS_ALONE, []),
        (OF_ONE_OUTPUT, [r for r in _shipped() if len(r.source) == 1]),
    )
    less = tuple(
        run_once(model, uses, FULL, [*given, "--rules", str(_written(rules, folder))], limit, folder)
        for uses, rules in fewer
    )
    return Row(name, _apart(attainable, model, folder), ours, peers, empty, full, less)


def _shipped() -> list[Rule]:
    return [rule for path in shipped_rules() for rule in load_rules(path).rules]


def _written(rules: Sequence[Rule], folder: Path) -> Path:
    """A file of rules that are known to be proved."""
    path = folder / "some.rules"
    path.write_text(print_file(sealed(rules, {})), encoding="utf-8")
    return path


def _apart(function: Callable[..., T], *arguments: object) -> T:
    """In a process of its own: what this one held would count as memory of the commands that it runs."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _compared(original: Path, candidate: Path) -> Paired | None:
    return _apart(_side_by_side, original, candidate)


def _side_by_side(original: Path, candidate: Path) -> Paired | None:
    try:
        return compare(original, candidate, OnnxRuntime(1), budget_s=BUDGET_S, seed=1)
    except RuntimeFailed:
        return None


def _shown(paired: Paired) -> str:
    return f"{paired.ratio:.3f} ({paired.low:.3f} to {paired.high:.3f})"


def page(rows: Sequence[Row], facts: dict[str, str]) -> str:
    """The page, with its table and its plot."""
    body = "\n".join(
        f"| {' | '.join(line)} |" for line in (COLUMNS, ["---"] * len(COLUMNS), *(r.cells() for r in rows))
    )
    said = "\n".join(f"- {key}: {value}" for key, value in facts.items())
    return f"""# The suite: models of single classes

{said}

How many times faster than onnxruntime with all of its own optimizations on the original, after superopt and after the
tools people use: on one thread and in its time, in turns, in fresh pairs of sessions, with 95 % intervals. *None*: no
gain was confirmed, and the original came back. Models are those of `benchmarks/classes.py`, with random weights; each
result of superopt was compared with the original, and *error* is the largest, relative to the largest output.

*Attainable* is what a perfect rewrite could give that leaves dense products as they are: the time of all kernels over
that of matrix products and convolutions (`benchmarks/attainable.py`). *Definitions alone* and *and rules of one output*
are ablations: what superopt finds with less than all of its rules, by its own measurement.

{body}

```mermaid
xychart-beta
  title "times faster than onnxruntime alone, by superopt (bars) and by the best of the others (line)"
  x-axis [{", ".join(r.model for r in rows)}]
  y-axis "times" 0 --> {max(1.0, *(r.ours.ratio for r in rows if r.ours)) + 0.5:.1f}
  bar [{", ".join(f"{r.ours.ratio if r.ours else 1.0:.2f}" for r in rows)}]
  line [{", ".join(f"{max((p.ratio for p in r.peers.values() if p), default=1.0):.2f}" for r in rows)}]
```
"""


def main() -> None:
    """Run what was asked for, print and write it."""
    parser = argparse.ArgumentParser(description="Optimize models of single classes with superopt and with others.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(CLASSES)} [default: all]")
    parser.add_argument("--time", type=float, default=60.0, help="limit of each run of superopt, in seconds")
    arguments = parser.parse_args()
    if missing := [p for p in PEERS if importlib.util.find_spec(p) is None]:
        parser.error(f"{', '.join(missing)} not installed; the suite needs: pip install 'superopt[bench]'")
    if unknown := sorted({*arguments.names} - {*CLASSES}):
        parser.error(f"there is no model {', '.join(unknown)}; there are {', '.join(CLASSES)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows, console = [], Console()
    with tempfile.TemporaryDirectory(prefix="superopt-suite-") as folder:
        for name in arguments.names or CLASSES:
            path = FOLDER / f"{name}.onnx"
            path.write_bytes(model(name).SerializeToString())
            rows.append(measured(name, arguments.time, Path(folder)))
            console.print("  ".join(rows[-1].cells()), highlight=False)
    shown = Table(*COLUMNS, show_edge=False, pad_edge=False)
    for row in rows:
        shown.add_row(*row.cells())
    Console(width=200).print(shown)
    if not arguments.names:
        versions: dict[str, str] = next((r.full.report["versions"] for r in rows if r.full.report), {})
        day = datetime.datetime.now(datetime.UTC).date().isoformat()
        command = f"python -m benchmarks.suite --time {arguments.time:g}"
        PAGE.write_text(page(rows, {"date": day, **versions, "command": command}), encoding="utf-8")


if __name__ == "__main__":
    main()
