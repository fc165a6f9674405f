"""Optimize GoogLeNet, with random weights, by the command that a user would type. Run by `make demo`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build/demo"
MODEL = FOLDER / "inception_v1.onnx"
SUPEROPT = str(Path(sys.executable).with_name("superopt"))
SHOWN = 8


def run(*command: str, most: int | None = None) -> None:
    """Show a command and run it, with its output live or just the first lines of it."""
    print("\n$", *command, flush=True)
    output = None if most is None else subprocess.PIPE
    done = subprocess.run(command, check=True, cwd=ROOT, stdout=output, text=True)  # noqa: S603 - those below
    if most is not None:
        lines = done.stdout.splitlines()
        print(*lines[:most], f"… and {len(lines) - most} more lines", sep="\n", flush=True)


def main() -> None:
    """Make the model, look at it as terms, optimize it."""
    run(sys.executable, "-m", "benchmarks.networks", str(FOLDER), MODEL.stem)
    run(SUPEROPT, "show", str(MODEL), most=SHOWN)
    target, report = FOLDER / "faster.onnx", FOLDER / "report.json"
    run(SUPEROPT, "optimize", str(MODEL), str(target), "--time", "60", "--report", str(report), "--overwrite")


if __name__ == "__main__":
    main()
