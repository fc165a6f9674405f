"""How many candidates a search looks at in a second of processor time, where nothing has to be measured for it.

`python -m benchmarks.search_speed MODEL...` searches every distinct piece of each model, once with the analytic cost
and once with the cost of a full table of timings. A kernel's seconds in that table are made up (its analytic ones, and
a factor drawn by its signature), so that no runtime runs and every machine finds the same. The digest is of all that
was found: two versions of superopt with the same one searched alike.

A candidate is what one rewrite makes of a graph, and counts before it is known whether that was seen before;
*new* are those that were not.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table as Sheet

from superopt.api import definitions
from superopt.cost.alone import Alone
from superopt.cost.analytic import AnalyticCost
from superopt.cost.bench import Bench
from superopt.cost.kernels import Kernel, forget_terms
from superopt.cost.measured import CostInPlace, MeasuredCost
from superopt.cost.model import Cost
from superopt.cost.ort import OnnxRuntime
from superopt.cost.table import Table
from superopt.cost.timing import Timing
from superopt.memory import seldom_collecting
from superopt.onnx_io import load, opset_of, understand
from superopt.rules.format import load_rules
from superopt.rules.otherwise import otherwise
from superopt.search.cutting.pieces import Piece, cut_into_pieces, distinct
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import Rewrite, rewrites_of
from superopt.search.strategies.by_name import STRATEGIES
from superopt.search.strategies.found import Limits, Outcome
from superopt.shipped import shipped_rules

Costs = Callable[[Piece], Cost]


class MadeUp(Alone):
    """Times by a table, in which what is lacking is entered without a measurement."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench, streamed=0)
        self._made = bench

    def seconds(self, kernel: Kernel) -> float:
        """Those of the analytic cost, by a factor of the kernel's own."""
        drawn = int.from_bytes(hashlib.sha256(kernel.signature.encode()).digest()[:4], "big") / 2**32
        timing = Timing(_ANALYTIC.seconds(kernel) * (0.5 + drawn), 0.0, 1)
        self._made.keep(kernel.signature, timing)
        return timing.seconds


class MadeUpCost(MeasuredCost):
    """The cost by such a table."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self.alone = MadeUp(bench)

    def layout_s_per_byte(self) -> float:
        """That of memory, in the analytic cost."""
        return 1.0 / _ANALYTIC.rates.bytes_per_s


_ANALYTIC = AnalyticCost()


@dataclass(frozen=True)
class Searched:
    """A distinct piece: the candidates and how many were new, seconds of processor time, a digest of what was found."""

    candidates: int
    graphs: int
    seconds: float
    digest: str


def rewrites() -> list[Rewrite]:
    """All that a search may do by default."""
    rules = [r for path in shipped_rules() for r in load_rules(path).rules]
    return rewrites_of([*rules, *otherwise(rules)], definitions())


def searched(pieces: Sequence[Piece], given: Sequence[Rewrite], costs: Costs, strategy: str) -> list[Searched]:
    """Search pieces one after the other, as `optimize` does."""
    matching, found = Matching(given), []
    forget_terms()  # what an earlier run saw
    with seldom_collecting():
        for piece in pieces:
            graph, cost = piece.canonical, costs(piece)
            start = time.process_time()
            outcome = STRATEGIES[strategy](graph, matching, cost, Limits())
            seconds = time.process_time() - start
            found.append(Searched(outcome.candidates, outcome.seen, seconds, _digest(outcome)))
    return found


def _digest(outcome: Outcome) -> str:
    told = [(outcome.seen, outcome.reason)]
    best = [
        (str(f.graph), f"{f.cost:.9g}", [(s.name, repr(s.before), repr(s.after)) for s in f.steps])
        for f in outcome.best
    ]
    return hashlib.sha256(repr((told, best)).encode()).hexdigest()[:12]


def main() -> None:
    """Search and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--strategy", choices=STRATEGIES, default="backtrack")
    arguments = parser.parse_args()
    given = rewrites()
    for path in arguments.models:
        model = load(path)
        pieces = [places[0] for places in distinct(cut_into_pieces(understand(model))).values()]
        with Table(Path(":memory:")) as table:

            def by_table(piece: Piece, table: Table = table, opset: int = opset_of(model)) -> Cost:
                return CostInPlace(MadeUpCost(Bench(OnnxRuntime(1), table, opset)), piece.place)

            searched(pieces, given, by_table, arguments.strategy)  # fills the table
            runs = {
                "analytic": searched(pieces, given, lambda _: AnalyticCost(), arguments.strategy),
                "table": searched(pieces, given, by_table, arguments.strategy),
            }
        _show(path.stem, runs)


def _show(name: str, runs: dict[str, list[Searched]]) -> None:
    sheet = Sheet("cost", "piece", "candidates", "new", "seconds", "a second", "new", "digest", title=name)
    for cost, found in runs.items():
        for i, s in enumerate(found):
            sheet.add_row(
                cost,
                str(i),
                str(s.candidates),
                str(s.graphs),
                f"{s.seconds:.2f}",
                f"{s.candidates / s.seconds:.0f}",
                f"{s.graphs / s.seconds:.0f}",
                s.digest[:8],
            )
        graphs, seconds = sum(s.graphs for s in found), sum(s.seconds for s in found)
        candidates = sum(s.candidates for s in found)
        together = hashlib.sha256("".join(s.digest for s in found).encode()).hexdigest()[:12]
        totals = (
            str(candidates),
            str(graphs),
            f"{seconds:.2f}",
            f"{candidates / seconds:.0f}",
            f"{graphs / seconds:.0f}",
        )
        sheet.add_row(cost, "all", *totals, together[:8], end_section=True)
    Console().print(sheet)


if __name__ == "__main__":
    main()
