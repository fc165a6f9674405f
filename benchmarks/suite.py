"""Whole suites of models under superopt and under the tools people use, as a page.

`python -m benchmarks.suite [NAME...]` takes the models of single classes and writes `docs/suite.md`; with `--published`
it takes the networks of TASO, TENSAT and PET, and writes `docs/published.md`. The tools: `pip install superopt[bench]`.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import published
from benchmarks.classes import CLASSES, model
from benchmarks.contest import COLUMNS, PEERS, Row, apart, measured
from benchmarks.plots import chart
from benchmarks.table import prediction
from benchmarks.zoo import ROOT
from superopt.asked import Options
from superopt.cost.runtimes import RUNTIMES


@dataclass(frozen=True)
class Suite:
    """Models that are measured together, each by name what writes it and says where; `described` is where they are."""

    title: str
    described: str
    page: Path
    models: dict[str, Callable[[], Path]]


def _class(name: str, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.onnx"
    path.write_bytes(model(name).SerializeToString())
    return path


def classes(names: Sequence[str], folder: Path = ROOT / "build/classes") -> Suite:
    """Models of single classes."""
    return Suite(
        "models of single classes",
        "`benchmarks/classes.py`",
        ROOT / "docs/suite.md",
        {name: partial(_class, name, folder) for name in names},
    )


def networks(names: Sequence[str], batches: Sequence[int], folder: Path = ROOT / "build/published") -> Suite:
    """The networks of other systems, for so many inputs at once."""
    return Suite(
        "the networks of TASO, TENSAT and PET",
        "`benchmarks/published`, their batch behind their name",
        ROOT / "docs/published.md",
        {f"{name}-{batch}": partial(published.write, name, batch, folder) for name in names for batch in batches},
    )


def page(suite: Suite, rows: Sequence[Row], facts: dict[str, str], runtime: str = Options.runtime) -> str:
    """The page, with its table and its plot."""
    body = "\n".join(
        f"| {' | '.join(line)} |" for line in (COLUMNS, ["---"] * len(COLUMNS), *(r.cells() for r in rows))
    )
    said = "\n".join(f"- {key}: {value}" for key, value in facts.items())
    return f"""# The suite: {suite.title}

{said}

How many times faster than {runtime} with all of its own optimizations on the original, after superopt and after the
tools people use: on one thread and in its time, in turns, in fresh pairs of sessions, with 95 % intervals. *None*: no
gain was confirmed, and the original came back. *No time*: so does it where comparing and measuring a candidate would
take longer than the limit. Each result of superopt was compared with the original once more, on other inputs, and
*error* is the largest, relative to the largest output. Models are those of {suite.described}, with random weights.

*Attainable* is what a perfect rewrite could give that leaves dense products as they are: the time of an inference over
that of its matrix products and convolutions (`benchmarks/attainable.py`), which only onnxruntime tells. *Definitions
alone* and *and rules of one output* are ablations: what superopt finds with less than all of its rules, by its own
measurement.

{prediction([run for r in rows for run in (r.empty, r.full, *r.less)])}

{body}

{_plots(rows, runtime)}
"""


def _plots(rows: Sequence[Row], runtime: str) -> str:
    """What each model gains, and what superopt takes for it."""
    names, ours = [r.model for r in rows], [r.ours for r in rows]
    interval = [[p.low if p else 1.0 for p in ours], [p.high if p else 1.0 for p in ours]]
    speed = f"times faster than {runtime} alone: by superopt (bars; two lines: its interval), by the best other (line)"
    time, memory = "seconds of superopt: with an empty table (bars), with a full one (line)", "peak memory of superopt"
    return "\n\n".join(
        (
            chart(
                speed, names, "times", [p.ratio if p else 1.0 for p in ours], [*interval, [r.best_peer for r in rows]]
            ),
            chart(time, names, "s", [r.empty.seconds for r in rows], [[r.full.seconds for r in rows]]),
            chart(memory, names, "MB", [r.peak_bytes / 2**20 for r in rows]),
        )
    )


def main() -> None:
    """Run what was asked for, print it, and write the page anew after each model."""
    arguments, suite = _asked()
    out = arguments.out or (None if arguments.names or arguments.runtime != Options.runtime else suite.page)
    rows: list[Row] = []
    console = Console()
    with tempfile.TemporaryDirectory(prefix="superopt-suite-") as folder:
        for write in suite.models.values():
            rows.append(measured(apart(write), arguments.time, Path(folder), arguments.ablations, arguments.runtime))
            console.print("  ".join(rows[-1].cells()), highlight=False)
            if out:
                out.write_text(page(suite, rows, _facts(rows), arguments.runtime), encoding="utf-8")
    shown = Table(*COLUMNS, show_edge=False, pad_edge=False)
    for row in rows:
        shown.add_row(*row.cells())
    Console(width=200).print(shown)
    if wrong := [row.model for row in rows if row.differs]:
        sys.exit(f"not the same as the original: {', '.join(wrong)}")


def _facts(rows: Sequence[Row]) -> dict[str, str]:
    """The day, the versions of what was measured, and the command."""
    versions: dict[str, str] = next((r.full.report["versions"] for r in rows if r.full.report), {})
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"date": day, **versions, "command": shlex.join(["python", "-m", "benchmarks.suite", *sys.argv[1:]])}


def _asked() -> tuple[argparse.Namespace, Suite]:
    parser = argparse.ArgumentParser(description="Optimize a suite of models with superopt and with others.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="models [default: all of the suite]")
    parser.add_argument("--published", action="store_true", help="the networks of TASO, TENSAT and PET")
    parser.add_argument("--batch", type=int, nargs="+", metavar="N", help="of published ones [default: 1 16]")
    parser.add_argument("--runtime", choices=RUNTIMES, default=Options.runtime, help="what runs them, peers' too")
    parser.add_argument("--time", type=float, default=60.0, help="limit of each run of superopt, in seconds")
    parser.add_argument("--no-ablations", dest="ablations", action="store_false", help="with all rules alone")
    parser.add_argument(
        "--out", type=Path, help="the page to write [default: that of the suite, of all its models on onnxruntime]"
    )
    arguments = parser.parse_args()
    known = (*published.PUBLISHED,) if arguments.published else (*CLASSES,)
    if unknown := sorted({*arguments.names} - {*known}):
        parser.error(f"there is no model {', '.join(unknown)}; there are {', '.join(known)}")
    if arguments.batch and not arguments.published:
        parser.error("only published networks are made for a batch: --published")
    if missing := [p for p in PEERS if importlib.util.find_spec(p) is None]:
        parser.error(f"{', '.join(missing)} not installed; the suite needs: pip install 'superopt[bench]'")
    names = arguments.names or known
    return arguments, networks(names, arguments.batch or published.BATCHES) if arguments.published else classes(names)


if __name__ == "__main__":
    main()
