"""The runtimes by name; those that are not installed are refused with what installs them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from superopt.cost.runtime import Runtime
from superopt.errors import UsageError

RUNTIMES = {
    "onnxruntime": ("superopt.cost.ort", "OnnxRuntime", "superopt"),
    "openvino": ("superopt.cost.openvino", "OpenVino", "superopt[openvino]"),
}
"""Where each runtime stands here, and what installs it: its module is imported where it is asked for."""


def runtime_named(name: str, threads: int) -> Runtime:
    """A runtime with a number of threads. Raises `UsageError` for one that is not known, or not installed."""
    if name not in RUNTIMES:
        raise UsageError(f"runtime is {' or '.join(RUNTIMES)}; got {name}")
    module, made, extra = RUNTIMES[name]
    if find_spec(name) is None:
        raise UsageError(f"runtime {name} is not installed; install it with: pip install '{extra}'")
    found: Runtime = getattr(import_module(module), made)(threads)
    return found
