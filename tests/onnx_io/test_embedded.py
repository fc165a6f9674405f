"""Weights stay in the model's file until they are asked for, and are then what the message says."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from onnx import numpy_helper

from superopt.errors import InvalidModel
from superopt.onnx_io import held, load, save
from superopt.onnx_io.embedded import EmbeddedTensor, read
from superopt.onnx_io.wire import Malformed, fields
from tests.onnx_io.models import model
from tests.onnx_io.networks import RANDOM, name, randomized

TEXT = "g (float x) => (float y) { y = Identity(x) }"


def with_weight(tensor: onnx.TensorProto, folder: Path) -> Path:
    source = model(TEXT)
    source.graph.initializer.append(tensor)
    onnx.save(source, folder / "m.onnx")
    return folder / "m.onnx"


def large(folder: Path) -> Path:
    return with_weight(numpy_helper.from_array(np.arange(5000, dtype=np.float32), "w"), folder)


@pytest.mark.parametrize("path", RANDOM, ids=name)
def test_a_networks_weights_are_those_of_its_message(path: Path, tmp_path: Path) -> None:
    whole = randomized(path)
    onnx.save(whole, tmp_path / "m.onnx")
    message, embedded = read(tmp_path / "m.onnx")
    expected = {t.name: t for t in whole.graph.initializer}
    assert embedded
    for label, tensor in embedded.items():
        assert_array_equal(tensor.numpy(), numpy_helper.to_array(expected[label]))
    for tensor in message.graph.initializer:
        if tensor.name in embedded:
            assert not tensor.HasField("raw_data")
            tensor.raw_data = embedded[tensor.name].tobytes()
    assert message == whole


@pytest.mark.parametrize("type_", ["float16", "float32", "float64", "int8", "uint8", "int64", "bool"])
def test_a_weight_of_any_plain_type_is_read_and_written(type_: str, tmp_path: Path) -> None:
    array = np.arange(6000).reshape(2, 3000).astype(type_)
    _, embedded = read(with_weight(numpy_helper.from_array(array, "w"), tmp_path))
    file = io.BytesIO()
    embedded["w"].tofile(file)
    assert_array_equal(embedded["w"].numpy(), array)
    assert file.getvalue() == embedded["w"].tobytes() == array.tobytes()


def test_it_is_read_as_it_was_after_another_file_took_its_name(tmp_path: Path) -> None:
    path = large(tmp_path)
    _, embedded = read(path)
    (tmp_path / "other").write_bytes(b"something else")
    (tmp_path / "other").replace(path)
    assert_array_equal(embedded["w"].numpy(), np.arange(5000))


def test_a_file_that_became_shorter_is_named(tmp_path: Path) -> None:
    path = large(tmp_path)
    _, embedded = read(path)
    with path.open("r+b") as file:
        file.truncate(1000)
    with pytest.raises(OSError, match=r"m\.onnx: became shorter"):
        embedded["w"].numpy()


def test_a_weight_with_too_many_bytes_is_refused(tmp_path: Path) -> None:
    tensor = numpy_helper.from_array(np.arange(5000, dtype=np.float32), "w")
    tensor.dims[:] = [4000]
    with pytest.raises(InvalidModel, match="'w'"):
        load(with_weight(tensor, tmp_path))


def test_a_message_in_two_parts_is_read_as_protobuf_merges_it(tmp_path: Path) -> None:
    path, rest = large(tmp_path), onnx.ModelProto(producer_name="second part")
    rest.graph.doc_string = "said there"
    path.write_bytes(path.read_bytes() + rest.SerializeToString())
    message, embedded = read(path)
    assert not embedded
    assert message == onnx.load(path)
    assert message.graph.doc_string == "said there"


def test_the_model_holds_weights_that_were_not_read(tmp_path: Path) -> None:
    assert isinstance(load(large(tmp_path)).graph.initializers["w"].const_value, EmbeddedTensor)


def test_a_model_that_is_held_has_its_external_weights_when_their_file_is_gone(tmp_path: Path) -> None:
    save(load(large(tmp_path)), tmp_path / "e.onnx", external_data=True)
    model = load(tmp_path / "e.onnx")
    held(model)
    (tmp_path / "e.onnx.data").unlink()
    save(model, tmp_path / "again.onnx")
    (weight,) = onnx.load(tmp_path / "again.onnx", load_external_data=False).graph.initializer
    assert weight.data_location == onnx.TensorProto.DEFAULT
    assert_array_equal(numpy_helper.to_array(weight), np.arange(5000))


@pytest.mark.parametrize("kind", [onnx.TensorProto.INT4, onnx.TensorProto.BFLOAT16, onnx.TensorProto.FLOAT8E4M3FN])
def test_weights_of_narrow_types_that_are_held_are_as_they_were(kind: int, tmp_path: Path) -> None:
    tensor = onnx.helper.make_tensor("w", kind, [40, 50], np.arange(2000) % 7)
    save(load(with_weight(tensor, tmp_path)), tmp_path / "e.onnx", external_data=True)
    model, before = load(tmp_path / "e.onnx"), load(tmp_path / "e.onnx")
    held(model)
    weights = [m.graph.initializers["w"].const_value for m in (before, model)]
    assert isinstance(weights[0], ir.ExternalTensor)
    assert not isinstance(weights[1], ir.ExternalTensor)
    assert weights[0].tobytes() == weights[1].tobytes()


@given(st.binary(max_size=40))
def test_fields_cover_the_bytes_without_gaps_or_are_refused(data: bytes) -> None:
    try:
        found = list(fields(data, 0, len(data)))
    except Malformed:
        return
    assert [f.start for f in found] + [len(data)] == [0] + [f.end for f in found]


@given(st.integers(1, 2**63 - 1), st.text(max_size=300))
def test_fields_of_a_message_are_found(number: int, content: str) -> None:
    message = onnx.ModelProto(ir_version=number, producer_name="p")
    message.metadata_props.add(key="k", value=content)
    data = message.SerializeToString()
    assert [f.number for f in fields(data, 0, len(data))] == [d.number for d, _ in message.ListFields()]
