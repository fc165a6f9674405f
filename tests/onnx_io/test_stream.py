"""What is written weight by weight is the message that would have been written whole."""

from __future__ import annotations

import io
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from superopt.onnx_io import load
from superopt.onnx_io.stream import write
from superopt.onnx_io.wire import fields
from tests.onnx_io.models import model
from tests.onnx_io.networks import LIGHT


def written(source: ir.Model) -> onnx.ModelProto:
    file = io.BytesIO()
    write(source, file)
    return onnx.load_from_string(file.getvalue())


@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
def test_a_network_is_written_as_the_library_does(path: Path) -> None:
    source = load(path)
    found, expected = written(source), ir.to_proto(source)
    assert found.graph.initializer == onnx.load(path).graph.initializer
    del found.graph.value_info[:], expected.graph.value_info[:]  # the library adds the types of initializers
    assert found == expected


def test_fields_come_in_the_order_of_their_numbers() -> None:
    source = ir.from_proto(model("g (float x) => (float y) { y = Identity(x) }"))
    source.opset_imports["other"] = 1
    source.metadata_props["said"] = "of it"
    file = io.BytesIO()
    write(source, file)
    numbers = [field.number for field in fields(file.getvalue(), 0, len(file.getvalue()))]
    assert numbers == sorted(numbers)
    assert numbers.count(onnx.ModelProto.OPSET_IMPORT_FIELD_NUMBER) > 1


TENSORS = {
    "raw": numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "w"),
    "in a field of numbers": onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [2], [1.5, -2.0]),
    "strings": onnx.helper.make_tensor("w", onnx.TensorProto.STRING, [2], [b"a", b"b"]),
    "no axes": numpy_helper.from_array(np.asarray(7, np.int64), "w"),
    "empty": numpy_helper.from_array(np.zeros((0, 3), np.float32), "w"),
}


@pytest.mark.parametrize("kind", TENSORS)
def test_a_tensor_of_a_message_is_written_verbatim(kind: str) -> None:
    source = model("g (float x) => (float y) { y = Identity(x) }")
    tensor = TENSORS[kind]
    tensor.doc_string = "said of it"
    source.graph.initializer.append(tensor)
    assert written(ir.from_proto(source)).graph.initializer == source.graph.initializer


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.asarray(2.5, np.float64),
        np.zeros((0, 2), np.int64),
        np.asarray([True, False]),
        np.asarray([1, -2, 3], ml_dtypes.bfloat16),
        np.asarray([1, -2, 3], ml_dtypes.int4),
    ],
    ids=lambda array: str(array.dtype),
)
def test_a_tensor_made_here_is_written_as_the_library_does(array: np.ndarray) -> None:
    source = ir.from_proto(model("g (float x) => (float y) { y = Identity(x) }"))
    tensor = ir.tensor(array, name="w", doc_string="said of it")
    tensor.metadata_props["origin"] = "here"
    value = ir.Value(name="w", type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor)
    source.graph.register_initializer(value)
    (found,) = written(source).graph.initializer
    assert found == ir.to_proto(tensor)
