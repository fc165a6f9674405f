"""A model in the making, and the parts that several of the suite's models are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Shape: TypeAlias = "Sequence[int]"


class Sketch:
    """A model in the making: nodes are added one by one, weights are drawn so that variances stay as they are."""

    def __init__(self, seed: int = 0) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.rng = np.random.default_rng(seed)

    def input(self, name: str, *shape: int) -> str:
        """An input of the model."""
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def weight(self, array: NDArray[Any]) -> str:
        """An initializer."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def draw(self, *shape: int, scale: float = 1.0, offset: float = 0.0) -> str:
        """An initializer of normal random numbers."""
        return self.weight((offset + scale * self.rng.standard_normal(shape)).astype(np.float32))

    def __call__(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """A node; the name of its first output."""
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, domain=domain, **attributes))
        return name

    def conv(self, x: str, c: int, o: int, kernel: int = 1, rank: int = 2, groups: int = 1, **more: Any) -> str:
        """A convolution with a bias, of the same size unless told otherwise."""
        fan = c // groups * kernel**rank
        w = self.draw(o, c // groups, *[kernel] * rank, scale=math.sqrt(2 / fan))
        more = {"pads": [kernel // 2] * 2 * rank, **more}
        return self("Conv", x, w, self.draw(o, scale=0.1), group=groups, **more)

    def norm(self, x: str, c: int, of: int = 1) -> str:
        """A batch normalization as it is in inference, `of` so many whose results are added."""
        scale, variance = (self.weight(self.rng.uniform(0.5, 1.5, c).astype(np.float32) * f) for f in (1, of))
        return self("BatchNormalization", x, scale, self.draw(c, scale=0.1), self.draw(c, scale=0.1), variance)

    def linear(self, x: str, c: int, o: int) -> str:
        """A matrix product with a bias."""
        return self("Add", self("MatMul", x, self.draw(c, o, scale=c**-0.5)), self.draw(o, scale=0.1))

    def number(self, value: float) -> str:
        """A number, as exporters have it: an initializer without axes."""
        return self.weight(np.array(value, np.float32))

    def ints(self, *values: int) -> str:
        """A vector of integers."""
        return self.weight(np.array(values, np.int64))

    def model(self, output: str, shape: Shape | None = None, opset: int = 17, ml: bool = False) -> onnx.ModelProto:
        """What was sketched, checked; `shape` is that of the output where it cannot be inferred."""
        model = self.unchecked(output, shape, opset, ml)
        onnx.checker.check_model(model)
        return model

    def unchecked(self, output: str, shape: Shape | None = None, opset: int = 17, ml: bool = False) -> onnx.ModelProto:
        """What was sketched, with inferred shapes."""
        given = [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)]
        graph = helper.make_graph(self.nodes, "g", self.inputs, given, self.weights)
        opsets = [helper.make_opsetid("", opset), *([helper.make_opsetid("ai.onnx.ml", 3)] if ml else [])]
        return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=opsets, ir_version=9))


def attention(s: Sketch, x: str, shape: tuple[int, int, int], heads: int) -> str:
    """What so many heads see of `x`, whose shape is batch, tokens and width, mixed by a last product."""
    batch, tokens, width = shape

    def apart(perm: Shape) -> str:
        split = s("Reshape", s.linear(x, width, width), s.ints(batch, tokens, heads, width // heads))
        return s("Transpose", split, perm=perm)

    q, k, v = apart((0, 2, 1, 3)), apart((0, 2, 3, 1)), apart((0, 2, 1, 3))
    weights = s("Softmax", s("Div", s("MatMul", q, k), s.number(math.sqrt(width // heads))), axis=-1)
    seen = s("Transpose", s("MatMul", weights, v), perm=(0, 2, 1, 3))
    return s.linear(s("Reshape", seen, s.ints(*shape)), width, width)


def gelu(s: Sketch, x: str) -> str:
    """Gelu of single steps, as torch exports it."""
    bend = s("Add", s("Erf", s("Div", x, s.number(math.sqrt(2)))), s.number(1.0))
    return s("Mul", s("Mul", x, bend), s.number(0.5))
