"""What a model tells of its values, weights and calls survives; what would name a tensor that is gone does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from superopt.onnx_io import load, rewritten, save, to_proto, understand
from superopt.operators.pointwise import Relu
from tests.onnx_io.models import model, terms

QUANTIZED = """g (float[3] x) => (float[3] y, float[3] z)
  <float[3] w = {1, 2, 3}, float s = {0.5}, float r = {0.25}, uint8 n = {3}>
  { a = Add(x, w) q = QuantizeLinear(a, s, n) d = DequantizeLinear(q, s, n) y = Relu(d)
    p = QuantizeLinear(x, r, n) z = DequantizeLinear(p, r, n) }"""


def annotated(source: onnx.GraphProto, **scales: str) -> None:
    """Say by which scale, and the zero point `n`, values are quantized."""
    for name, scale in scales.items():
        entry = source.quantization_annotation.add(tensor_name=name)
        entry.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value=scale)
        entry.quant_parameter_tensor_names.add(key="ZERO_POINT_TENSOR", value="n")


def scales(graph: onnx.GraphProto) -> list[tuple[str, str]]:
    found = [(a.tensor_name, {e.key: e.value for e in a.quant_parameter_tensor_names}) for a in
             graph.quantization_annotation]  # fmt: skip
    assert all(told["ZERO_POINT_TENSOR"] == "n" for _, told in found)
    return sorted((name, told["SCALE_TENSOR"]) for name, told in found)


def saved(made: object, folder: Path, external_data: bool = False) -> onnx.ModelProto:
    save(made, folder / "made.onnx", external_data=external_data or None)  # type: ignore[arg-type]
    return onnx.load(folder / "made.onnx")


def test_by_what_values_are_quantized_is_told_of_each_once(tmp_path: Path) -> None:
    source, of = model(QUANTIZED), {"x": "r", "w": "s", "q": "s", "y": "s", "p": "r"}
    annotated(source.graph, **of)
    made = load(source)
    assert scales(saved(made, tmp_path).graph) == scales(to_proto(made).graph) == sorted(of.items())


def test_what_is_computed_anew_stays_annotated_while_its_scale_is_there() -> None:
    source = model(QUANTIZED)
    annotated(source.graph, x="r", y="s", z="r")
    program = understand(load(source))
    made = to_proto(rewritten(program, {"y": terms(program)["y"], "z": Relu()(program.values["x"])}, {}))
    assert "r" not in {w.name for w in made.graph.initializer}
    assert scales(made.graph) == [("y", "s")]


def test_a_branch_may_name_scales_of_the_model_around_it() -> None:
    source = model("""g (bool c, float[2] x) => (float[2] y) <float s = {1}, uint8 n = {3}> { y = If(c) <
      then_branch = then () => (float[2] t) { t = Relu(x) },
      else_branch = other () => (float[2] e) { e = Neg(x) }> }""")
    branches = [a.g for a in source.graph.node[0].attribute]
    for branch, value, scale in zip(branches, "te", ("s", "gone"), strict=True):
        annotated(branch, **{value: scale})
    made = to_proto(load(source))
    assert [scales(a.g) for a in made.graph.node[0].attribute] == [[("t", "s")], []]


def test_weights_are_declared_as_values_where_they_were(tmp_path: Path) -> None:
    source = model("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}, float[2] v = {3, 4}> "
                   "{ a = Add(x, w) y = Mul(a, v) }")  # fmt: skip
    info = helper.make_tensor_value_info("w", TensorProto.FLOAT, [2], doc_string="the weight")
    info.type.tensor_type.shape.dim[0].denotation = "FEATURE"
    source.graph.value_info.append(info)
    made = load(source)
    assert list(saved(made, tmp_path).graph.value_info) == list(to_proto(made).graph.value_info) == [info]


@pytest.mark.parametrize("size", [3, 300])
@pytest.mark.parametrize("external_data", [False, True])
def test_what_is_said_of_a_tensor_is_said_once_wherever_its_data_are(
    size: int, external_data: bool, tmp_path: Path
) -> None:
    source = model(f"g (float[{size}] x) => (float[{size}] y) {{ y = Add(x, w) }}")
    weight = numpy_helper.from_array(np.ones(size, np.float32), "w")
    source.graph.initializer.append(weight)
    for _ in range(2):  # what was read is written again
        source.graph.initializer[0].doc_string = "of the tensor"
        del source.graph.initializer[0].metadata_props[:]
        source.graph.initializer[0].metadata_props.add(key="from", value="here")
        source = saved(load(source), tmp_path, external_data)
        (made,) = source.graph.initializer
        assert (made.doc_string, [(e.key, e.value) for e in made.metadata_props]) == (
            "of the tensor",
            [("from", "here")],
        )


def test_numbers_that_stand_in_their_own_field_keep_what_is_said_of_them(tmp_path: Path) -> None:
    source = model("g (float[2] x) => (float[2] y) { y = Add(x, w) }")
    source.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [2], [1, 2]))
    source.graph.initializer[0].metadata_props.add(key="from", value="here")
    made = load(source)
    assert saved(made, tmp_path).graph.initializer == to_proto(made).graph.initializer == source.graph.initializer


def test_what_a_call_gives_is_described_as_before_where_the_call_is_inlined() -> None:
    source = model("""g (float[2] x) => (float[2] y) { a = own.twice(x) y = Relu(a) }
      <domain: "own", opset_import: ["" : 17]> twice (v) => (w) { w = Add(v, v) }""")
    source.opset_import.add(domain="own", version=1)
    source.graph.value_info.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, [2], doc_string="twice x"))
    source.graph.value_info[0].metadata_props.add(key="unit", value="m")
    program = understand(load(source))
    assert [n.op_type for n in program.model.graph] == ["Add", "Relu"]
    assert list(to_proto(program.model).graph.value_info) == list(source.graph.value_info)
