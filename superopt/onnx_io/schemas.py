"""Whether ONNX has an operator in the form in which it is to be written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import onnx
import onnx.defs

from superopt.operators import NotUnderstood


def demand_numbers(op_type: str, value: Any) -> None:
    """Raise `NotUnderstood` for an attribute that holds sizes which are symbols."""
    parts = value if isinstance(value, list | tuple) else (value,)
    if not all(isinstance(p, int | float | str) for p in parts):
        raise NotUnderstood(f"{op_type}: {value} is symbolic and cannot be an attribute")


def demand_schema(op_type: str, opset: int, inputs: int, attributes: Iterable[str]) -> None:
    """Raise `NotUnderstood` where ONNX's operator of that version does not exist, or not in this form."""
    try:
        schema = onnx.defs.get_schema(op_type, opset, "")
    except onnx.defs.SchemaError:
        raise NotUnderstood(f"opset {opset} has no operator {op_type}; it needs a newer one") from None
    missing = [a for a in attributes if a not in schema.attributes]
    if missing or not schema.min_input <= inputs <= schema.max_input:
        what = f"attribute {missing[0]}" if missing else f"form with {inputs} inputs"
        raise NotUnderstood(f"{op_type} has no {what} in opset {opset}")
