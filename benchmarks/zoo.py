"""Every network optimized as a user would, once with an empty table of timings and then with a full one, and once with
each half of what the search may do; by `make bench`.

Each run is a process of its own, one after the other, so that its seconds and its peak memory are its own.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from benchmarks import table
from benchmarks.runs import BOTH, DEFINITIONS_ALONE, EMPTY, FULL, RULES_ALONE, Run
from superopt.asked import Options
from superopt.cost.runtimes import RUNTIMES

# Networks are written by another process: what this one holds would count as its children's peak memory.
ROOT = Path(__file__).parents[1]
NETWORKS = ROOT / "build/bench"
WIDTH = 210  # of the table; narrower columns cut the figures
QUICK = ("squeezenet", "inception_v1")
SUPEROPT = str(Path(sys.executable).with_name("superopt"))


def main() -> None:
    """Run what was asked for, print and write it."""
    arguments = _arguments()
    names = arguments.names or (QUICK if arguments.quick else _all_names())
    console = Console()
    runs: list[Run] = []
    with tempfile.TemporaryDirectory(prefix="superopt-bench-") as folder:
        for name in names:
            for run in measured(name, arguments.time, Path(folder), arguments.runtime):
                runs.append(run)
                console.print(table.line(run), highlight=False)
    Console(width=max(console.width, WIDTH)).print(table.rendered(runs))
    if arguments.out is not None:
        chosen = f" --names {' '.join(arguments.names)}" if arguments.names else ""
        chosen += f" --runtime {arguments.runtime}" if arguments.runtime != Options.runtime else ""
        facts = _facts(runs, f"--time {arguments.time:g}{chosen}")
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(table.page(runs, facts, arguments.runtime), encoding="utf-8")
        content = {"facts": facts, "runs": [asdict(r) for r in runs]}
        arguments.out.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def measured(name: str, limit: float, folder: Path, runtime: str = Options.runtime) -> list[Run]:
    """The four runs of one network on a runtime."""
    model, timings, none = NETWORKS / f"{name}.onnx", folder / f"{name}.sqlite", folder / "none.rules"
    if not model.exists():
        command = [sys.executable, "-m", "benchmarks.networks", str(NETWORKS), name]
        subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    given = ["--timings", str(timings), "--runtime", runtime]
    none.write_text("(rules :format 1)\n", encoding="utf-8")
    ways: Sequence[tuple[str, str, list[str]]] = (
        (BOTH, EMPTY, []),
        (BOTH, FULL, []),
        (RULES_ALONE, FULL, ["--no-definitions"]),
        (DEFINITIONS_ALONE, FULL, ["--rules", str(none)]),
    )
    return [run_once(model, uses, kind, [*given, *more], limit, folder) for uses, kind, more in ways]


def run_once(model: Path, uses: str, kind: str, more: list[str], limit: float, folder: Path) -> Run:
    """Run the command on one model; the result lies in the folder, as `out.onnx`."""
    report, said = folder / "report.json", folder / "stderr"
    report.unlink(missing_ok=True)
    command = [SUPEROPT, "optimize", str(model), str(folder / "out.onnx"), "--time", str(limit), *more]
    command += ["--report", str(report), "--overwrite"]
    start, peak = time.monotonic(), 0
    with said.open("w") as errors, subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors) as child:
        while child.poll() is None:
            peak = max(peak, resident(child.pid))
            time.sleep(0.05)
    seconds = time.monotonic() - start
    return Run(
        network=model.stem,
        uses=uses,
        timings=kind,
        seconds=seconds,
        peak_bytes=peak,
        model_bytes=model.stat().st_size,
        code=child.returncode,
        error=said.read_text(encoding="utf-8").strip() if child.returncode else "",
        report=json.loads(report.read_text(encoding="utf-8")) if report.exists() else None,
    )


def resident(pid: int) -> int:
    """The bytes that a process and those that it started hold in memory now; 0 where it has ended. What they map of
    files, as libraries, counts once: as much as the one that has most of it.
    """
    held = list(_held(pid))
    return sum(own for own, _ in held) + max((mapped for _, mapped in held), default=0)


def _held(pid: int) -> Iterator[tuple[int, int]]:
    """What each process holds of its own and of files, in bytes."""
    try:
        _, all_pages, mapped, *_ = map(int, Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split())
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return
    page = os.sysconf("SC_PAGE_SIZE")
    yield (all_pages - mapped) * page, mapped * page
    for child in children:
        yield from _held(int(child))


def _facts(runs: Sequence[Run], asked: str) -> dict[str, str]:
    versions: dict[str, str] = next((r.report["versions"] for r in runs if r.report), {})
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    # Whole commands take longer where other programs run; the load at the end tells whether they did.
    load = f"{os.getloadavg()[1]:.1f} on {os.cpu_count()} cores"
    return {"date": day, **versions, "load": load, "command": f"python -m benchmarks.zoo {asked}"}


def _all_names() -> list[str]:
    command = [sys.executable, "-c", "from benchmarks.networks import NAMES; print(*NAMES)"]
    return subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout.split()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Optimize the networks, and measure both them and that.")
    parser.add_argument("--names", nargs="+", metavar="NAME", help="networks [default: all nine]")
    parser.add_argument("--runtime", choices=RUNTIMES, default=Options.runtime, help="what runs them")
    parser.add_argument("--time", type=float, default=60.0, help="limit of each run, in seconds")
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}; nothing is written")
    parser.add_argument(
        "--out",
        type=Path,
        help="the page to write, and JSON beside it [default: docs/benchmarks.md, of all on onnxruntime]",
    )
    arguments = parser.parse_args()
    is_usual = arguments.runtime == Options.runtime
    if arguments.out is None and not arguments.quick and not arguments.names and is_usual:
        arguments.out = ROOT / "docs/benchmarks.md"
    return arguments


if __name__ == "__main__":
    main()
