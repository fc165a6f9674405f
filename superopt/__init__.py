"""superopt: a graph superoptimizer for ONNX."""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

# onnxruntime reports to its maker unless told not to before it is first imported; that is not ours to allow, and it
# disturbs what is measured.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

if TYPE_CHECKING:
    from superopt.api import Result, optimize
    from superopt.asked import Options
    from superopt.errors import InvalidModel, OutOfTime, RuleError, SuperoptError, UsageError, VerificationFailed
    from superopt.operators.files import declare_files
    from superopt.search.report import Report

_HOMES = {
    "superopt.api": ("Result", "optimize"),
    "superopt.asked": ("Options",),
    "superopt.errors": ("InvalidModel", "OutOfTime", "RuleError", "SuperoptError", "UsageError", "VerificationFailed"),
    "superopt.operators.files": ("declare_files",),
    "superopt.search.report": ("Report",),
}
"""Where the library's names live. They are imported when asked for: a process that only times models needs few."""

__all__ = [
    "InvalidModel",
    "Options",
    "OutOfTime",
    "Report",
    "Result",
    "RuleError",
    "SuperoptError",
    "UsageError",
    "VerificationFailed",
    "declare_files",
    "optimize",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'superopt' has no attribute {name!r}")
