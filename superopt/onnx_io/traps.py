"""What onnxruntime cannot be asked to compute: it would end the whole process."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.errors import InvalidModel


def demand_quotient(node: ir.Node, inputs: Mapping[str, Array]) -> None:
    """Raise `InvalidModel` where an integer is divided by zero, or the least one by -1."""
    if node.op_type not in ("Div", "Mod"):
        return
    top, bottom = (inputs[v.name or ""] for v in node.inputs if v is not None)
    if top.dtype.kind not in "iu":
        return
    overflows = top.dtype.kind == "i" and (bottom == -1).any() and (top == np.iinfo(top.dtype).min).any()
    if overflows or (bottom == 0).any():
        raise InvalidModel(f"node {node.name or node.op_type!r}: divides an integer by zero, or the least one by -1")
