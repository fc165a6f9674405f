"""Seconds and peak memory of reading a model, understanding it and writing it back.

`python -m benchmarks.reading` measures ResNet-50, a graph of 13,000 nodes and a model of 2.5 GB, each in a
process of its own, and writes `docs/reading.md`.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnx_ir as ir
from rich.progress import track

from benchmarks.networks import network
from superopt.onnx_io import load, save, understand

PAGE = Path(__file__).parents[1] / "docs/reading.md"
RUNS = 3

HEAD = f"""# Reading

Reading a model, understanding it and writing it back, in a process of its own: medians of {RUNS} runs. The memory is
the most that the process held, less what it holds once superopt is imported. Written by `python -m benchmarks.reading`.

| model | size | nodes | seconds | memory |
| --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Reading:
    """One run: seconds from file to file, and bytes at the most."""

    nodes: int
    seconds: float
    memory: int


def of_many_nodes(path: Path, count: int = 13_000) -> None:
    """A chain of additions, multiplications and activations."""
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([1, 8]))
    nodes, value = [], x
    for i in range(count):
        kind = ("Add", "Relu", "Mul", "Sigmoid")[i % 4]
        nodes.append(ir.Node("", kind, [value, x] if kind in ("Add", "Mul") else [value], name=f"n{i}"))
        value = nodes[-1].outputs[0]
        value.name = f"v{i}"
    value.type, value.shape = x.type, x.shape
    graph = ir.Graph([x], [value], nodes=nodes, opset_imports={"": 17}, name="chain")
    ir.save(ir.Model(graph, ir_version=8), path)


def of_many_bytes(path: Path, layers: int = 10, width: int = 8192) -> None:
    """Matrix products with weights of 268 MB each, that lie beside the model: together 2.7 GB (2.5 GiB)."""
    data = path.with_name("weights.bin")
    with data.open("wb") as file:
        file.truncate(layers * width * width * 4)  # without blocks on the disk: zeros
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([1, width]))
    nodes, weights, value = [], [], x
    for i in range(layers):
        shape = ir.Shape([width, width])
        tensor = ir.ExternalTensor(
            data.name,
            i * width * width * 4,
            width * width * 4,
            ir.DataType.FLOAT,
            shape=shape,
            name=f"w{i}",
            base_dir=path.parent,
        )
        weights.append(ir.Value(name=f"w{i}", type=x.type, shape=shape, const_value=tensor))
        nodes.append(ir.Node("", "MatMul", [value, weights[-1]], name=f"n{i}"))
        value = nodes[-1].outputs[0]
        value.name = f"v{i}"
    value.type, value.shape = x.type, x.shape
    graph = ir.Graph([x], [value], nodes=nodes, initializers=weights, opset_imports={"": 17}, name="wide")
    onnx.save(ir.to_proto(ir.Model(graph, ir_version=8)), path)


MODELS: dict[str, Callable[[Path], None]] = {
    "ResNet-50": lambda path: onnx.save(network("resnet50"), path),
    "13,000 nodes": of_many_nodes,
    "2.5 GiB of weights beside it": of_many_bytes,
}


def read_and_write(path: Path) -> Reading:
    """From file to file, in this process."""
    before, start = _peak(), time.perf_counter()
    program = understand(load(path))
    save(program.model, path.with_name("written.onnx"))
    return Reading(len(program.steps), time.perf_counter() - start, _peak() - before)


def _peak() -> int:
    """The most that this process held, in bytes; `getrusage` would count what its parent held when it was begun."""
    (line,) = (ln for ln in Path("/proc/self/status").read_text().splitlines() if ln.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def measured(path: Path) -> list[Reading]:
    """So many runs, each a process of its own."""
    found = []
    for _ in range(RUNS):
        for written in path.parent.glob("written.onnx*"):
            written.unlink()
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.reading", str(path)], check=True, capture_output=True, text=True
        )
        found.append(Reading(**json.loads(done.stdout)))
    return found


def main() -> int:
    """Write the page, or with a model print one reading of it."""
    if len(sys.argv) > 1:
        print(json.dumps(read_and_write(Path(sys.argv[1])).__dict__))
        return 0
    page = HEAD
    for name, make in track(MODELS.items(), description="models", transient=True):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            make(path)
            size = sum(file.stat().st_size for file in path.parent.iterdir())
            found = measured(path)
        seconds = statistics.median(r.seconds for r in found)
        memory = statistics.median(r.memory for r in found)
        page += f"| {name} | {size / 1e6:,.0f} MB | {found[0].nodes:,} | {seconds:.2f} s | {memory / 1e6:,.0f} MB |\n"
    PAGE.write_text(page, encoding="utf-8")
    print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
