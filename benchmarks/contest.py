"""One model under superopt and under the tools people use, each against a runtime alone.

Every result is measured beside the original, with all of the runtime's own optimizations, in turns in fresh pairs of
sessions, on one thread and in its time. Peers: onnxsim, onnxslim and onnxscript's optimizer, on the same runtime.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from benchmarks.attainable import attainable
from benchmarks.runs import BOTH, DEFINITIONS_ALONE, EMPTY, FULL, OF_ONE_OUTPUT, Run
from benchmarks.table import speedup, without_gain
from benchmarks.zoo import run_once
from superopt.asked import Options
from superopt.cost.runtimes import runtime_named
from superopt.errors import RuntimeFailed
from superopt.onnx_io import load, understand
from superopt.rules.format import load_rules, print_file
from superopt.rules.rule import Rule
from superopt.search.accepting.agreement import Agreement
from superopt.search.accepting.fed import Fed
from superopt.search.accepting.same import examine
from superopt.search.paired import Paired, compare
from superopt.search.rounds import Harness
from superopt.search.settings import Setting, limited
from superopt.shipped import shipped_rules
from superopt.verify.trusted import sealed

T = TypeVar("T")

BUDGET_S = 6.0
SEED = 20261126
"""Of inputs for comparing: others than superopt draws by itself."""
PEER_S = 600.0
"""What a peer may take; one that takes longer has failed."""

_ONNXSCRIPT = "import sys, onnx, onnxscript.optimizer as o; onnx.save(o.optimize(onnx.load(sys.argv[1])), sys.argv[2])"
PEERS = {
    "onnxsim": [sys.executable, "-m", "onnxsim"],
    "onnxslim": [str(Path(sys.executable).with_name("onnxslim"))],
    "onnxscript": [sys.executable, "-c", _ONNXSCRIPT],
}
"""The tools by name, each a command that takes the model and the file to write."""

COLUMNS = (
    "model", "attainable", "superopt", *PEERS, "definitions alone", "and rules of one output", "original",
    "s, empty table", "s, full table", "peak memory", "error",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One model: how much faster it is after each tool, and what superopt took. None where a tool failed. What is
    attainable is known of onnxruntime only.

    `less` are runs that may use definitions alone, and these and rules of one output; none where these were not run.
    `agreement` is how the result of superopt compares with the original on inputs that superopt had not drawn.
    """

    model: str
    attainable: float | None
    ours: Paired | None
    peers: dict[str, Paired | None]
    empty: Run
    full: Run
    less: tuple[Run, ...]
    agreement: Agreement | None

    @property
    def differs(self) -> bool:
        """Whether the result of superopt does not compute what the original does."""
        return self.agreement is not None and self.agreement.differs

    @property
    def peak_bytes(self) -> int:
        """The most memory that superopt took."""
        return max(self.empty.peak_bytes, self.full.peak_bytes)

    @property
    def best_peer(self) -> float:
        """How many times faster the model is after the best of the others, or as it was."""
        return max((p.ratio for p in self.peers.values() if p), default=1.0)

    def cells(self) -> tuple[str, ...]:
        """What the table says."""
        return (
            self.model,
            "not known" if self.attainable is None else f"{self.attainable:.2f}",
            without_gain(self.full) if self.ours is None else _shown(self.ours),
            *("failed" if p is None else _shown(p) for p in self.peers.values()),
            *(map(speedup, self.less) if self.less else ("not run", "not run")),
            _milliseconds(self.ours, *self.peers.values()),
            f"{self.empty.seconds:.1f}",
            f"{self.full.seconds:.1f}",
            f"{self.peak_bytes / 2**20:.0f} MB",
            "" if self.agreement is None else _error(self.agreement),
        )


def _error(agreement: Agreement) -> str:
    """The largest error of any output, or why there is none."""
    if agreement.differs or not agreement.examined:
        return agreement.reason
    return f"{max(o.error for o in agreement.outputs):.1e}"


def _milliseconds(*measured: Paired | None) -> str:
    """What the original takes, as the first that was measured beside it says."""
    return next((f"{p.original_s * 1e3:.2f} ms" for p in measured if p), "")


def measured(model: Path, limit: float, folder: Path, ablations: bool = True, runtime: str = Options.runtime) -> Row:
    """Optimize a model with each tool, and measure what comes out on a runtime; `folder` is where all is written."""
    timings, out = folder / f"{model.stem}.sqlite", folder / "out.onnx"
    given = ["--timings", str(timings), "--runtime", runtime]
    empty, full = (run_once(model, BOTH, kind, given, limit, folder) for kind in (EMPTY, FULL))
    gained = full.report is not None and full.report["outcome"] == "faster"
    ours = _compared(runtime, model, out) if gained else None
    agreement = apart(_agreement, runtime, model, out) if gained else None
    peers = {peer: _beside(runtime, command, model, folder / f"{peer}.onnx") for peer, command in PEERS.items()}
    fewer: tuple[tuple[str, list[Rule]], ...] = (
        (DEFINITIONS_ALONE, []),
        (OF_ONE_OUTPUT, [r for r in _shipped() if len(r.source) == 1]),
    )
    less = tuple(
        run_once(model, uses, FULL, [*given, "--rules", str(_written(rules, folder))], limit, folder)
        for uses, rules in (fewer if ablations else ())
    )
    best = apart(attainable, model, folder) if runtime == Options.runtime else None
    return Row(model.stem, best, ours, peers, empty, full, less, agreement)


def _beside(runtime: str, command: list[str], model: Path, theirs: Path) -> Paired | None:
    """The model beside what a tool makes of it, in a file that is removed; None where it makes nothing."""
    try:
        ended = subprocess.run([*command, str(model), str(theirs)], capture_output=True, check=False, timeout=PEER_S)
        return _compared(runtime, model, theirs) if ended.returncode == 0 and theirs.exists() else None
    except subprocess.TimeoutExpired:
        return None
    finally:
        theirs.unlink(missing_ok=True)


def _shipped() -> list[Rule]:
    return [rule for path in shipped_rules() for rule in load_rules(path).rules]


def _written(rules: Sequence[Rule], folder: Path) -> Path:
    """A file of rules that are known to be proved."""
    path = folder / "some.rules"
    path.write_text(print_file(sealed(rules, {})), encoding="utf-8")
    return path


def apart(function: Callable[..., T], *arguments: object) -> T:
    """In a process of its own: what this one held would count as memory of the commands that it runs."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _compared(runtime: str, original: Path, candidate: Path) -> Paired | None:
    return apart(_side_by_side, runtime, original, candidate)


def _side_by_side(runtime: str, original: Path, candidate: Path) -> Paired | None:
    try:
        return compare(original, candidate, Harness(runtime_named(runtime, 1), seed=1), budget_s=BUDGET_S)
    except RuntimeFailed:
        return None


def _agreement(runtime: str, original: Path, candidate: Path) -> Agreement:
    setting = limited(understand(load(original)), Setting())
    return examine(original, candidate, runtime_named(runtime, 1), fed=Fed(settings=(setting,), seed=SEED))


def _shown(paired: Paired) -> str:
    return f"{paired.ratio:.3f} ({paired.low:.3f} to {paired.high:.3f})"
