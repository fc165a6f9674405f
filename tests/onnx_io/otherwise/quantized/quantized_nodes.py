"""Nodes of quantized models, as quantizers write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.onnx_io.networks import Array

Held = dict[str, Array]


def model(
    nodes: Sequence[onnx.NodeProto],
    held: Mapping[str, Array],
    x: Sequence[int | str],
    y: Sequence[int | str],
    opset: int = 17,
) -> onnx.ModelProto:
    """A model of one input and one output of 32-bit numbers; sizes that are names are open."""
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", x), ("y", y))]
    weights = [numpy_helper.from_array(np.asarray(a), n) for n, a in held.items()]
    graph = helper.make_graph(list(nodes), "g", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def pair(value: str, to: str, held: Held, scale: float, zero: Array) -> list[onnx.NodeProto]:
    """A value that is quantized, and made a number again by another name."""
    held |= {f"{to}_scale": np.asarray(scale, np.float32), f"{to}_zero": zero}
    said = [f"{to}_scale", f"{to}_zero"]
    return [
        helper.make_node("QuantizeLinear", [value, *said], [f"{to}_quantized"]),
        helper.make_node("DequantizeLinear", [f"{to}_quantized", *said], [to]),
    ]


def weights(name: str, held: Held, data: Array, zero: Array) -> onnx.NodeProto:
    """Weights that are held as bytes."""
    held |= {f"{name}_held": data, f"{name}_scale": np.float32(0.01), f"{name}_zero": zero}
    return helper.make_node("DequantizeLinear", [f"{name}_held", f"{name}_scale", f"{name}_zero"], [name])
