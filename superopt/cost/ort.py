"""onnxruntime, on the CPU; and what its other providers have in common with that.

Threads do not spin: on a machine with few cores, spinning threads take each other's time and timings jump tenfold.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as states

from superopt.cost.inputs import Argument, Feeds
from superopt.cost.runtime import Runtime, Session, lasted
from superopt.cost.timing import Key, device
from superopt.errors import RuntimeFailed, one_line

_FAILURES: tuple[type[Exception], ...] = (
    *(getattr(states, name) for name in dir(states) if isinstance(getattr(states, name), type)
      and issubclass(getattr(states, name), Exception)),
    RuntimeError,
    ValueError,
    OSError,
)  # fmt: skip
"""What onnxruntime raises: exceptions of its own without a common base, and some of Python's."""

Provider: TypeAlias = "tuple[str, dict[str, str]]"
"""What runs operators: onnxruntime's name for it, and its options."""

_MISDECLARED = "for output: "
"""What onnxruntime says of an output whose rank or sizes are others than declared, before it says which."""

_SEQUENCE = "seq("
"""How types begin of outputs that are sequences: what is bound for such grows with each run."""

_SILENT = 4
onnxruntime.set_default_logger_severity(_SILENT)


class OnnxRuntime(Runtime):
    """onnxruntime's CPU provider with a number of threads. Other providers say what they do otherwise."""

    widens_half = platform.machine().lower() in ("x86_64", "amd64")  # on ARM it has kernels of 16 bits

    @property
    def providers(self) -> tuple[Provider, ...]:
        """What runs the operators: each of them the first that can."""
        return (("CPUExecutionProvider", {}),)

    @property
    def key(self) -> Key:
        """What timings of this runtime are stored under."""
        return Key("onnxruntime-cpu", str(onnxruntime.__version__), device(), self.threads)

    @property
    def clock(self) -> Callable[[], float]:
        """With one thread, that thread's own time."""
        return time.thread_time if self.threads == 1 else time.perf_counter

    @property
    def standard(self) -> Runtime:
        """Itself."""
        return self

    def session(self, model: bytes | Path, optimize: bool = True, profile: Path | None = None) -> Session:
        """Load a model, with all of the runtime's own optimizations or none. Raises `RuntimeFailed`.

        `profile` is how the file begins that the runtime's profiler writes.
        """
        options = onnxruntime.SessionOptions()
        levels = onnxruntime.GraphOptimizationLevel
        options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimize else levels.ORT_DISABLE_ALL
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.log_severity_level = _SILENT
        if profile is not None:
            options.enable_profiling, options.profile_file_prefix = True, str(profile)
        elif not optimize:  # it is run a few times: laying out all weights before takes longer, and memory
            options.add_session_config_entry("session.disable_prepacking", "1")
            options.enable_cpu_mem_arena = False  # an arena keeps up to twice of what it is asked for
        for pool in ("intra_op", "inter_op"):
            options.add_session_config_entry(f"session.{pool}.allow_spinning", "0")
        source = str(model) if isinstance(model, Path) else model
        try:
            # Without a fallback: it would print what failed, and try again with other providers than these.
            return onnxruntime.InferenceSession(source, options, providers=list(self.providers), enable_fallback=0)
        except _FAILURES as error:
            raise RuntimeFailed(f"onnxruntime cannot load the model: {one_line(error)}") from None

    def inputs(self, session: Session) -> tuple[Argument, ...]:
        """The inputs of a loaded model, in order."""
        return tuple(Argument(a.name, a.type, tuple(a.shape)) for a in session.get_inputs())

    def outputs(self, session: Session) -> tuple[Argument, ...]:
        """The outputs of a loaded model, in order."""
        return tuple(Argument(a.name, a.type, tuple(a.shape)) for a in session.get_outputs())

    def run(self, session: Session, feeds: Feeds) -> list[NDArray[Any]]:
        """The outputs, in order. Raises `RuntimeFailed`."""
        try:
            found = session.run(None, feeds)
            return [_array(value, output.type) for value, output in zip(found, session.get_outputs(), strict=True)]
        except _FAILURES as error:
            raise RuntimeFailed(f"onnxruntime cannot run the model: {one_line(error)}") from None

    def bound(self, session: Session, feeds: Feeds) -> BoundSession:
        """A session that is to be run with these inputs again and again. Raises `RuntimeFailed`."""
        return BoundSession(session, feeds, self.clock)


def _array(value: Any, type_: str) -> NDArray[Any]:
    """An output as an array: of maps, in a sequence or alone, that have a field for each key."""
    rows = value if isinstance(value, list) else [value]
    if not rows or not all(isinstance(row, dict) for row in rows):
        return np.asarray(value)
    keys = sorted(rows[0])
    if any(sorted(row) != keys for row in rows):
        raise ValueError("the maps of an output have different keys, so they cannot be compared")
    number = np.float64 if "double" in type_ else np.float32
    kinds = [number if isinstance(rows[0][key], float) else np.asarray(rows[0][key]).dtype for key in keys]
    fields = np.dtype([(repr(key), kind) for key, kind in zip(keys, kinds, strict=True)])
    return np.array([tuple(row[key] for key in keys) for row in rows], fields)


class BoundSession:
    """A session with its inputs bound once, so that a run costs little beside the model itself."""

    place: ClassVar[str] = "cpu"
    """Where inputs lie, and outputs are left."""

    _binds_anew = False
    """Whether outputs are bound anew for each run: sequences; and those of another shape than the model says, which
    onnxruntime gives, and refuses to give twice into the same memory.
    """

    def __init__(self, session: Session, feeds: Feeds, clock: Callable[[], float]) -> None:
        self._clock = clock
        # The binding points into these arrays, so they stay alive with it.
        self._session, self._feeds = session, {n: np.asarray(v, order="C") for n, v in feeds.items()}
        try:
            self.binding = session.io_binding()
            for name, value in self._feeds.items():
                self.give(name, value)
            self._bind_outputs()
            self._binds_anew = any(output.type.startswith(_SEQUENCE) for output in session.get_outputs())
            self.binding.synchronize_inputs()
        except _FAILURES as error:
            raise RuntimeFailed(f"onnxruntime cannot bind the inputs: {one_line(error)}") from None

    def run(self, options: onnxruntime.RunOptions | None = None) -> float:
        """Run once; the seconds it took by the clock. Raises `RuntimeFailed`."""
        try:
            if self._binds_anew:
                self._bind_outputs()
            start = self._clock()
            self.execute(options)
            return lasted(self._clock, start)
        except _FAILURES as error:
            if _MISDECLARED in str(error) and not self._binds_anew:
                self._binds_anew = True
                return self.run(options)
            raise RuntimeFailed(f"onnxruntime cannot run the model: {one_line(error)}") from None

    def run_first(self) -> float:
        """The same, and what the arena has taken meanwhile goes back to the system: from the second run on all comes
        from one block, whose size the first has told, and two sessions that run in turns held twice what they use.
        """
        options = onnxruntime.RunOptions()
        if self._session.get_session_options().enable_cpu_mem_arena:
            options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        return self.run(options)

    def _bind_outputs(self) -> None:
        self.binding.clear_binding_outputs()
        for output in self._session.get_outputs():
            self.binding.bind_output(output.name, self.place)

    def give(self, name: str, value: NDArray[Any]) -> None:
        """Bind an input."""
        self.binding.bind_cpu_input(name, value)

    def execute(self, options: onnxruntime.RunOptions | None) -> None:
        """Run once, to the end."""
        self._session.run_with_iobinding(self.binding, options)
