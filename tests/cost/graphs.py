"""Graphs that tests cut and cost."""

from pathlib import Path

import onnx
import onnxruntime

from superopt.cost.whole import written
from superopt.dim import Dim
from superopt.onnx_io import DrawnWeights
from superopt.operators.conv import Conv
from superopt.operators.layout import Expand
from superopt.operators.pointwise import Add, Relu
from superopt.term import Graph, Term, make, variable, variables

BLOCKED = "com.microsoft.nchwc"
"""The domain of what onnxruntime computes in blocks of channels."""


def tensor(label: str, *shape: Dim) -> Term:
    return variable(label, shape, "float32")


def weight(label: str, *shape: Dim) -> Term:
    return variable(label, shape, "float32", constant=True)


def graph(*outputs: Term) -> Graph:
    return Graph(tuple(v for v in variables(*outputs) if not v.constant), outputs)


def per_channel(bias: Term, like: Term) -> Term:
    return make(Expand((1,), like.shape), (bias,))


def conv_block(x: Term, name: str, channels: int, size: int = 3) -> Term:
    """Convolution, bias and relu."""
    kernel = weight(f"{name}_k", channels, x.shape[1], size, size)
    y = make(Conv(pads=(size // 2,) * 4), (x, kernel))
    return make(Relu(), (make(Add(), (y, per_channel(weight(f"{name}_b", channels), y))),))


def left_by_onnxruntime(made: Graph, folder: Path, opset: int = 14, highest: int = 0) -> list[onnx.NodeProto]:
    """What runs after onnxruntime's own optimizations, in order."""
    with written([made], opset, DrawnWeights(), highest) as (model,):
        return left_of(model, folder)


def left_of(model: Path, folder: Path) -> list[onnx.NodeProto]:
    """The same of a model in a file; one is written to the folder."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath, options.log_severity_level = str(folder / "left.onnx"), 4
    onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return list(onnx.load(folder / "left.onnx", load_external_data=False).graph.node)
