"""What no text can say of a model survives too: files, functions, bits of constants, defaults, and chance."""

from __future__ import annotations

import resource
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper

from superopt.errors import InvalidModel
from superopt.onnx_io import load, understand
from tests.onnx_io.models import model
from tests.onnx_io.networks import run
from tests.onnx_io.test_carried import X, assert_carried, assert_same_bits, assert_same_interface, written
from tests.onnx_io.test_files import with_external_data


def test_a_default_that_callers_may_override_is_overridden() -> None:
    source = model("g (float[2] x, float[2] w) => (float[2] y) { a = Mul(w, w) y = Add(x, a) }")
    source.graph.initializer.append(numpy_helper.from_array(np.array([1, 2], np.float32), "w"))
    made = assert_carried(source, X)
    assert made.graph.initializer == source.graph.initializer
    given = X | {"w": np.array([5, 6], np.float32)}
    assert_same_bits(run(made, given), run(source, given))


def test_a_size_of_minus_one_stays_and_is_unknown() -> None:
    source = model("g (float[N, 3] x) => (float[3, N] y) { a = Relu(x) y = Transpose<perm = [1, 0]>(a) }")
    for info, axis in ((source.graph.input[0], 0), (source.graph.output[0], 1)):
        info.type.tensor_type.shape.dim[axis].dim_value = -1
    assert not isinstance(understand(load(source)).values["y"].shape[1], int)
    assert_carried(source, {"x": np.ones((5, 3), np.float32)})


def test_an_external_file_is_read_where_it_is(tmp_path: Path) -> None:
    path = with_external_data(tmp_path)
    made = written(path)
    source = onnx.load(path, load_external_data=False)
    assert_same_interface(made, source)
    (tmp_path / "made.onnx").write_bytes(made.SerializeToString())
    x = np.linspace(-1, 1, 4000, dtype=np.float32)
    assert_same_bits(run(onnx.load(tmp_path / "made.onnx"), {"x": x}), [x + np.arange(4000, dtype=np.float32)])


def test_a_model_of_three_gigabytes_takes_little_memory_and_time(tmp_path: Path) -> None:
    rows = 3 * 2**18
    source = model("""g (int64[2] i, float[2, 1024] x) => (float[2, 1024] y)
      { r = Gather(w, i) a = Add(r, x) y = Relu(a) }""")
    weight = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[rows, 1024])
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="w.data")
    source.graph.initializer.append(weight)
    with (tmp_path / "w.data").open("wb") as file:
        file.truncate(rows * 4096)  # a hole: it takes no room
        file.seek((rows - 1) * 4096)
        file.write(np.arange(1024, dtype=np.float32).tobytes())
    (tmp_path / "m.onnx").write_bytes(source.SerializeToString())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made = written(tmp_path / "m.onnx")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**16  # KiB
    assert_same_interface(made, source)
    (tmp_path / "n.onnx").write_bytes(made.SerializeToString())
    session = ort.InferenceSession(tmp_path / "n.onnx", providers=["CPUExecutionProvider"])
    feed = {"i": np.array([0, rows - 1]), "x": np.ones((2, 1024), np.float32)}
    assert_same_bits(session.run(None, feed), [np.stack([np.ones(1024), np.arange(1024) + 1]).astype(np.float32)])


def test_functions_and_their_calls_survive() -> None:
    """Those that are not inlined, as they are of a domain in which runtimes have operators of their own."""
    source = model("""g (float[2] x) => (float[2] y)
      { a = Relu(x) b = com.microsoft.twice(a) c = Relu(b) y = com.microsoft.twice(c) }""")
    source.opset_import.add(domain="com.microsoft", version=1)
    opsets = [helper.make_opsetid("", 17)]
    body = [helper.make_node("Add", ["v", "v"], ["w"], name="sum")]
    source.functions.append(
        helper.make_function("com.microsoft", "twice", ["v"], ["w"], body, opsets, doc_string="2 v")
    )
    assert assert_carried(source, X).functions == source.functions


def test_a_custom_operator_keeps_its_attributes() -> None:
    source = model("""g (float[2] x) => (float[2] y)
      { a = Relu(x) b = custom.Twist<k = 2, s = "t", f = [1.5], t = float[2] {1, 2}>(a, , a) y = Relu(b) }""")
    twist = next(n for n in written(source).graph.node if n.domain)
    assert twist.attribute == source.graph.node[1].attribute
    assert twist.output == source.graph.node[1].output
    assert len(twist.input) == 3
    assert twist.input[1] == ""


BITS = np.array([0x7FC00001, 0xFFC12345, 0x7F800000, 0xFF800000, 0x80000000, 0x00000001], np.uint32).view(np.float32)
"""Two NaNs with something to say, the infinities, −0 and the least number there is."""


def test_bits_of_constants_that_are_moved_are_kept() -> None:
    source = model("""g (float[2, 3] x) => (float[3, 2] y, float[5, 3] z)
      { t = Transpose<perm = [1, 0]>(w) a = Relu(x) b = Transpose<perm = [1, 0]>(a)
        y = Concat<axis = 0>(e, t, b) z = Concat<axis = 0>(w, a, v) }""")
    source.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 9
    source.graph.initializer.append(numpy_helper.from_array(BITS.reshape(2, 3), "w"))
    source.graph.initializer.append(numpy_helper.from_array(BITS[::-1].reshape(3, 2).copy(), "e"))
    source.graph.initializer.append(numpy_helper.from_array(BITS[:3].reshape(1, 3), "v"))
    feed = {"x": np.ones((2, 3), np.float32)}
    for a, e in zip(run(written(source), feed), run(source, feed), strict=True):
        assert a.tobytes() == e.tobytes()


def test_constants_that_are_no_numbers_count_in_arithmetic() -> None:
    source = model("g (float[6] x) => (float[6] y, float[6] z) { y = Mul(x, w) a = Div(w, v) z = Add(x, a) }")
    source.graph.initializer.append(numpy_helper.from_array(BITS, "w"))
    source.graph.initializer.append(numpy_helper.from_array(np.array([1, 0, 0, -1, -3, 0.5], np.float32), "v"))
    assert_carried(source, {"x": np.array([0, 1, 0, -0.0, 0, -0.0], np.float32)})


CHANCE = {
    "RandomNormal": "{0} = RandomNormal<shape = [2]>()",
    "RandomNormal with a seed": "{0} = RandomNormal<shape = [2], seed = 1.0>()",
    "RandomUniformLike": "{0} = RandomUniformLike(w)",
    "Bernoulli": "{0} = Bernoulli(h)",
    "Dropout": "{0} = Dropout(w, h1, yes)",
    "Dropout of an input": "{0} = Dropout(x, h1, yes)",
}


@pytest.mark.parametrize("text", CHANCE.values(), ids=CHANCE)
def test_chance_is_neither_folded_nor_merged(text: str) -> None:
    source = model(f"""g (float[2] x) => (float[2] y, float[2] z) <float[2] w = {{1, 2}}, float[2] h = {{0.5, 0.5}},
      float h1 = {{0.5}}, bool yes = {{1}}, int64[1] at = {{0}}>
      {{ {text.format("r")} {text.format("s")} p = ReduceMax<keepdims = 0>(r) q = ReduceMax<keepdims = 0>(s)
         y = Add(x, p) z = Add(x, q) }}""")
    made = written(source)
    for op_type in {n.op_type for n in source.graph.node[:2]}:
        assert sum(n.op_type == op_type for n in made.graph.node) == 2
    known = understand(load(source))
    assert all(step.reason for step in known.steps[:2])
    assert not any(known.values[n].constant for n in "rs")


@pytest.mark.parametrize("op_type", ["Div", "Mod"])
@pytest.mark.parametrize(("top", "bottom"), [(5, 0), (-(2**63), -1)])
def test_an_integer_quotient_without_a_value_is_a_named_error_when_asked_for(
    op_type: str, top: int, bottom: int
) -> None:
    source = model(f"""g (int64[1] x) => (int64[1] y) <int64[1] m = {{{top}}}, int64[1] n = {{{bottom}}}>
      {{ d = {op_type}(m, n) y = Add(x, d) }}""")
    assert [n.op_type for n in written(source).graph.node] == [op_type, "Add"]
    with pytest.raises(InvalidModel, match=f"'{op_type}': divides an integer"):
        understand(load(source)).data("d")


def test_a_dropout_whose_mode_is_not_known_stays() -> None:
    source = model("""g (float[2] x, bool m) => (float[2] y) <float h = {0.5}> { a = Relu(x) b = Dropout(a, h, m)
      y = Relu(b) }""")
    assert "Dropout" in [n.op_type for n in assert_carried(source, X | {"m": np.array(False)}).graph.node]


def test_bfloat16_is_carried_through() -> None:
    source = model("""g (float[2] x) => (float[2] y, bfloat16[2] z) <float[2] w = {1, 2}>
      { a = Cast<to = 16>(x) z = Identity(a) b = Cast<to = 1>(a) y = Add(b, w) }""")
    made = written(source)
    assert made.graph.output == source.graph.output
    session = onnx.reference.ReferenceEvaluator
    assert_same_bits(session(made).run(["y"], X), session(source).run(["y"], X))
