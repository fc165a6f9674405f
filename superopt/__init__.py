"""superopt: a graph superoptimizer for ONNX."""

from superopt.api import Options, Result, optimize
from superopt.errors import InvalidModel, OutOfTime, RuleError, SuperoptError, UsageError, VerificationFailed
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
    "optimize",
]
