"""Small models as text, for tests of one claim each."""

from __future__ import annotations

import onnx
import onnx.parser

from superopt.onnx_io import Program
from superopt.term import Term


def model(text: str, opset: int = 17, ir: int = 8, extra: str = "") -> onnx.ModelProto:
    """A model from ONNX's text format: `g (float[2] x) => (float[2] y) { y = Relu(x) }`."""
    header = f'<ir_version: {ir}, opset_import: ["" : {opset}, "custom" : 1]{extra}>'
    return onnx.parser.parse_model(f"{header} {text}")


def terms(program: Program) -> dict[str, Term]:
    """The term of each understood value."""
    return {n: t for s in program.steps for n, t in zip(s.outputs, s.terms, strict=bool(s.terms))}
