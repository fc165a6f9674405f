"""onnxruntime on a GPU: that it is refused, or fails by name, rather than run on the CPU; and how it is asked for.

What needs a GPU stands in the tests of all runtimes, where it is skipped without one.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import parser

from superopt.cost import ort_gpu
from superopt.cost.bench import Bench
from superopt.cost.child import Here
from superopt.cost.measured import MeasuredCost
from superopt.cost.ort import OnnxRuntime
from superopt.cost.ort_gpu import OnnxCuda, OnnxTensorRt
from superopt.cost.runtimes import runtime_named
from superopt.cost.table import Table
from superopt.cost.timing import Key
from superopt.errors import RuntimeFailed, UsageError

MODEL = parser.parse_model(
    '<ir_version: 8, opset_import: ["": 17]> g (float[4] x) => (float[4] y) { y = Relu(x) }'
).SerializeToString()
CPU, CUDA, TENSORRT = "CPUExecutionProvider", "CUDAExecutionProvider", "TensorrtExecutionProvider"
GPU = ["onnxruntime-cuda", "onnxruntime-tensorrt"]
MADE = {"onnxruntime-cuda": OnnxCuda, "onnxruntime-tensorrt": OnnxTensorRt}


class Pretended:
    """A session of which onnxruntime says that it has some providers; it runs on the CPU."""

    asked: list[Any]
    options: dict[str, Any]

    def __init__(self, loaded: list[str]) -> None:
        self.loaded = loaded

    def __call__(self, source: Any, options: Any, providers: Any, **more: Any) -> SimpleNamespace:
        self.asked, self.options = providers, more
        return SimpleNamespace(get_providers=lambda: self.loaded)


@pytest.fixture(autouse=True)
def as_new(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is known of this machine is forgotten before and after; so is what a session sets."""
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    ort_gpu.gpu.cache_clear()
    ort_gpu._preloaded.cache_clear()
    yield
    ort_gpu.gpu.cache_clear()
    ort_gpu._preloaded.cache_clear()


def pretend(monkeypatch: pytest.MonkeyPatch, loaded: list[str]) -> Pretended:
    """A package for GPUs, of whose providers these load."""
    session = Pretended(loaded)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [TENSORRT, CUDA, CPU])
    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: None)
    return session


class Driver:
    """The driver's library, of a machine with one GPU, or with none."""

    def __init__(self, name: bytes) -> None:
        self.name = name

    def cuInit(self, flags: int) -> int:  # noqa: N802
        return 0 if self.name else 100

    def cuDeviceGet(self, number: Any, index: int) -> int:  # noqa: N802
        return 0

    def cuDeviceGetName(self, name: Any, size: int, number: Any) -> int:  # noqa: N802
        name.value = self.name
        return 0

    def cuDriverGetVersion(self, version: Any) -> int:  # noqa: N802
        version._obj.value = 12080
        return 0


def with_driver(monkeypatch: pytest.MonkeyPatch, name: bytes, version: Path = Path("/nowhere")) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda library: Driver(name))
    monkeypatch.setattr(ort_gpu, "_DRIVER", version)


@pytest.mark.parametrize("name", GPU)
def test_a_package_without_the_provider_is_refused_with_what_installs_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CPU])
    with pytest.raises(UsageError, match=rf"runtime {name} is not installed.*pip install 'onnxruntime-gpu\[") as caught:
        runtime_named(name, 1)
    assert "in place of onnxruntime" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_tensorrt_is_refused_where_only_cuda_is_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CUDA, CPU])
    with_driver(monkeypatch, b"NVIDIA H100")
    assert isinstance(runtime_named("onnxruntime-cuda", 1), OnnxCuda)
    with pytest.raises(UsageError, match="runtime onnxruntime-tensorrt is not installed"):
        runtime_named("onnxruntime-tensorrt", 1)


def test_a_machine_without_a_driver_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(library: str) -> None:
        raise OSError(f"{library}: cannot open shared object file")

    pretend(monkeypatch, [CPU])
    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(UsageError, match=r"onnxruntime-cuda cannot be used here: there is no driver.*libcuda\.so\.1"):
        runtime_named("onnxruntime-cuda", 1)


def test_a_machine_without_a_gpu_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, [CPU])
    with_driver(monkeypatch, b"")
    with pytest.raises(UsageError, match="onnxruntime-cuda cannot be used here: CUDA finds no NVIDIA GPU: error 100"):
        runtime_named("onnxruntime-cuda", 1)


@pytest.mark.parametrize(
    ("told", "driver"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n",
            "driver 550.54.15",
        ),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86  Release Build\n", "driver 570.86"),
        (None, "for CUDA 12.8"),
    ],
)
def test_the_key_names_the_gpu_and_its_driver(
    told: str | None, driver: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if told is not None:
        (tmp_path / "version").write_text(told)
    with_driver(monkeypatch, b"NVIDIA H100", tmp_path / "version")
    version = onnxruntime.__version__
    assert OnnxCuda(2).key == Key("onnxruntime-cuda", version, f"NVIDIA H100 ({driver})", 2)
    assert OnnxTensorRt(2).key == Key("onnxruntime-tensorrt", version, f"NVIDIA H100 ({driver})", 2)


@pytest.mark.parametrize(
    ("name", "loaded", "missing"),
    [
        ("onnxruntime-cuda", [CPU], CUDA),
        ("onnxruntime-tensorrt", [CPU], f"{TENSORRT} and {CUDA}"),
        ("onnxruntime-tensorrt", [CUDA, CPU], TENSORRT),
    ],
)
def test_a_session_that_falls_back_to_another_provider_is_a_named_error(
    name: str, loaded: list[str], missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, loaded)
    with pytest.raises(RuntimeFailed, match=f"onnxruntime would go on without {missing}: its libraries"):
        MADE[name](1).session(MODEL)


def test_the_error_names_the_library_that_does_not_load_and_nothing_is_printed(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch, [CPU])
    told = "Failed to load libcublas.so.13: no such file\nPlease follow the instructions\n"
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: sys.stdout.write(told))
    with pytest.raises(
        RuntimeFailed, match=r"without CUDAExecutionProvider: Failed to load libcublas\.so\.13: no such file$"
    ):
        OnnxCuda(1).session(MODEL)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("loaded", [[CUDA, CPU], [CPU]])
def test_what_is_lacking_of_tensorrt_is_named_with_what_to_do(
    loaded: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of its libraries that of onnxruntime is the one that does not load here, as it is none."""
    pretend(monkeypatch, loaded)
    library = tmp_path / "capi/libonnxruntime_providers_tensorrt.so"
    library.parent.mkdir()
    library.write_bytes(b"no library")
    monkeypatch.setattr(onnxruntime, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(RuntimeFailed, match=r"^TensorRT does not load: .*tensorrt\.so: .*in LD_LIBRARY_PATH$"):
        OnnxTensorRt(1).session(MODEL)


def test_a_runtime_that_runs_nothing_is_refused_before_anything_is_searched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pretend(monkeypatch, [CPU])
    with_driver(monkeypatch, b"NVIDIA H100")
    with Table(tmp_path / "timings.sqlite") as table:
        cost = MeasuredCost(Bench(OnnxCuda(1), table, 17, child=Here()))  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="runtime onnxruntime-cuda cannot be used here: onnxruntime would go on"):
            cost.alone.demand_runs()


def test_cuda_computes_without_tf32_and_leaves_the_rest_to_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    session = pretend(monkeypatch, [CUDA, CPU])
    OnnxCuda(1).session(MODEL)
    assert session.asked == [(CUDA, {"use_tf32": "0"}), (CPU, {})]
    assert session.options == {"enable_fallback": 0}
    assert os.environ["NVIDIA_TF32_OVERRIDE"] == "0"


def test_tensorrt_computes_in_32_bits_writes_no_files_and_comes_before_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    session = pretend(monkeypatch, [TENSORRT, CUDA, CPU])
    OnnxTensorRt(1).session(MODEL)
    off = ("trt_fp16_enable", "trt_int8_enable", "trt_engine_cache_enable", "trt_timing_cache_enable")
    assert session.asked == [(TENSORRT, dict.fromkeys(off, "0")), (CUDA, {"use_tf32": "0"}), (CPU, {})]
    assert os.environ["NVIDIA_TF32_OVERRIDE"] == "0"


def test_a_run_binds_everything_on_the_gpu_and_waits_for_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the calls that it makes, as far as that can be seen without a GPU."""
    did: list[Any] = []

    class Binding:
        def __getattr__(self, name: str) -> Any:
            return lambda *given: did.append((name, *given))

    session = SimpleNamespace(
        io_binding=Binding,
        get_outputs=lambda: [SimpleNamespace(name="y", type="tensor(float)")],
        run_with_iobinding=lambda binding, options: did.append(("run", options)),
    )
    copied = SimpleNamespace(ortvalue_from_numpy=lambda value, place: (place, value.tolist()))
    monkeypatch.setattr(onnxruntime, "OrtValue", copied)
    bound = OnnxCuda(1).bound(session, {"x": np.ones(2, np.float32)})
    assert did == [
        ("bind_ortvalue_input", "x", ("cuda", [1.0, 1.0])),
        ("clear_binding_outputs",),
        ("bind_output", "y", "cuda"),
        ("synchronize_inputs",),
    ]
    for run in (bound.run, bound.run_first):
        did.clear()
        assert run() > 0
        assert did == [("run", None), ("synchronize_outputs",)]


@pytest.mark.parametrize("made", MADE.values())
def test_it_is_timed_by_wall_time_compared_with_the_cpu_and_can_be_sent(made: type[OnnxCuda]) -> None:
    runtime = made(1)
    assert runtime.clock is time.perf_counter
    assert runtime.standard == OnnxRuntime(1) != runtime
    assert pickle.loads(pickle.dumps(runtime)) == runtime
