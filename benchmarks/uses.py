"""`python -m benchmarks.uses OUT.json MODEL...` optimizes models and counts how often each rule was used."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from superopt.api import Options, optimize

SECONDS = 30.0
"""For each model."""


def main(out: Path, models: list[Path]) -> None:
    """Write how often each rule stands in the reports of these models."""
    uses: Counter[str] = Counter()
    by_model: dict[str, int] = {}
    for model in models:
        report = optimize(model, Options(time=SECONDS)).report
        used = Counter({r.name: r.times for r in report.rewrites if r.known == "proved"})
        uses += used
        by_model[model.stem] = used.total()
        print(f"{model.stem}: {report.outcome}, rules applied {used.total()} times", flush=True)
    out.write_text(
        json.dumps({"models": by_model, "rules": dict(uses.most_common())}, indent=1) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
