"""onnxruntime on an NVIDIA GPU, by CUDA or TensorRT: the package `onnxruntime-gpu` in place of `onnxruntime`.

It computes in the precision of the model, as the others do: TF32 rounds factors to 10 bits, and what differs by that is
not the same. A run is timed with its inputs and outputs on the GPU, so that no copies count, until the GPU is done.
"""

from __future__ import annotations

import ctypes
import os
import re
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar

import onnxruntime
from numpy.typing import NDArray

from superopt.cost.inputs import Feeds
from superopt.cost.ort import BoundSession, OnnxRuntime, Provider
from superopt.cost.rates import GPU
from superopt.cost.runtime import Runtime, Session
from superopt.cost.timing import Key
from superopt.errors import RuntimeFailed, one_line

_DRIVER = Path("/proc/driver/nvidia/version")
_TENSORRT = "libonnxruntime_providers_tensorrt.so"


class OnnxCuda(OnnxRuntime):
    """onnxruntime's CUDA provider on the first GPU; the threads are for what is left to the CPU."""

    name: ClassVar[str] = "onnxruntime-cuda"
    keeps_blocks = False
    widens_half = False
    streams_weights = False  # its caches hold those of a small model, and copies take long to bring there
    chooses_algorithms = True
    rates = GPU

    @property
    def providers(self) -> tuple[Provider, ...]:
        """CUDA, and the CPU for the rest.

        The rest is in many models: operators without a kernel for GPUs, and arithmetic on sizes, which onnxruntime
        itself leaves to the CPU. So `session.disable_cpu_ep_fallback`, which refuses both, is not for whole models.
        """
        return (("CUDAExecutionProvider", {"use_tf32": "0"}), *super().providers)

    @property
    def installed(self) -> bool:
        """Whether onnxruntime was built with these providers; whether they load only a session shows."""
        return {name for name, _ in self.providers}.issubset(onnxruntime.get_available_providers())

    @property
    def key(self) -> Key:
        """What timings of this runtime are stored under. Raises `RuntimeFailed` where there is no GPU."""
        return Key(self.name, str(onnxruntime.__version__), gpu(), self.threads)

    @property
    def clock(self) -> Callable[[], float]:
        """Wall time: the processor only waits."""
        return time.perf_counter

    @property
    def standard(self) -> Runtime:
        """The CPU provider: on a GPU even the order of a sum may change from run to run."""
        return OnnxRuntime(self.threads)

    def session(self, model: bytes | Path, optimize: bool = True, profile: Path | None = None) -> Session:
        """Load a model, with all of the runtime's own optimizations or none. Raises `RuntimeFailed`, also where
        onnxruntime would go on without the GPU.
        """
        # TensorRT's provider has no option for it. NVIDIA's libraries read this once, as they start.
        os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
        lacking = _preloaded()
        session = super().session(model, optimize, profile)
        # A provider whose libraries do not load is left out without an error.
        missing = [name for name, _ in self.providers if name not in session.get_providers()]
        if missing:
            why = lacking or "its libraries, or a GPU, are not there"
            raise RuntimeFailed(f"onnxruntime would go on without {' and '.join(missing)}: {why}")
        return session

    def bound(self, session: Session, feeds: Feeds) -> BoundSession:
        """A session that is to be run with these inputs again and again. Raises `RuntimeFailed`."""
        return _OnGpu(session, feeds, self.clock)


class OnnxTensorRt(OnnxCuda):
    """onnxruntime's TensorRT provider on the first GPU; what it cannot run is run by CUDA."""

    name = "onnxruntime-tensorrt"

    @property
    def providers(self) -> tuple[Provider, ...]:
        """TensorRT, then CUDA, and the CPU for the rest. Nothing that TensorRT makes is kept in files."""
        off = ("trt_fp16_enable", "trt_int8_enable", "trt_engine_cache_enable", "trt_timing_cache_enable")
        return (("TensorrtExecutionProvider", dict.fromkeys(off, "0")), *super().providers)

    def session(self, model: bytes | Path, optimize: bool = True, profile: Path | None = None) -> Session:
        """As CUDA's. Raises `RuntimeFailed`, which names the library that is lacking where TensorRT is."""
        try:
            return super().session(model, optimize, profile)
        except RuntimeFailed:
            if lacking := _lacking(_TENSORRT):
                raise RuntimeFailed(
                    f"TensorRT does not load: {lacking}; install what is missing, and name its folder in "
                    "LD_LIBRARY_PATH"
                ) from None
            raise


class _OnGpu(BoundSession):
    """A session with its inputs and outputs on the GPU."""

    place = "cuda"

    def give(self, name: str, value: NDArray[Any]) -> None:
        """Copy an input to the GPU, and bind that."""
        self.binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(value, self.place))

    def run_first(self) -> float:
        """As any other: what is large lies on the GPU."""
        return self.run()

    def execute(self, options: onnxruntime.RunOptions | None) -> None:
        """Run once, until the GPU is done."""
        super().execute(options)
        self.binding.synchronize_outputs()


@cache
def gpu() -> str:
    """The first GPU that CUDA sees, and its driver. Raises `RuntimeFailed` where there is none.

    The driver's library says it, not `nvidia-smi`, which has another order and knows nothing of CUDA_VISIBLE_DEVICES.
    """
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise RuntimeFailed(f"there is no driver for NVIDIA GPUs: {one_line(error)}") from None
    name, number, version = ctypes.create_string_buffer(256), ctypes.c_int(), ctypes.c_int()
    failed = (
        cuda.cuInit(0)
        or cuda.cuDeviceGet(ctypes.byref(number), 0)
        or cuda.cuDeviceGetName(name, len(name), number)
        or cuda.cuDriverGetVersion(ctypes.byref(version))
    )
    if failed:
        raise RuntimeFailed(f"CUDA finds no NVIDIA GPU: error {failed}")
    return f"{name.value.decode()} ({_driver() or f'for CUDA {version.value // 1000}.{version.value % 1000 // 10}'})"


def _driver() -> str:
    """The driver's version, where the kernel tells it, as it does not in all containers."""
    try:
        found = re.search(r"\d+\.\d+(\.\d+)*", _DRIVER.read_text(encoding="utf-8"))
    except OSError:
        return ""
    return f"driver {found.group()}" if found else ""


@cache
def _preloaded() -> str:
    """Load CUDA's libraries from where pip puts them, which the system does not search; what of them is lacking."""
    said = StringIO()
    with redirect_stdout(said):
        onnxruntime.preload_dlls()
    return next((line for line in said.getvalue().splitlines() if line.startswith("Failed")), "")


def _lacking(provider: str) -> str:
    """Why a provider's library does not load; empty where it does. onnxruntime itself says no more than that."""
    library = Path(onnxruntime.__file__).parent / "capi" / provider
    try:
        if library.exists():
            ctypes.CDLL(str(library))
    except OSError as error:
        return one_line(error)
    return ""
