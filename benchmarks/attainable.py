"""How much faster a model could be at best if nothing but its dense products took time.

What a rewrite cannot do without is the matrix products and convolutions; all else may be folded, fused or left out. So
the best is the time of all kernels over that of the products, as the runtime's profiler sees them with all of its own
optimizations. Where algebra leaves out products too (equal weights added up, tiles of fewer multiplications), a model
can gain more.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

from superopt.cost.ort import OnnxRuntime
from superopt.cost.runtime import WARM_UP

RUNS = 10
PRODUCTS = ("Conv", "MatMul", "Gemm", "ConvTranspose")
"""How the runtime's dense products are called, whatever they are fused with and laid out in."""


def attainable(model: Path, folder: Path) -> float:
    """The time of all kernels over that of dense products; `folder` is where the profiler may write."""
    runtime = OnnxRuntime(1)
    session = runtime.session(model, profile=folder / "profile")
    feeds = runtime.feeds(session, seed=0)
    for _ in range(WARM_UP + RUNS):
        runtime.run(session, feeds)
    events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    spent: dict[bool, list[float]] = defaultdict(list)
    for event in events:
        if event.get("cat") == "Node" and str(event["name"]).endswith("_kernel_time"):
            spent[_is_product(event["args"])].append(event["dur"])
    products, rest = (sum(spent[kind]) for kind in (True, False))
    return (products + rest) / products if products else float("inf")


def _is_product(facts: dict[str, str]) -> bool:
    return any(name in facts["op_name"] for name in PRODUCTS)
