"""How fast terms are grown: evaluated terms a second and bytes a term, by level, for a family.

    python -m benchmarks.enumerate FAMILY [--max-ops N] [--equations]

The last level keeps fingerprints only. With `--equations` the independent equations are found too.
"""

from __future__ import annotations

import argparse
import resource
import time

from rich.console import Console
from rich.table import Table as Shown

from superopt.enumerate.equations import equations
from superopt.enumerate.family import load_family
from superopt.enumerate.grow import grow, memory_taken
from superopt.enumerate.represented import represented
from superopt.enumerate.table import Table


def main() -> None:
    """Measure one family."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family")
    parser.add_argument("--max-ops", type=int, default=None)
    parser.add_argument("--equations", action="store_true")
    given = parser.parse_args()
    family = load_family(given.family)
    depth = given.max_ops or family.depth
    shown = Shown(
        "operators", "evaluated", "new terms", "types", "seconds", "a second", "bytes a term", title=family.name
    )
    table = Table(family, 0, depth)
    for level in range(depth + 1):
        start, before, memory = time.perf_counter(), len(table), memory_taken()
        met = grow(table, level, level == depth)
        seconds, count = time.perf_counter() - start, len(met.rows)
        taken = max(memory_taken() - memory, 0) * 1e9 / max(count, 1)
        cells = (count, len(table) - before, len(table.types.shapes), seconds, count / seconds, taken)
        shown.add_row(str(level), *(f"{c:,.0f}" if c > 100 or isinstance(c, int) else f"{c:.2f}" for c in cells))
        del met
    console = Console()
    console.print(shown)
    console.print(f"{represented(table, depth):,} graphs represented; at most {_peak():.2f} GB")
    if given.equations:
        start = time.perf_counter()
        found = equations(family, depth, 0)
        console.print(
            f"{len(found.pairs):,} equations in {time.perf_counter() - start:.1f} s; at most {_peak():.2f} GB"
        )
        console.print({stage: f"{count:,}" for stage, count in found.counts.items()})


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    main()
