"""What is asked of the library: `Options`, what of them a report tells, and what of them a search depends on."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from superopt.cost.measured import MeasuredCost
from superopt.cost.runtimes import RUNTIMES
from superopt.errors import UsageError
from superopt.search.objectives.by_name import OBJECTIVES
from superopt.search.report import Settings
from superopt.search.settings import Range, as_range, shape_text
from superopt.search.solving.remembered import digest
from superopt.search.strategies.by_name import STRATEGIES


@dataclass(frozen=True)
class Options:
    """How to optimize. `objective` is what is to be less, one of `OBJECTIVES`; `time` is the limit in seconds;
    `runtime` is one of `RUNTIMES`; `strategy` is one of `STRATEGIES`, and `alpha` how much dearer than the best the
    graphs may be that it goes on from; `rules` are rule files (None: those that come with superopt); `operators` are
    Python files that declare further operators, for as long as the process lives; `definitions` allows composite
    operators to be unfolded; `timings` is the table of what was measured and found (None: the user's own); `inputs` are
    samples to compare on, besides random ones, and the first is measured on; `shapes` gives inputs their sizes, each a
    number or a range.
    """

    objective: str = "latency"
    time: float = 60.0
    runtime: str = "onnxruntime"
    threads: int = 1
    strategy: str = "backtrack"
    alpha: float = 1.15
    seed: int = 0
    rules: tuple[Path, ...] | None = None
    operators: tuple[Path, ...] = ()
    definitions: bool = True
    timings: Path | None = None
    inputs: tuple[Mapping[str, np.ndarray], ...] = ()
    shapes: Mapping[str, Sequence[int | Range]] | None = None

    def __post_init__(self) -> None:
        cores = os.cpu_count() or 1
        for fits, name, value, domain in (
            (self.objective in OBJECTIVES, "objective", self.objective, " or ".join(OBJECTIVES)),
            (0 < self.time < math.inf, "time", self.time, "a number of seconds above 0"),
            (1 <= self.threads <= cores, "threads", self.threads, f"1 to {cores}, as many as this machine has"),
            (self.runtime in RUNTIMES, "runtime", self.runtime, " or ".join(RUNTIMES)),
            (self.strategy in STRATEGIES, "strategy", self.strategy, " or ".join(STRATEGIES)),
            (1 <= self.alpha < math.inf, "alpha", self.alpha, "a number of at least 1"),
            (self.seed >= 0, "seed", self.seed, "at least 0"),
        ):
            if not fits:
                raise UsageError(f"{name} is {domain}; got {value}")
        self.ranges()

    def ranges(self) -> dict[str, tuple[Range, ...]]:
        """Of each size of an input that is given, the least and the most. Raises `UsageError`."""
        return {name: tuple(as_range(name, d) for d in sizes) for name, sizes in (self.shapes or {}).items()}


def settings_told(options: Options, files: Sequence[Path], sizes: dict[str, str]) -> Settings:
    """The options as a report tells them, with the rule files by name and the sizes that were assumed."""
    return Settings(
        objective=options.objective,
        time=options.time,
        threads=options.threads,
        strategy=options.strategy,
        alpha=options.alpha,
        seed=options.seed,
        definitions=options.definitions,
        runtime=options.runtime,
        shapes={n: shape_text(ranges) for n, ranges in options.ranges().items()},
        assumed=sizes,
        rules=tuple(f.name for f in files),
    )


def search_digest(options: Options, files: Sequence[Path], cost: MeasuredCost) -> str:
    """A digest of all that what a search finds for a piece depends on, besides the piece and the runtime."""
    asked = (
        options.objective,
        options.strategy,
        options.alpha,
        options.definitions,
        sorted(cost.bench.sizes.items()),
        cost.bench.opset,
        cost.bench.highest,
        cost.around,
        cost.bench.loses_sizes,
    )
    code = sorted(Path(__file__).parent.rglob("*.py"))  # of another version anything may be found
    return digest((*code, *files, *options.operators), asked)
