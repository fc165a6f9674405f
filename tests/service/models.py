"""Small models to send."""

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper


def conv_net(seed: int = 0, channels: int = 8, size: int = 16) -> bytes:
    """Three convolutions: two of the same input, added, and one more."""
    rng = np.random.default_rng(seed)
    kernels = [
        numpy_helper.from_array(rng.standard_normal((channels, inputs, 3, 3)).astype(np.float32) / 8, name)
        for name, inputs in (("left", 3), ("right", 3), ("last", channels))
    ]
    same = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["image", "left"], ["a"], **same),
        helper.make_node("Conv", ["image", "right"], ["b"], **same),
        helper.make_node("Add", ["a", "b"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["hidden"]),
        helper.make_node("Conv", ["hidden", "last"], ["answer"], **same),
    ]
    return _model(nodes, [1, 3, size, size], [1, channels, size, size], kernels)


def any_batch() -> bytes:
    """The net of convolutions, for any number of images."""
    proto = onnx.load_model_from_string(conv_net())
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    return proto.SerializeToString()


def one_relu() -> bytes:
    """A model that nothing can make faster."""
    return _model([helper.make_node("Relu", ["image"], ["answer"])], [1, 3, 4, 4], [1, 3, 4, 4])


def broken() -> bytes:
    """Well-formed bytes that break ONNX's rules: a node reads a value that nobody makes."""
    return _model([helper.make_node("Relu", ["nowhere"], ["answer"])], [1, 3, 4, 4], [1, 3, 4, 4])


def with_weight_in(path: str) -> bytes:
    """A model that claims its one weight to be in this file."""
    return _model(
        [helper.make_node("Add", ["image", "weight"], ["answer"])], [1, 3, 4, 4], [1, 3, 4, 4], [_tensor_in(path)]
    )


def with_constant_in(path: str) -> bytes:
    """The same, with the weight in a node's attribute."""
    nodes = [
        helper.make_node("Constant", [], ["weight"], value=_tensor_in(path)),
        helper.make_node("Add", ["image", "weight"], ["answer"]),
    ]
    return _model(nodes, [1, 3, 4, 4], [1, 3, 4, 4])


def _tensor_in(path: str) -> TensorProto:
    weight = TensorProto(name="weight", data_type=TensorProto.FLOAT, dims=[1, 1, 1, 1])
    weight.data_location = TensorProto.EXTERNAL
    for key, value in (("location", path), ("offset", "0"), ("length", "4")):
        weight.external_data.add(key=key, value=value)
    return weight


def vast(elements: int) -> bytes:
    """A few bytes that ask for a tensor of so many elements."""
    shape = numpy_helper.from_array(np.array([elements], np.int64), "shape")
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"]),
        helper.make_node("ReduceSum", ["zeros"], ["zero"], keepdims=0),
        helper.make_node("Add", ["image", "zero"], ["answer"]),
    ]
    return _model(nodes, [1, 3, 4, 4], [1, 3, 4, 4], [shape])


def image(size: int = 16) -> NDArray[np.float32]:
    return np.random.default_rng(1).standard_normal((1, 3, size, size)).astype(np.float32)


def _model(
    nodes: list[onnx.NodeProto], given: list[int], made: list[int], weights: list[TensorProto] | None = None
) -> bytes:
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, given)],
        [helper.make_tensor_value_info("answer", TensorProto.FLOAT, made)],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return model.SerializeToString()
