"""Weights in files that a model has no right to, nesting without end, and what the command says of bad models."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from google import protobuf
from onnx import TensorProto, helper

from superopt.errors import InvalidModel
from superopt.onnx_io import load, understand
from superopt.onnx_io.wire import frame
from tests.commands import Ran, assert_refused, files
from tests.onnx_io.models import model
from tests.onnx_io.test_files import with_external_data
from tests.onnx_io.test_refused import REFUSED
from tests.versions import since


def with_entries(folder: Path, **entries: str) -> Path:
    """A model whose weight of 16000 bytes is said to be where the entries say."""
    path = with_external_data(folder)
    proto = onnx.load(path, load_external_data=False)
    del proto.graph.initializer[0].external_data[:]
    for key, value in entries.items():
        proto.graph.initializer[0].external_data.add(key=key, value=value)
    path.write_bytes(proto.SerializeToString())
    return path


ELSEWHERE = {
    "above the folder": ({"location": "../w.data"}, "outside the model's folder"),
    "an absolute path": ({"location": "/dev/zero"}, "outside the model's folder"),
    "no path": ({}, "missing"),
    "the folder itself": ({"location": "."}, "missing"),
    "a path that no system has": ({"location": "a\0b"}, "cannot be reached"),
    "a path without end": ({"location": "x" * 5000}, "cannot be reached"),
    "a negative offset": ({"location": "w.data", "offset": "-4"}, "offset"),
    "an offset that is no number": ({"location": "w.data", "offset": "abc"}, "offset"),
    "an offset past the end": ({"location": "w.data", "offset": str(2**70)}, "holds 0 bytes"),
    "a length that is too short": ({"location": "w.data", "length": "4"}, "holds 4 bytes"),
}


@pytest.mark.parametrize(("entries", "complaint"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_external_data_that_cannot_be_are_refused(tmp_path: Path, entries: dict[str, str], complaint: str) -> None:
    path = with_entries(tmp_path, **entries)
    with pytest.raises(InvalidModel, match="'w'") as error:
        load(path)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 1000


def test_data_said_to_be_inside_and_outside_of_the_model_are_refused(tmp_path: Path) -> None:
    path = with_external_data(tmp_path)
    proto = onnx.load(path, load_external_data=False)
    proto.graph.initializer[0].raw_data = bytes(16000)
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(InvalidModel, match="'w' holds its data twice"):
        load(path)


def test_external_data_through_a_linked_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    path = with_entries(tmp_path / "a", location="sub/w.data")
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "w.data").rename(tmp_path / "b" / "w.data")
    (tmp_path / "a" / "sub").symlink_to(tmp_path / "b")
    with pytest.raises(InvalidModel, match="outside"):
        load(path)


def test_external_data_through_a_link_inside_the_folder_are_read(tmp_path: Path) -> None:
    path = with_external_data(tmp_path)
    (tmp_path / "w.data").rename(tmp_path / "really")
    (tmp_path / "w.data").symlink_to("really")
    assert understand(load(path)).data("w")[-1] == 3999


def test_external_data_with_a_second_name_are_refused(tmp_path: Path) -> None:
    path = with_external_data(tmp_path)
    os.link(tmp_path / "w.data", tmp_path / "second")
    with pytest.raises(InvalidModel, match=r"'w\.data' of 'w' have other names \(hard links\)"):
        load(path)


def nested(depth: int) -> tuple[onnx.ModelProto, bytes]:
    """Conditions within conditions, as a message and in bytes, which protobuf itself does not write so deep."""
    source = model("g (bool c, float[2] x) => (float[2] y) { y = Relu(x) }")
    shape = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    graph = source.graph
    inner = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "innermost", [], [shape]).SerializeToString()
    for i in range(depth):
        node = helper.make_node("If", ["c"], ["y"], name=f"if_{i}")
        outside = onnx.GraphProto(name="g", output=[shape], input=source.graph.input if i == depth - 1 else [])
        branch = frame(6, len(inner)) + inner + onnx.AttributeProto(name="a", type=5).SerializeToString()
        whole = node.SerializeToString() + frame(5, len(branch)) + branch
        inner = outside.SerializeToString() + frame(1, len(whole)) + whole
        del graph.node[:]
        graph = graph.node.add(op_type="If", name=f"if_{i}").attribute.add(name="a", type=5).g
        graph.node.add(op_type="Relu")
    return source, onnx.ModelProto(ir_version=8).SerializeToString() + frame(7, len(inner)) + inner


TOO_DEEP = "nested deeper than protobuf reads" if since(protobuf, 6) else "does not parse as protobuf"
"""Older ones do not tell why."""


def test_subgraphs_a_thousand_deep_are_refused(tmp_path: Path) -> None:
    message, data = nested(1000)
    with pytest.raises(InvalidModel, match=r"nested more than 32 deep, at node 'if_\d"):
        load(message)
    (tmp_path / "m.onnx").write_bytes(data)
    with pytest.raises(InvalidModel, match=rf"m\.onnx: .*{TOO_DEEP}"):
        load(tmp_path / "m.onnx")


@pytest.mark.parametrize("size", [2**23, 2**62])
def test_a_vector_of_many_elements_takes_no_memory_to_understand(size: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    program = understand(load(model(f"g (float[{size}] x) => (float[{size}] y) {{ y = Add(x, x) }}")))
    assert program.values["y"].shape == (size,)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**18  # in KiB


CASES = ["a size of 2⁶² in a weight", "a negative size in a branch", "raw and typed data of 3000 elements"]
CASES += ["an undefined input in a branch", "two initializers of one name", "an output of another type", "a cycle"]


@pytest.mark.parametrize("command", [("show", "m.onnx"), ("optimize", "m.onnx", "--dry-run")], ids=" ".join)
@pytest.mark.parametrize("case", [*CASES, "nesting", "weights outside"])
def test_the_command_refuses_it_in_one_line(
    inside: Callable[..., Ran], command: tuple[str, ...], case: str, tmp_path: Path
) -> None:
    named: tuple[str, ...] = (TOO_DEEP,)
    if case in REFUSED:
        make, named = REFUSED[case]
        (tmp_path / "m.onnx").write_bytes(make().SerializeToString())
    elif case == "nesting":
        (tmp_path / "m.onnx").write_bytes(nested(1000)[1])
    else:
        named = ("'w'", "outside")
        with_entries(tmp_path, location="../w.data")
    before = files(tmp_path)
    assert_refused(inside(*command, cwd=tmp_path), 3, "m.onnx", *named)
    assert files(tmp_path) == before
