"""Small models as text, for tests of one claim each."""

from __future__ import annotations

import onnx
import onnx.parser
from onnx_ir import to_proto

from superopt.onnx_io import Program, load, understand
from superopt.term import Term


def model(text: str, opset: int = 17, ir: int = 8, extra: str = "") -> onnx.ModelProto:
    """A model from ONNX's text format: `g (float[2] x) => (float[2] y) { y = Relu(x) }`."""
    header = f'<ir_version: {ir}, opset_import: ["" : {opset}, "custom" : 1]{extra}>'
    return onnx.parser.parse_model(f"{header} {text}")


def as_read(text: str, opset: int = 17) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """A model, and as it is read; both are valid."""
    source = model(text, opset)
    onnx.checker.check_model(source, full_check=True)
    made = to_proto(understand(load(source)).model)
    onnx.checker.check_model(made, full_check=True)
    return source, made


def terms(program: Program) -> dict[str, Term]:
    """The term of each understood value."""
    return {n: t for s in program.steps for n, t in zip(s.outputs, s.terms, strict=bool(s.terms))}
