"""How much faster a model could be at best if nothing but its dense products took time.

What a rewrite cannot do without is the matrix products and convolutions; all else may be folded, fused or left out. So
the best is the time of the model over that of the products, with all of the runtime's own optimizations. Where algebra
leaves out products too (equal weights added up, tiles of fewer multiplications), a model can gain more.

Kernels are timed by the runtime's profiler, which takes time itself: some microseconds for each, so that those of a
small Llama take half as much again together as an inference does. So the model is run without it too, in turns, and
what kernels take together beyond that is taken off each of them alike.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

from superopt.cost.ort import OnnxRuntime
from superopt.cost.runtime import WARM_UP

RUNS = 30
PRODUCTS = ("Conv", "MatMul", "Gemm", "ConvTranspose")
"""How the runtime's dense products are called, whatever they are fused with and laid out in."""


def attainable(model: Path, folder: Path) -> float:
    """The time of an inference over that of its dense products; `folder` is where the profiler may write."""
    runtime = OnnxRuntime(1)
    plain, profiled = runtime.session(model), runtime.session(model, profile=folder / "profile")
    feeds = runtime.feeds(plain, seed=0)
    bare, traced = runtime.bound(plain, feeds), runtime.bound(profiled, feeds)
    alone: list[float] = []
    for _ in range(WARM_UP + RUNS):
        alone.append(bare.run())
        traced.run()
    events = json.loads(Path(profiled.end_profiling()).read_text(encoding="utf-8"))
    spent: dict[tuple[bool, str], list[float]] = defaultdict(list)
    for event in events:
        if event.get("cat") == "Node" and str(event["name"]).endswith("_kernel_time"):
            spent[_is_product(event["args"]), event["name"]].append(event["dur"] / 1e6)
    kernels = [(is_product, statistics.median(times[WARM_UP:])) for (is_product, _), times in spent.items()]
    return best(statistics.median(alone[WARM_UP:]), kernels)


def best(seconds: float, kernels: Collection[tuple[bool, float]]) -> float:
    """What is left over if products alone take time: of an inference without the profiler, and of its kernels whether
    they are products, with the seconds that the profiler says.
    """
    added = max(sum(times for _, times in kernels) - seconds, 0.0) / max(len(kernels), 1)
    products = sum(max(times - added, 0.0) for is_product, times in kernels if is_product)
    return seconds / products if products else float("inf")


def _is_product(facts: dict[str, str]) -> bool:
    return any(name in facts["op_name"] for name in PRODUCTS)
