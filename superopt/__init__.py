"""superopt: a graph superoptimizer for ONNX."""

import os

# onnxruntime reports to its maker unless told not to before it is first imported; that is not ours to allow, and it
# disturbs what is measured.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

from superopt.api import Options, Result, optimize
from superopt.errors import InvalidModel, OutOfTime, RuleError, SuperoptError, UsageError, VerificationFailed
from superopt.operators.files import declare_files
from superopt.search.report import Report

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
