"""Files that are good, bad, large, half written, and in the way."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

from superopt.errors import InvalidModel, SuperoptError, UsageError
from superopt.onnx_io import check, facts, files, gone_after, load, save, saving, understand, weight_files
from tests.onnx_io.models import model
from tests.onnx_io.networks import LIGHT

GOOD = "g (float[2, 3] x) => (float[2, 3] y) <float[3] w = {1, 2, 3}> { y = Add(x, w) }"


def large_weight(count: int = 4000) -> onnx.ModelProto:
    """A model with one weight that is worth a file of its own."""
    source = model(f"g (float[{count}] x) => (float[{count}] y) {{ y = Add(x, w) }}")
    source.graph.initializer.append(numpy_helper.from_array(np.arange(count, dtype=np.float32), "w"))
    return source


def with_external_data(folder: Path) -> Path:
    """A model in a folder whose weight stands in a file `w.data` beside it."""
    path = folder / "m.onnx"
    onnx.save(large_weight(), path, save_as_external_data=True, location="w.data", size_threshold=16)
    return path


BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "empty"),
    "text": (lambda: b"this is no model" * 9, "not an ONNX model"),
    "truncated": (lambda: large_weight().SerializeToString()[:-300], "cut short"),
    "half a header": (lambda: model(GOOD).SerializeToString()[:2], "no graph"),
    "another message": (lambda: numpy_helper.from_array(np.ones(3, np.float32)).SerializeToString(), "ONNX"),
    "unknown operator": (lambda: model("g (float x) => (float y) { y = Nope(x) }").SerializeToString(), "Nope"),
    "undefined input": (lambda: model("g (float x) => (float y) { y = Relu(z) }").SerializeToString(), "z"),
    "undefined output": (lambda: model("g (float x) => (float q) { y = Relu(x) }").SerializeToString(), "q"),
    "a cycle": (
        lambda: model("g (float x) => (float y) { y = Relu(a) a = Add(x, y) }").SerializeToString(),
        "sorted",
    ),
    "wrong shapes": (
        lambda: model("g (float[2, 3] x) => (float y) { y = MatMul(x, x) }").SerializeToString(),
        "check",
    ),
    "two values of one name": (
        lambda: model("g (float x) => (float y) { y = Relu(x) y = Relu(x) }").SerializeToString(),
        "y",
    ),
    "a weight with too few bytes": (lambda: _short_weight().SerializeToString(), "15996 bytes"),
}


def _short_weight() -> onnx.ModelProto:
    source = large_weight()
    source.graph.initializer[0].raw_data = source.graph.initializer[0].raw_data[:-4]
    return source


@pytest.mark.parametrize(("content", "complaint"), BAD.values(), ids=BAD)
def test_a_bad_file_is_refused_in_one_line_that_names_it(
    tmp_path: Path, content: Callable[[], bytes], complaint: str
) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(content())
    with pytest.raises(InvalidModel) as error:
        load(path)
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    assert complaint in message
    assert "\n" not in message
    assert len(message) < 600


def test_cutting_a_file_anywhere_is_refused_or_harmless(tmp_path: Path) -> None:
    whole, path, refused = LIGHT[0].read_bytes(), tmp_path / "cut.onnx", 0
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        try:
            load(path)
        except InvalidModel:
            refused += 1
    assert refused > len(range(0, len(whole), 97)) * 0.9


def test_a_changed_byte_is_refused_or_harmless(tmp_path: Path) -> None:
    whole, path, rng, refused = LIGHT[0].read_bytes(), tmp_path / "changed.onnx", np.random.default_rng(0), 0
    for _ in range(300):
        content = bytearray(whole)
        content[rng.integers(len(whole))] = rng.integers(256)
        path.write_bytes(content)
        try:
            understand(load(path))
        except InvalidModel:
            refused += 1
    assert refused > 30


def test_paths_that_cannot_be_read_are_usage_errors(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.onnx", tmp_path, tmp_path / "a" / "b.onnx"):
        with pytest.raises(UsageError, match=path.name):
            load(path)


def test_a_missing_external_file_is_named(tmp_path: Path) -> None:
    path = with_external_data(tmp_path)
    (tmp_path / "w.data").unlink()
    with pytest.raises(InvalidModel, match=r"w\.data' of 'w' is missing"):
        load(path)


def test_a_short_external_file_is_refused(tmp_path: Path) -> None:
    path = with_external_data(tmp_path)
    os.truncate(tmp_path / "w.data", 100)
    with pytest.raises(InvalidModel, match="holds 100 bytes"):
        load(path)


@pytest.mark.parametrize("location", ["/etc/passwd", "../w.data"])
def test_external_data_outside_the_folder_are_refused(tmp_path: Path, location: str) -> None:
    path = with_external_data(tmp_path)
    proto = onnx.load(path, load_external_data=False)
    proto.graph.initializer[0].external_data[0].value = location
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(InvalidModel, match="outside"):
        load(path)


def test_external_data_through_a_link_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    path = with_external_data(folder)
    (folder / "w.data").rename(tmp_path / "elsewhere")
    (folder / "w.data").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidModel, match="outside"):
        load(path)


def test_external_data_of_a_subgraph_are_found(tmp_path: Path) -> None:
    source = model("""g (bool c, float[999] x) => (float[999] y)
      { y = If(c) <then_branch = then () => (float[999] t) { t = Add(x, w) },
                   else_branch = other () => (float[999] e) { e = Relu(x) }> }""")
    branch = next(a.g for a in source.graph.node[0].attribute if a.name == "then_branch")
    branch.initializer.append(numpy_helper.from_array(np.ones(999, np.float32), "w"))
    onnx.save(source, tmp_path / "m.onnx", save_as_external_data=True, location="w.data", size_threshold=16)
    assert onnx.load(tmp_path / "m.onnx", load_external_data=False).ByteSize() < 999
    save(load(tmp_path / "m.onnx"), tmp_path / "n.onnx")
    (tmp_path / "w.data").unlink()
    assert understand(load(tmp_path / "n.onnx")).summary.nodes == 1
    with pytest.raises(InvalidModel, match=r"w\.data' of 'w' is missing"):
        load(tmp_path / "m.onnx")


def test_external_data_of_an_attribute_are_refused(tmp_path: Path) -> None:
    source = model("g (float[2] x) => (float[2] y) { c = Constant<value = float[2] {1, 2}>() y = Add(x, c) }")
    tensor = source.graph.node[0].attribute[0].t
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    (tmp_path / "m.onnx").write_bytes(source.SerializeToString())
    with pytest.raises(InvalidModel, match="attribute"):
        load(tmp_path / "m.onnx")


def test_external_data_are_read_only_when_asked_for(tmp_path: Path) -> None:
    program = understand(load(with_external_data(tmp_path)))
    tensor = program.model.graph.initializers["w"].const_value
    assert isinstance(tensor, ir.ExternalTensor)
    assert tensor.raw is None
    assert program.data("w")[-1] == 3999


def test_saved_external_data_load_again_from_another_folder(tmp_path: Path) -> None:
    loaded, other = load(with_external_data(tmp_path)), tmp_path / "other"
    other.mkdir()
    save(loaded, other / "n.onnx")
    assert sorted(p.name for p in other.iterdir()) == ["n.onnx", "n.onnx.data"]
    (tmp_path / "w.data").unlink()
    assert understand(load(other / "n.onnx")).data("w")[-1] == 3999


def test_saving_over_the_model_that_is_read_keeps_both_readable(tmp_path: Path) -> None:
    path = with_external_data(tmp_path)
    for _ in range(3):
        loaded = load(path)
        save(loaded, path)
        assert understand(loaded).data("w")[-1] == 3999
    assert understand(load(path)).data("w")[-1] == 3999


def test_a_model_past_the_limit_of_protobuf_gets_external_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load(large_weight())
    monkeypatch.setattr(saving, "PROTOBUF_LIMIT", saving._ROOM + 15_000)
    save(loaded, tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx.data").stat().st_size == 16_000
    assert (tmp_path / "m.onnx").stat().st_size < 1000
    assert understand(load(tmp_path / "m.onnx")).data("w")[-1] == 3999


@pytest.mark.parametrize("path", LIGHT, ids=lambda p: p.stem)
def test_what_is_saved_loads_as_the_same(tmp_path: Path, path: Path) -> None:
    loaded = load(path)
    save(loaded, tmp_path / "m.onnx")
    again = load(tmp_path / "m.onnx")
    assert ir.to_proto(again).SerializeToString() == ir.to_proto(loaded).SerializeToString()
    assert onnx.load(tmp_path / "m.onnx").graph == onnx.load(path).graph


def test_saving_adds_nothing_that_was_not_there(tmp_path: Path) -> None:
    source = large_weight()
    save(load(source), tmp_path / "m.onnx")
    assert onnx.load(tmp_path / "m.onnx").graph.value_info == source.graph.value_info


def test_a_failing_save_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"before")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    for outside in (False, True):
        with pytest.raises(UsageError, match="No space left"):
            save(load(large_weight()), path, external_data=outside)
    assert path.read_bytes() == b"before"
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]


def test_an_interrupt_as_a_model_is_in_place_leaves_it_its_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, put = tmp_path / "m.onnx", os.replace

    def interrupted(*paths: Path) -> None:
        put(*paths)
        if paths[1] == path:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(load(large_weight()), path, external_data=True)
    assert load(path).graph.initializers
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data"]


def test_a_folder_that_does_not_exist_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        save(load(model(GOOD)), tmp_path / "none" / "m.onnx")


def test_loading_does_not_change_its_argument() -> None:
    proto = model(GOOD)
    before = proto.SerializeToString()
    loaded = load(proto)
    again = load(loaded)
    again.graph.remove(list(again.graph))
    assert len(loaded.graph) == 1
    assert proto.SerializeToString() == before


def test_nodes_without_names_stay_without() -> None:
    loaded = load(model(GOOD))
    assert [n.name for n in loaded.graph] == [None]
    assert [n.name for n in load(loaded).graph] == [None]


def test_check_takes_messages_and_models() -> None:
    bad = model("g (float[2, 3] x) => (float y) { y = MatMul(x, x) }")
    for each in (bad, ir.from_proto(bad)):
        with pytest.raises(SuperoptError, match="MatMul"):
            check(each)


def test_facts_of_a_model() -> None:
    assert facts(
        load(model("g (float[N, 3] x) => (double[N, 3] y) <float w = {1}> { a = Add(x, w) y = Cast<to = 11>(a) }"))
    ).model_dump() == {
        "nodes": {"Add": 1, "Cast": 1},
        "bytes": 4,
        "inputs": {"x": "float32(N, 3)"},
        "outputs": {"y": "float64(N, 3)"},
        "opset": 17,
        "ir_version": 8,
        "misdeclared": [],
    }


def test_strings_stay_in_the_model_where_weights_go_to_a_file(tmp_path: Path) -> None:
    source = large_weight()
    words = onnx.helper.make_tensor("words", onnx.TensorProto.STRING, [100], [b"word"] * 100)
    source.graph.initializer.append(words)
    save(load(source), tmp_path / "m.onnx", external_data=True)
    found = onnx.load(tmp_path / "m.onnx")
    assert [i for i in found.graph.initializer if i.name == "words"] == [words]
    assert (tmp_path / "m.onnx.data").stat().st_size >= 16000


def test_beside_an_operator_that_onnx_misjudges_the_rest_is_checked() -> None:
    sound = "g (float[2,3,4,4] x, float[3] z) => (float[2,3,4,4] y, float[%d] v)"
    nodes = "{ y = MeanVarianceNormalization <axes = [0, 2, 3]> (x) v = Relu(z) }"
    load(model(f"{sound % 3} {nodes}"))
    with pytest.raises(InvalidModel, match="output 'v'"):
        load(model(f"{sound % 4} {nodes}"))


def test_weights_that_lie_beside_are_left_there_if_they_may_be_shared(tmp_path: Path) -> None:
    save(load(large_weight()), tmp_path / "a.onnx", external_data=True)
    for shared, beside in ((True, ["a.onnx.data"]), (False, ["b.onnx.data"])):
        save(load(tmp_path / "a.onnx"), tmp_path / "b.onnx", external_data=True, shared=shared)
        assert [path.name for path in weight_files(tmp_path / "b.onnx")] == beside
        assert sorted(path.name for path in tmp_path.glob("*.data")) == sorted({"a.onnx.data", *beside})
        onnx.checker.check_model(tmp_path / "b.onnx", full_check=True)


def test_what_is_saved_for_a_while_is_gone_with_its_own_weights_and_no_others(tmp_path: Path) -> None:
    kept, passing = tmp_path / "kept.onnx", tmp_path / "passing.onnx"
    save(load(large_weight()), kept, external_data=True)
    before = sorted(tmp_path.iterdir())
    with gone_after(passing):
        for _ in range(2):  # the second has another file of weights, as the first may be in use
            save(load(kept), passing, external_data=True)
        assert len(list(tmp_path.iterdir())) == len(before) + 3
    assert sorted(tmp_path.iterdir()) == before


def test_the_files_of_weights_are_told_by_the_message_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(load(large_weight()), tmp_path / "m.onnx", external_data=True)
    monkeypatch.setattr(files, "_model", None)  # a model of 13,000 nodes is checked for seconds
    assert weight_files(tmp_path / "m.onnx") == [tmp_path / "m.onnx.data"]


@pytest.mark.parametrize("location", ["../m.onnx.data", "nowhere.data", ""])
def test_a_file_of_weights_that_is_missing_or_outside_is_refused_by_name(tmp_path: Path, location: str) -> None:
    (tmp_path / "in").mkdir()
    save(load(large_weight()), tmp_path / "m.onnx", external_data=True)
    proto = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    (entry,) = [e for t in proto.graph.initializer for e in t.external_data if e.key == "location"]
    entry.value = location
    onnx.save(proto, tmp_path / "in" / "m.onnx")
    with pytest.raises(InvalidModel, match="external data"):
        weight_files(tmp_path / "in" / "m.onnx")


FLOAT = TensorProto.FLOAT


def test_weights_of_which_an_array_is_in_use_are_saved_whatever_their_size(tmp_path: Path) -> None:
    """A constant that was computed may be a view of a small weight; its file cannot be closed meanwhile."""
    sizes = {"small": (4, 8), "large": (4, 80)}
    weights = {name: np.arange(np.prod(shape), dtype=np.float32).reshape(shape) for name, shape in sizes.items()}
    nodes = [helper.make_node("MatMul", ["x", name], [f"y_{name}"]) for name in weights]
    ends = [(f"y_{name}", FLOAT, [2, shape[1]]) for name, shape in sizes.items()]
    inputs, outputs = ([helper.make_tensor_value_info(*end) for end in part] for part in ([("x", FLOAT, [2, 4])], ends))
    held = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    proto = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, held), ir_version=10)
    (tmp_path / "to").mkdir()
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    read = load(tmp_path / "m.onnx")
    views = {
        value.name: value.const_value.numpy()[1:] for value in read.graph.initializers.values() if value.const_value
    }
    assert views.keys() == weights.keys()
    save(read, tmp_path / "to" / "m.onnx", external_data=True)
    again = load(tmp_path / "to" / "m.onnx")
    for name, array in weights.items():
        saved = again.graph.initializers[name].const_value
        assert saved is not None
        assert (saved.numpy() == array).all()
        assert (views[name] == array[1:]).all()
