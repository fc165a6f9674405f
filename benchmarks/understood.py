"""How much of networks that people have is understood: of their nodes, operations and measured time.

`python -m benchmarks.understood` writes `docs/understood.md`, from the networks that `benchmarks.networks` and
`benchmarks.exported` have written.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from rich.progress import track

from benchmarks.networks import NAMES
from superopt.inspection import Inspection, inspect_model

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/understood.md"
FOLDERS = ("bench", "exported")

HEAD = """# Understood

Of networks that people have: how many nodes are read as terms, and what share of the operations and of the measured
time is in these (onnxruntime's profiler, one thread, nothing optimized, symbolic sizes as likely ones). The others are
carried through as they are. Written by `python -m benchmarks.understood`.

| network | nodes | understood | of operations | of time | opaque |
| --- | --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Row:
    """One network."""

    name: str
    found: Inspection

    def __str__(self) -> str:
        whole, known = self.found.whole, self.found.known
        opaque = [f"{g.operator} ({n}): {why}" for g in self.found.groups for why, n in g.reasons.items()]
        shares = [_percent(known.nodes, whole.nodes), _percent(known.flops, whole.flops)]
        shares.append(_percent(known.seconds, whole.seconds))
        return f"| {self.name} | {whole.nodes} | {' | '.join(shares)} | {'; '.join(opaque).replace('|', ' ')} |"


def rows(folder: Path) -> list[Row]:
    """The networks of a folder. Raises `FileNotFoundError` where it has none."""
    files = sorted(folder.glob("*.onnx"))
    if folder.name == "bench":
        files = [f for f in files if f.stem in NAMES]
    if not files:
        raise FileNotFoundError(f"{folder} has no networks; see benchmarks/networks.py and benchmarks/exported.py")
    return [Row(f.stem, inspect_model(f)) for f in track(files, description=folder.name, transient=True)]


def main() -> int:
    """Inspect all networks and write the page."""
    page = HEAD
    found: list[Row] = []
    for name in FOLDERS:
        found += rows(ROOT / "build" / name)
    page += "".join(f"{row}\n" for row in found)
    nodes = sum(r.found.whole.nodes for r in found), sum(r.found.known.nodes for r in found)
    seconds = [(r.found.whole.seconds or 0.0, r.found.known.seconds or 0.0) for r in found]
    page += (
        f"\nOf all {nodes[0]} nodes {_percent(nodes[1], nodes[0])} are understood, of all time "
        f"{_percent(sum(k for _, k in seconds), sum(w for w, _ in seconds))}.\n"
    )
    PAGE.write_text(page, encoding="utf-8")
    print(page)
    return 0


def _percent(part: float | None, whole: float | None) -> str:
    return f"{100 * part / whole:.1f} %" if part is not None and whole else "–"


if __name__ == "__main__":
    sys.exit(main())
