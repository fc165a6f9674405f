"""Models of 16-bit floats, made of those of 32 bits."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from benchmarks.sketch import Sketch
from benchmarks.unfused import mobilenet_v3


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


def halved(s: Sketch) -> onnx.ModelProto:
    """MobileNetV3-Large after its stem in 16 bits, as torch.onnx writes it from opset 14 on."""

    def gate(x: str) -> str:
        return s("HardSigmoid", x, alpha=1 / 6)

    return half(s.model(mobilenet_v3(s, lambda x: s("HardSwish", x), gate), opset=17))
