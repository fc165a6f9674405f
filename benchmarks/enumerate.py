"""How fast terms are grown: evaluated terms a second and bytes a term, by level, for a family.

    python -m benchmarks.enumerate FAMILY [--max-ops N] [--equations] [--json]
    python -m benchmarks.enumerate --page

The last level keeps fingerprints only. With `--equations` the independent equations are found too, from the start.
`--page` measures TASO's operators to four and their two-dimensional part to five, each in a process of its own, and
writes `docs/enumeration.md`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as Shown

from superopt.cost.timing import device
from superopt.enumerate.equations import equations
from superopt.enumerate.family_text import load_family
from superopt.enumerate.grow import grow, memory_taken
from superopt.enumerate.represented import represented
from superopt.enumerate.table import Table

PAGE = Path(__file__).parents[1] / "docs" / "enumeration.md"
COMMANDS = [["taso", "--max-ops", "4", "--equations"], ["taso-matrices", "--max-ops", "5"]]
COLUMNS = ("operators", "evaluated", "new terms", "types", "seconds", "a second", "bytes a term")

TEXT = """# Enumeration, level by level

- date: {date}
- device: {device}, one of {cores} cores
- command: python -m benchmarks.enumerate --page

TASO enumerates all graphs of up to four of its operators, 66 million, in five minutes of C++, and finds 28,744
candidates, of which 743 rules are left (Jia et al., SOSP 2019). Here terms of one value are evaluated once, and larger
ones are made of the first alone; *graphs* are the expression trees whose value is known by that, those that share
results come on top. What is equal is connected by equations, and *independent* ones are those that follow from no
others; which are rules, proofs say ([how many](rules.md)).

"""


def measured(name: str, most: int | None, with_equations: bool) -> dict[str, Any]:
    """What growing a family takes, level by level, and finding its equations."""
    family = load_family(name)
    depth = most or family.depth
    table, levels = Table(family, 0, depth), []
    for level in range(depth + 1):
        start, before, memory = time.perf_counter(), len(table), memory_taken()
        met = grow(table, level, level == depth)
        seconds, count = time.perf_counter() - start, len(met.rows)
        taken = max(memory_taken() - memory, 0) * 1e9 / max(count, 1)
        levels.append([level, count, len(table) - before, len(table.types.shapes), seconds, count / seconds, taken])
        del met
    result = {"family": name, "levels": levels, "graphs": represented(table, depth)}
    del table
    if with_equations:
        start = time.perf_counter()
        found = equations(family, depth, 0)
        result["equations"] = {**found.counts, "seconds": time.perf_counter() - start}
    return {**result, "GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9}


def _rows(result: dict[str, Any]) -> list[list[str]]:
    return [[f"{c:,.0f}" if c > 100 or isinstance(c, int) else f"{c:.2f}" for c in row] for row in result["levels"]]


def _said(result: dict[str, Any]) -> str:
    """What a family came to, in a line."""
    seconds = sum(row[4] for row in result["levels"])
    said = f"{result['graphs']:,} graphs in {seconds:.0f} s; at most {result['GB']:.2f} GB."
    if found := result.get("equations"):
        said += (
            f" {found['candidates']:,} are equal to another, {found['up to names']:,} up to names, and"
            f" {found['that follow from no others']:,} equations are independent: growing and finding them took"
            f" {found['seconds']:.0f} s."
        )
    return said


def _write_page() -> None:
    parts = [TEXT.format(date=datetime.datetime.now(datetime.UTC).date(), device=device(), cores=os.cpu_count())]
    for command in COMMANDS:
        run = [sys.executable, "-m", "benchmarks.enumerate", *command, "--json"]
        result = json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
        lines = [f"| {' | '.join(row)} |" for row in (COLUMNS, ["---:"] * len(COLUMNS), *_rows(result))]
        parts += [f"## {result['family']}\n\n{_said(result)}\n\n", "\n".join(lines), "\n\n"]
    PAGE.write_text("".join(parts).rstrip() + "\n", encoding="utf-8")


def main() -> None:
    """Measure one family, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("family", nargs="?")
    what.add_argument("--page", action="store_true")
    parser.add_argument("--max-ops", type=int, default=None)
    parser.add_argument("--equations", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.page:
        _write_page()
        return
    result = measured(given.family, given.max_ops, given.equations)
    if given.json:
        print(json.dumps(result))
        return
    shown = Shown(*COLUMNS, title=result["family"])
    for row in _rows(result):
        shown.add_row(*row)
    console = Console()
    console.print(shown)
    console.print(_said(result))


if __name__ == "__main__":
    main()
