"""Models that sum up functions of each number, as scripts of Kolmogorov-Arnold networks have them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.helper import make_tensor_value_info

Array = NDArray[np.float32]
Numbers = NDArray[np.float64]


class Network:
    """A model of one input, of rows of numbers, whose nodes are added one by one."""

    def __init__(self, rows: int | str, numbers: int, seed: int = 0, more: Sequence[int | str] = ()) -> None:
        self.rows, self.numbers, self._lead = rows, numbers, (rows, *more)
        self.draw = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._held: list[onnx.TensorProto] = []

    def held(self, data: object, dtype: str = "float32") -> str:
        """A constant."""
        name = f"w{len(self._held)}"
        self._held.append(numpy_helper.from_array(np.asarray(data, dtype), name))
        return name

    def __call__(self, op_type: str, *inputs: str, **attributes: object) -> str:
        """What a node gives."""
        name = f"v{len(self._nodes)}"
        self._nodes.append(helper.make_node(op_type, inputs, [name], **attributes))
        return name

    def at_end(self, x: str = "x") -> str:
        """Numbers with one more axis, at the end."""
        return self("Unsqueeze", x, self.held([-1], "int64"))

    def some(self, x: str, start: int, end: int) -> str:
        """Functions in a row."""
        return self("Slice", x, *(self.held([n], "int64") for n in (start, end, -1)))

    def weights(self, *shape: int) -> str:
        """Constants that are drawn."""
        return self.held(self.draw.standard_normal(shape) / np.sqrt(self.numbers))

    def layer(self, functions: str, many: int, spelled: str = "gemm") -> str:
        """The sum of functions that a layer gives for each of three results."""
        sizes = (self.numbers, many)
        if spelled == "einsum":
            return self("Einsum", functions, self.weights(self.numbers, 3, many), equation="bid,iod->bo")
        if spelled == "apart":
            each = self("Einsum", functions, self.weights(self.numbers, 3, many), equation="ijk,jlk->ijl")
            scaled = self("Mul", each, self.weights(1, self.numbers, 3))
            base = self("Mul", self.at_end(), self.weights(1, self.numbers, 3))
            return self("ReduceSum", self("Add", base, scaled), self.held([1], "int64"), keepdims=0)
        lead = [-1] if len(self._lead) == 1 else [0] * len(self._lead)
        flat = self("Reshape", functions, self.held([*lead, sizes[0] * sizes[1]], "int64"))
        if spelled == "gemm":
            return self("Gemm", flat, self.weights(3, sizes[0] * sizes[1]), self.weights(3), transB=1)
        return self("MatMul", flat, self.weights(sizes[0] * sizes[1], 3))

    def model(self, *outputs: str, opset: int = 17, shapes: Sequence[Sequence[int | str]] = ()) -> onnx.ModelProto:
        """The model, which gives rows of three results, or what has the shapes that are told."""
        names = {name: f"y{i}" for i, name in enumerate(outputs)}
        for node in self._nodes:
            node.output[:] = [names.get(n, n) for n in node.output]
            node.input[:] = [names.get(n, n) for n in node.input]
        told = shapes or [(*self._lead, 3)]
        given = [make_tensor_value_info(f"y{i}", 1, shape) for i, shape in enumerate(told)]
        x = make_tensor_value_info("x", 1, (*self._lead, self.numbers))
        graph = helper.make_graph(self._nodes, "g", [x], given, self._held)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def even(low: float, high: float, cells: int, degree: int) -> Array:
    """Knots that are equally far apart, with as many beyond each end as splines of a degree need."""
    distance = (high - low) / cells
    return (np.arange(-degree, cells + degree + 1, dtype=np.float32) * np.float32(distance) + low).astype(np.float32)


def splines(
    net: Network,
    knots: Array,
    degree: int,
    *,
    x: str = "x",
    closed: str = "low",
    guarded: bool = False,
    factor: float = 1.0,
) -> tuple[str, int]:
    """Splines over knots, by rows or for all, by Cox and de Boor's recursion; and how many these are. Of a knot that is
    `closed` the cell above or below is it; what is no number may be `guarded` from, and a factor be wrong.
    """
    x3, low, high = net.at_end(x), knots[..., :-1], knots[..., 1:]
    above = net("Greater" if closed == "high" else "GreaterOrEqual", x3, net.held(low))
    below = net("Less" if closed == "low" else "LessOrEqual", x3, net.held(high))
    made = net("Cast", net("And", above, below), to=1)
    for k in range(1, degree + 1):
        many = knots.shape[-1] - 1 - k
        rise, fall = knots[..., k:-1] - knots[..., : -k - 1], knots[..., k + 1 :] - knots[..., 1:-k]
        up = net("Div", net("Sub", x3, net.held(knots[..., : -k - 1])), net.held(rise * factor))
        down = net("Div", net("Sub", net.held(knots[..., k + 1 :]), x3), net.held(fall))
        rising = net("Mul", up, net.some(made, 0, many))
        falling = net("Mul", down, net.some(made, 1, many + 1))
        made = net("Add", rising, falling)
        if guarded:
            made = net("Where", net("IsNaN", made), net.held(0.0), made)
            infinite = net("And", net("IsInf", made), net("Greater", made, net.held(0.0)))
            made = net("Where", infinite, net.held(3e38), made)
    return made, knots.shape[-1] - 1 - degree


def exact_splines(x: Numbers, knots: Numbers, degree: int) -> Numbers:
    """The same in 64 bits."""
    x, knots = np.asarray(x, np.float64)[..., None], np.asarray(knots, np.float64)
    made = ((x >= knots[..., :-1]) & (x < knots[..., 1:])).astype(np.float64)
    for k in range(1, degree + 1):
        up = (x - knots[..., : -k - 1]) / (knots[..., k:-1] - knots[..., : -k - 1])
        down = (knots[..., k + 1 :] - x) / (knots[..., k + 1 :] - knots[..., 1:-k])
        made = up * made[..., :-1] + down * made[..., 1:]
    return made
