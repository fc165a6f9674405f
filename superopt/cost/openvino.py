"""OpenVINO, on the CPU: the extra `superopt[openvino]`."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import openvino  # type: ignore[import-untyped]
from numpy.typing import NDArray

from superopt.cost.inputs import Argument, Feeds
from superopt.cost.ort import OnnxRuntime
from superopt.cost.runtime import Runtime, Session, lasted
from superopt.cost.timing import Key, device
from superopt.errors import RuntimeFailed, one_line

_FAILURES = (RuntimeError, ValueError, TypeError, OSError)
"""What OpenVINO raises."""

Interface: TypeAlias = tuple[tuple[Argument, ...], tuple[Argument, ...]]
"""A model's inputs and outputs."""

MOST_READ, MOST_KNOWN = 2**20, 64
"""The bytes of a file without its weights, at most, of which the interface is kept; and how many are."""

_interfaces: dict[bytes, Interface] = {}


@dataclass(frozen=True)
class _Loaded:
    """A compiled model; inputs and outputs as onnxruntime has them, since OpenVINO forgets the names of sizes."""

    compiled: Any
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]


class OpenVino(Runtime):
    """OpenVINO's CPU device with a number of threads, in one stream, computing in 32 bits or more."""

    streams_weights = False  # a copy's inputs and outputs would take longer than many kernels
    fuses_elements = True
    widens_half = True  # by its hint of 32 bits, below

    @property
    def key(self) -> Key:
        """What timings of this runtime are stored under."""
        return Key("openvino-cpu", openvino.get_version().split("-")[0], device(), self.threads)

    @property
    def clock(self) -> Callable[[], float]:
        """With one thread the process's own time: the thread that runs the model is one of OpenVINO's."""
        return time.process_time if self.threads == 1 else time.perf_counter

    @property
    def standard(self) -> Runtime:
        """onnxruntime: OpenVINO cannot leave its optimizations."""
        return OnnxRuntime(self.threads)

    def session(self, model: bytes | Path, optimize: bool = True) -> Session:
        """Compile a model, always with all optimizations. Raises `RuntimeFailed`."""
        inputs, outputs = _interface(model)
        settings = {
            "INFERENCE_NUM_THREADS": self.threads,
            "NUM_STREAMS": 1,
            "ENABLE_CPU_PINNING": False,
            "INFERENCE_PRECISION_HINT": "f32",  # otherwise it takes 16 bits where the processor has them
            "EXECUTION_MODE_HINT": "ACCURACY",
        }
        try:
            found = _core().read_model(BytesIO(model) if isinstance(model, bytes) else model)
            return _Loaded(_core().compile_model(found, "CPU", settings), inputs, outputs)
        except _FAILURES as error:
            raise RuntimeFailed(f"OpenVINO cannot load the model: {one_line(error)}") from None

    def inputs(self, session: Session) -> tuple[Argument, ...]:
        """The inputs of a loaded model, in order."""
        return session.inputs  # type: ignore[no-any-return]

    def outputs(self, session: Session) -> tuple[Argument, ...]:
        """The outputs of a loaded model, in order."""
        return session.outputs  # type: ignore[no-any-return]

    def run(self, session: Session, feeds: Feeds) -> list[NDArray[Any]]:
        """The outputs, in order. Raises `RuntimeFailed`."""
        request = _requested(session, feeds)
        try:
            request.infer()
            return [np.array(request.get_tensor(a.name).data) for a in session.outputs]
        except _FAILURES as error:
            raise RuntimeFailed(f"OpenVINO cannot run the model: {one_line(error)}") from None

    def bound(self, session: Session, feeds: Feeds) -> _Bound:
        """A session that is to be run with these inputs again and again. Raises `RuntimeFailed`."""
        return _Bound(_requested(session, feeds), self.clock)


class _Bound:
    """A request with its inputs set once."""

    def __init__(self, request: Any, clock: Callable[[], float]) -> None:
        self._request, self._clock = request, clock

    def run(self) -> float:
        """Run once; the seconds it took by the clock. Raises `RuntimeFailed`."""
        try:
            start = self._clock()
            self._request.infer()
            return lasted(self._clock, start)
        except _FAILURES as error:
            raise RuntimeFailed(f"OpenVINO cannot run the model: {one_line(error)}") from None

    run_first = run  # OpenVINO takes its memory as it loads a model


def _interface(model: bytes | Path) -> Interface:
    """The inputs and outputs of a model as onnxruntime tells them, asked once of what a file holds: where it is loaded
    again and again, loading it into onnxruntime too took a sixth of that. Raises `RuntimeFailed`.
    """
    try:
        large = len(model) if isinstance(model, bytes) else model.stat().st_size
        if large > MOST_READ:
            return _told(model)
        digest = hashlib.sha256(model if isinstance(model, bytes) else model.read_bytes()).digest()
    except OSError as error:
        raise RuntimeFailed(f"OpenVINO cannot load the model: {one_line(error)}") from None
    if digest not in _interfaces:
        while len(_interfaces) >= MOST_KNOWN:
            del _interfaces[next(iter(_interfaces))]
        _interfaces[digest] = _told(model)
    return _interfaces[digest]


def _told(model: bytes | Path) -> Interface:
    interface = OnnxRuntime()
    session = interface.session(model, optimize=False)
    return interface.inputs(session), interface.outputs(session)


def _requested(session: Session, feeds: Feeds) -> Any:
    """A request with its inputs set. Of those that nothing reads OpenVINO knows nothing; others may have many names."""
    try:
        request = session.compiled.create_infer_request()
        for port in session.compiled.inputs:
            given = [feeds[name] for name in port.names if name in feeds]
            if not given:
                raise RuntimeFailed(f"OpenVINO cannot run the model: input {port.any_name!r} is missing")
            request.set_tensor(port, openvino.Tensor(np.asarray(given[0], order="C")))
    except _FAILURES as error:
        raise RuntimeFailed(f"OpenVINO cannot take the inputs: {one_line(error)}") from None
    return request


@cache
def _core() -> Any:
    return openvino.Core()
