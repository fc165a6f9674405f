"""Models of 16-bit floats, made of those of 32 bits."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper


def half(given: onnx.ModelProto) -> onnx.ModelProto:
    """A model with all that has 32 bits in its main graph in 16."""
    made = onnx.ModelProto()
    made.CopyFrom(given)
    for tensor in made.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            values = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    for info in (*made.graph.input, *made.graph.output, *made.graph.value_info):
        if info.type.tensor_type.elem_type == TensorProto.FLOAT:
            info.type.tensor_type.elem_type = TensorProto.FLOAT16
    return made
