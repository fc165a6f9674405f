"""What is padded between bytes: convolutions have the zeros, or bytes are padded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
from onnx import helper

from superopt.onnx_io import load, understand
from superopt.onnx_io.said import held
from tests.onnx_io.networks import Array
from tests.onnx_io.otherwise.quantized.quantized_nodes import Held, model, pair, weights
from tests.onnx_io.otherwise.reading import gain, operators_of

RNG = np.random.default_rng(0)
FED = {"x": RNG.standard_normal((1, 4, 6, 6)).astype(np.float32) * 4}
BEHIND = [0, 0, 0, 0, 0, 0, 1, 1]
QUANTIZED = ["QuantizeLinear", "DequantizeLinear"]
STEP = 2**-4


class Model:
    """Bytes that are padded as numbers, with steps that are powers of two, so that no sum is rounded."""

    def __init__(
        self, zero: int = -5, again: int | None = None, widths: Sequence[int] = BEHIND, step: float = STEP
    ) -> None:
        self.held: Held = {"widths": np.array(widths), "w_scale": np.float32(2**-7)}
        self.nodes = [*pair("x", "a", self.held, STEP, np.int8(zero))]
        self.nodes += [helper.make_node("Pad", ["a", "widths"], ["p"])]
        self.nodes += pair("p", "b", self.held, step, np.int8(zero if again is None else again))

    def pads(self, more: Sequence[Array] = (), **said: str) -> Model:
        """Say more of the padding: what it pads with, along which axes, and how."""
        given = {f"more{i}": np.asarray(data) for i, data in enumerate(more)}
        self.held |= given
        self.nodes[2] = helper.make_node("Pad", ["a", "widths", *given], ["p"], **said)
        return self

    def convolved(self, size: int = 3, **said: Any) -> onnx.ModelProto:
        """The model of a convolution behind it."""
        data = RNG.integers(-50, 50, (4, 4, size, size)).astype(np.int8)
        scale, nodes = self.held["w_scale"], [weights("w", self.held, data, np.int8(0))]
        self.held["w_scale"] = scale
        nodes += [helper.make_node("Conv", ["b", "w"], ["c"], **said), *pair("c", "d", self.held, 0.5, np.int8(3))]
        return self.model([*nodes, helper.make_node("Relu", ["d"], ["y"])])

    def pooled(self) -> onnx.ModelProto:
        """The model of the largest of what is padded."""
        return self.model([helper.make_node("MaxPool", ["b"], ["y"], kernel_shape=[3, 3], strides=[2, 2])])

    def model(self, nodes: Sequence[onnx.NodeProto]) -> onnx.ModelProto:
        """The model with more nodes behind it."""
        made = model([*self.nodes, *nodes], self.held, (1, 4, 6, 6), ("n", "c", "h", "w"), 18)  # type: ignore[arg-type]
        return onnx.shape_inference.infer_shapes(made)


def kinds(source: onnx.ModelProto) -> list[str]:
    """The operators of a model as it is read, which gives the same to the last bit."""
    return operators_of(source, FED, rounds=False)


CONVOLVED = [*QUANTIZED, "DequantizeLinear", "Conv", *QUANTIZED, "Relu"]


@pytest.mark.parametrize(
    ("source", "pads"),
    [
        (Model().convolved(strides=[2, 2]), [0, 0, 1, 1]),
        (Model().convolved(pads=[1, 1, 1, 1]), [1, 1, 2, 2]),
        (Model().convolved(auto_pad="VALID"), [0, 0, 1, 1]),
        (Model(widths=[2, 1, 0, 1]).pads([np.float32(0), np.array([-1, 2])]).convolved(), [1, 2, 1, 0]),
    ],
    ids=["Keras", "of its own", "named", "along axes"],
)
def test_a_convolution_has_the_zeros(source: onnx.ModelProto, pads: list[int]) -> None:
    assert kinds(source) == CONVOLVED
    made = ir.to_proto(understand(load(source)).model)
    (conv,) = [node for node in made.graph.node if node.op_type == "Conv"]
    assert [list(a.ints) for a in conv.attribute if a.name == "pads"] == [pads]


BYTES_PADDED = ["QuantizeLinear", "Pad", "DequantizeLinear"]


@pytest.mark.parametrize(
    "source",
    [
        Model().pads([np.float32(1.5)]).convolved(),
        Model().pads(mode="reflect").convolved(),
        Model(widths=[0, 0, 0, 0, 0, 0, -1, 1]).convolved(),
        Model().convolved(auto_pad="SAME_UPPER"),
    ],
    ids=["of something else", "mirrored", "cut", "filled"],
)
def test_else_bytes_are_padded(source: onnx.ModelProto) -> None:
    assert kinds(source) == [*BYTES_PADDED, *CONVOLVED[2:]]


@pytest.mark.parametrize("said", [{}, {"mode": "edge"}], ids=["of something else", "repeated"])
def test_bytes_are_padded_along_all_axes_where_some_are_named(said: dict[str, str]) -> None:
    """Paddings that name axes are refused by onnxruntime 1.32 beside convolutions of bytes."""
    number = np.array([], np.float32) if said else np.float32(1.5)
    source = Model(widths=[2, 1, 0, 1]).pads([number, np.array([-1, 2])], **said).convolved()
    (node,) = [node for node in source.graph.node if node.op_type == "Pad"]
    node.input[2] = "" if said else node.input[2]
    assert kinds(source) == [*BYTES_PADDED, *CONVOLVED[2:]]
    (pad,) = [node for node in understand(load(source)).model.graph if node.op_type == "Pad"]
    assert held(pad.inputs[1]).numpy().tolist() == [0, 0, 1, 2, 0, 0, 1, 0]  # type: ignore[union-attr]
    assert len(pad.inputs) == (2 if said else 3)


def test_bytes_of_which_the_largest_are_taken_are_padded() -> None:
    assert kinds(Model(zero=-128).pooled()) == [*BYTES_PADDED, "MaxPool"]


def test_what_something_else_reads_too_is_padded_as_bytes() -> None:
    source = Model().convolved()
    source.graph.output.append(
        helper.make_tensor_value_info("b_quantized", onnx.TensorProto.INT8, ("n", "c", "h", "w"))
    )
    assert kinds(source) == [*BYTES_PADDED, *CONVOLVED[2:]]


@pytest.mark.parametrize(
    "source",
    [Model(again=4).convolved(), Model(step=2**-3).convolved(), Model().pads([np.float32("nan")]).convolved()],
    ids=["another 0", "other steps", "no number"],
)
def test_what_bytes_do_not_give_back_stays(source: onnx.ModelProto) -> None:
    assert [node.op_type for node in understand(load(source)).model.graph].count("QuantizeLinear") == 3


@pytest.mark.parametrize("named", [[-1, 2], [0, 3]])
def test_what_stays_a_padding_names_no_axes(named: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """It may stand beside convolutions of bytes as well, as here once the Relu is part of quantizing."""
    monkeypatch.setattr("superopt.onnx_io.otherwise.quantized.bounded.adds_up_products", lambda: True)
    given = Model(zero=0, widths=[2, 1, 0, 1])
    given.nodes[0:2] = pair("h", "a", given.held, STEP, np.int8(0))
    front = [*pair("x", "f", given.held, STEP, np.int8(0))]
    data = RNG.integers(-50, 50, (4, 4, 1, 1)).astype(np.int8)
    front += [weights("v", given.held, data, np.int8(0)), helper.make_node("Conv", ["f", "v"], ["r"])]
    given.nodes[0:0] = [*front, helper.make_node("Relu", ["r"], ["h"])]
    given.held |= {"v_scale": np.float32(2**-7), "axes": np.array(named)}
    given.nodes = [node for node in given.nodes if node.op_type != "Pad"]
    given.nodes.insert(-2, helper.make_node("Pad", ["a", "widths", "", "axes"], ["p"]))
    given.held["b_scale"] = np.float32(0.07)
    source = given.convolved()
    made = understand(load(source)).model
    (pad,) = [node for node in made.graph if node.op_type == "Pad"]
    assert len(pad.inputs) == 2
    assert [node.op_type for node in made.graph].count("Clip") == 1
    ort.InferenceSession(ir.to_proto(made).SerializeToString()).run(None, FED)  # which is refused otherwise
    kinds(source)


def test_bytes_that_are_no_larger_than_their_0_tell_types_apart() -> None:
    """A byte with a sign and one without are two, though both stand for 0 by 0."""
    made = Model(zero=0)
    made.held["b_zero"] = np.uint8(0)
    assert "Pad" in kinds(made.convolved())


def test_this_takes_less_time() -> None:
    held: Held = {"widths": np.array(BEHIND)}
    nodes = [*pair("x", "a", held, 0.05, np.uint8(0)), helper.make_node("Pad", ["a", "widths"], ["p"])]
    nodes += [*pair("p", "b", held, 0.05, np.uint8(0))]
    nodes += [weights("w", held, RNG.integers(-50, 50, (32, 1, 3, 3)).astype(np.int8), np.int8(0))]
    nodes += [helper.make_node("Conv", ["b", "w"], ["c"], group=32, strides=[2, 2])]
    nodes += [*pair("c", "d", held, 0.5, np.uint8(0)), helper.make_node("GlobalAveragePool", ["d"], ["y"])]
    source = model(nodes, held, (1, 32, 56, 56), (1, 32, 1, 1))
    assert gain(source, {"x": RNG.random((1, 32, 56, 56), np.float32)}) > 1.5
