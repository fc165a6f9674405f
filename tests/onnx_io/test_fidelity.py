"""What a rewriting does not touch stays as it was, and what it touches keeps its interface."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from superopt.errors import InvalidModel, SuperoptError, UsageError
from superopt.onnx_io import check, load, rewritten, save, understand
from superopt.operators.functions import Exp
from superopt.operators.layout import Transpose
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.term import make
from tests.onnx_io.models import model, terms
from tests.onnx_io.networks import assert_close, run
from tests.versions import since

CHAIN = """g (float[2, 3] x) => (float[2, 3] y)
  { a = Relu(x) b = Add(a, a) c = Relu(b) y = Mul(c, a) }"""


def written(source: onnx.ModelProto, **kinds: object) -> onnx.ModelProto:
    """A model with all its understood values written anew."""
    program = understand(load(source))
    made = rewritten(program, terms(program), {})
    check(made)
    return ir.to_proto(made)


def nodes(source: onnx.ModelProto) -> list[str]:
    return [n.op_type for n in source.graph.node]


def test_names_doc_strings_and_metadata_of_untouched_parts_survive() -> None:
    source = model(CHAIN)
    source.producer_name, source.doc_string, source.graph.doc_string = "someone", "of the model", "of the graph"
    source.metadata_props.add(key="licence", value="mine")
    source.graph.node[0].name, source.graph.node[0].doc_string = "first", "of the node"
    source.graph.node[0].metadata_props.add(key="where", value="here")
    source.graph.input[0].doc_string = "of the input"
    source.graph.output[0].doc_string = "of the output"
    for node in source.graph.node:
        node.ClearField("domain")
    program = understand(load(source))
    made = ir.to_proto(rewritten(program, {"y": terms(program)["y"]}, {}))
    assert (made.producer_name, made.doc_string, made.graph.doc_string) == ("someone", "of the model", "of the graph")
    assert made.metadata_props == source.metadata_props
    assert made.graph.input == source.graph.input
    assert made.graph.output == source.graph.output
    assert list(made.graph.node)[:3] == list(source.graph.node)[:3]


def unshaped(elements: int = onnx.TensorProto.FLOAT) -> onnx.ModelProto:
    """What is reshaped to a shape that is computed, as exporters declare it that know no rank."""
    source = model("g (float[2, 3] x, int64[k] to) => (float y) { a = Relu(x) b = Add(a, a) y = Reshape(b, to) }")
    source.graph.output[0].type.tensor_type.ClearField("shape")
    source.graph.output[0].type.tensor_type.elem_type = elements
    return source


def test_an_output_without_a_shape_stays_without_one() -> None:
    source = unshaped()
    made = written(source)
    assert made.graph.output == source.graph.output
    feed = {"x": np.ones((2, 3), np.float32), "to": np.array([6, 1])}
    assert_close(run(made, feed), run(source, feed))


def test_an_output_without_a_shape_is_of_the_type_that_it_is_declared_of() -> None:
    with pytest.raises(InvalidModel, match="type"):
        load(unshaped(onnx.TensorProto.INT64))


def test_a_replaced_inner_value_keeps_its_name_and_type() -> None:
    program = understand(load(model(CHAIN)))
    a = program.values["a"]
    made = ir.to_proto(rewritten(program, {"b": Add()(Relu()(a), a)}, {}))
    outputs = [o for n in made.graph.node for o in n.output]
    assert "b" in outputs
    assert len(outputs) == len(set(outputs)) == 5


def test_an_origin_is_read_from_the_original_node() -> None:
    program = understand(load(model(CHAIN)))
    known = {t: n for n, t in terms(program).items()}
    x = program.values["x"]
    new = Mul()(Relu()(Add()(Relu()(x), Relu()(x))), Relu()(x))
    made = ir.to_proto(rewritten(program, {"y": new}, {Relu()(x): "a"} | known))
    assert list(made.graph.node[0].output) == ["a"]
    assert nodes(made) == ["Relu", "Add", "Relu", "Mul"]


def test_an_original_value_may_be_read_by_its_own_replacement() -> None:
    program = understand(load(model(CHAIN)))
    b = terms(program)["b"]
    made = ir.to_proto(rewritten(program, {"b": Relu()(b)}, {b: "b"}))
    onnx.checker.check_model(made, full_check=True)
    assert nodes(made) == ["Relu", "Add", "Relu", "Relu", "Mul"]
    assert_close(run(made), run(model(CHAIN)))


def test_new_values_that_need_each_other_are_refused() -> None:
    program = understand(load(model(CHAIN)))
    a, b = program.values["a"], program.values["b"]
    for new in ({"a": Relu()(b)}, {"a": b, "b": a}):
        with pytest.raises(SuperoptError, match=r"cycle|defined by each other"):
            rewritten(program, new, {})


@pytest.mark.parametrize("name", ["x", "w", "nothing"])
def test_what_is_given_cannot_be_replaced(name: str) -> None:
    source = model("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    program = understand(load(source))
    with pytest.raises(UsageError, match=name):
        rewritten(program, {name: terms(program)["y"]}, {})


def test_an_output_that_is_an_input_stays() -> None:
    source = model("g (float[2] x, float[2] z) => (float[2] y, float[2] x) { y = Relu(x) }")
    made = written(source)
    assert [o.name for o in made.graph.output] == ["y", "x"]
    assert [i.name for i in made.graph.input] == ["x", "z"]


def test_an_output_that_is_an_input_keeps_what_both_declare(tmp_path: Path) -> None:
    source = model("g (float[2, 3] x, float[N, 3] z) => (float[K, 3] y, float[M, 3] x) { y = Add(x, z) }")
    source.graph.input[0].doc_string, source.graph.output[1].doc_string = "given", "passed on"
    onnx.save(source, tmp_path / "m.onnx")
    program = understand(load(tmp_path / "m.onnx"))
    assert program.values["x"].shape == (2, 3)
    save(rewritten(program, terms(program), {}), tmp_path / "n.onnx")
    made = onnx.load(tmp_path / "n.onnx").graph
    assert (made.input, made.output) == (source.graph.input, source.graph.output)


def test_a_default_that_is_an_output_keeps_what_both_declare_where_its_data_lie_in_a_file(tmp_path: Path) -> None:
    source = model("g (float[99] x, float[99] w) => (float[N] y, float[M] w) { y = Add(x, w) }")
    source.graph.initializer.append(numpy_helper.from_array(np.ones(99, np.float32), "w"))
    source.graph.input[1].doc_string, source.graph.output[1].doc_string = "given", "passed on"
    before = load(source)
    save(before, tmp_path / "m.onnx", external_data=True)
    save(load(tmp_path / "m.onnx"), tmp_path / "n.onnx")
    assert before.graph.initializers["w"].is_graph_input()
    for name in ("m.onnx", "n.onnx"):
        made = onnx.load(tmp_path / name).graph
        assert (made.input, made.output) == (source.graph.input, source.graph.output)
        assert [weight.name for weight in made.initializer] == ["w"]


def test_a_node_that_only_reads_something_else_keeps_its_name_and_doc_string() -> None:
    source = model("g (float[2, 3] x) => (float[2, 3] y) { a = Relu(x) b = Relu(a) y = Exp(b) }")
    source.graph.node[2].name, source.graph.node[2].doc_string = "last", "of the node"
    source.graph.node[2].metadata_props.add(key="where", value="here")
    program = understand(load(source))
    made = ir.to_proto(rewritten(program, {"y": Exp()(Relu()(program.values["x"]))}, {}))
    assert [n.op_type for n in made.graph.node] == ["Relu", "Exp"]
    last = made.graph.node[1]
    assert (last.name, last.doc_string) == ("last", "of the node")
    assert last.metadata_props == source.graph.node[2].metadata_props


@pytest.mark.skipif(not since(onnx, 1, 23), reason="the checker of older ones does not know the second name")
def test_the_two_names_of_the_domain_of_onnx_are_one() -> None:
    source = model("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    source.opset_import[0].domain = "ai.onnx"
    made = written(source)
    assert understand(load(source)).summary.opaque == {}
    assert made.opset_import == source.opset_import


def test_an_output_that_is_a_weight_stays() -> None:
    source = model("g (float[2] x) => (float[2] y, float[2] w) <float[2] w = {1, 2}> { y = Add(x, w) }")
    made = written(source)
    assert [o.name for o in made.graph.output] == ["y", "w"]
    assert [list(v) for v in run(made)][1] == [1, 2]


def test_an_output_that_becomes_another_value_is_copied() -> None:
    source = model("g (float[2] x) => (float[2] y, float[2] z) { y = Relu(x) z = Relu(y) }")
    program = understand(load(source))
    made = ir.to_proto(rewritten(program, {"z": program.values["y"]}, {}))
    assert nodes(made) == ["Relu", "Identity"]
    assert [o.name for o in made.graph.output] == ["y", "z"]


def test_two_outputs_of_one_term_are_computed_once() -> None:
    source = model("g (float[2] x) => (float[2] y, float[2] z) { y = Relu(x) z = Relu(y) }")
    program = understand(load(source))
    both = Relu()(program.values["x"])
    made = ir.to_proto(rewritten(program, {"y": both, "z": both}, {}))
    assert nodes(made) == ["Relu", "Identity"]
    onnx.checker.check_model(made, full_check=True)


def test_an_inner_value_that_becomes_an_input_is_read_directly() -> None:
    program = understand(load(model(CHAIN)))
    made = ir.to_proto(rewritten(program, {"b": program.values["x"]}, {}))
    assert nodes(made) == ["Relu", "Relu", "Mul"]
    assert "b" not in [o for n in made.graph.node for o in n.output]


def test_an_output_that_becomes_constant_is_data() -> None:
    source = model("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    program = understand(load(source))
    w = program.values["w"]
    made = ir.to_proto(rewritten(program, {"y": Add()(w, w)}, {}))
    onnx.checker.check_model(made, full_check=True)
    assert list(run(made)[0]) == [2, 4]


def test_empty_optional_inputs_stay_empty() -> None:
    source = model(
        """g (float[1, 1, 2, 2] x, float[2] z) => (float[1, 1, 3, 3] y, float[2] v)
      <float[4] s = {1, 1, 1.5, 1.5}> { y = Resize <mode = "cubic", antialias = 1> (x, , s) v = Relu(z) }""",
        opset=18,
    )
    made = written(source)
    assert [list(n.input) for n in made.graph.node if n.op_type == "Resize"] == [["x", "", "s"]]


IF = """g (bool c, float[2] x) => (float[2] y) <float[2] w = {1, 2}>
  { a = Relu(x) b = Add(a, w) y = If(c) <
      then_branch = then () => (float[2] t) { t = Add(b, w) },
      else_branch = other () => (float[2] e) { e = Relu(a) }> }"""


def test_values_that_a_subgraph_captures_are_rewritten_for_it_too() -> None:
    source = model(IF)
    program = understand(load(source))
    assert program.steps[-1].inputs == ("c", "b", "w", "a")
    assert program.steps[-1].reason == "it has subgraphs"
    made = written(source)
    for c in (True, False):
        feed = {"c": np.array(c), "x": np.array([-1, 2], np.float32)}
        assert_close(run(made, feed), run(source, feed))


def test_a_value_that_only_a_subgraph_reads_lives() -> None:
    program = understand(load(model(IF)))
    made = rewritten(program, {"b": Relu()(program.values["x"])}, {})
    check(made)
    assert "w" in made.graph.initializers


def test_what_only_a_dead_subgraph_read_dies_with_it() -> None:
    source = model("""g (bool c, float[2] x) => (float[2] y) <float[2] w = {1, 2}>
      { a = If(c) <then_branch = then () => (float[2] t) { t = Relu(w) },
                   else_branch = other () => (float[2] e) { e = Relu(x) }> y = Add(a, x) }""")
    program = understand(load(source))
    made = rewritten(program, {"y": Relu()(program.values["x"])}, {})
    assert [n.op_type for n in made.graph] == ["Relu"]
    assert not made.graph.initializers


def test_a_loop_stays_as_it_is() -> None:
    source = model("""g (int64 n, float[2] x) => (float[2] y) <bool go = {1}>
      { a = Relu(x) y = Loop(n, go, a) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] r)
          { d = Identity(c) r = Add(s, a) }> }""")
    feed = {"n": np.array(3), "x": np.array([1, 2], np.float32)}
    assert_close(run(written(source), feed), run(source, feed))


def test_a_node_of_another_domain_stays_as_it_is() -> None:
    source = model('g (float[2] x) => (float[2] y) { a = Relu(x) b = custom.Twist <k = 2, s = "t"> (a) y = Relu(b) }')
    program = understand(load(source))
    assert program.summary.opaque["Twist"] == {"operators of the domain custom are not declared": 1}
    made = ir.to_proto(rewritten(program, terms(program), {}))
    twist = next(n for n in made.graph.node if n.domain)
    assert [a.name for a in twist.attribute] == ["k", "s"]


def test_functions_of_the_model_that_are_not_inlined_survive() -> None:
    source = model("g (float[2] x) => (float[2] y) { a = Relu(x) y = com.microsoft.twice(a) }")
    source.opset_import.add(domain="com.microsoft", version=1)
    body = [onnx.helper.make_node("Add", ["v", "v"], ["w"])]
    opsets = [onnx.helper.make_opsetid("", 17)]
    source.functions.append(onnx.helper.make_function("com.microsoft", "twice", ["v"], ["w"], body, opsets))
    made = written(source)
    assert made.functions == source.functions
    assert_close(run(made), run(source))


def test_symbolic_sizes_keep_their_names() -> None:
    source = model("""g (float[N, 3, H, W] x) => (float[N, 3, H, W] y)
      <float[3] w = {1, 2, 3}, int64[3] s = {3, 1, 1}> { v = Reshape(w, s) a = Mul(x, v) y = Relu(a) }""")
    program = understand(load(source))
    assert [str(d) for d in program.values["a"].shape] == ["N", "3", "H", "W"]
    made = written(source)
    assert made.graph.input == source.graph.input
    assert made.graph.output == source.graph.output
    assert nodes(made) == ["Reshape", "Mul", "Relu"]
    feed = {"x": np.ones((2, 3, 4, 5), np.float32)}
    assert_close(run(made, feed), run(source, feed))


def test_a_shared_weight_is_kept_while_something_reads_it() -> None:
    source = model("g (float[2] x) => (float[2] y, float[2] z) <float[2] w = {1, 2}> { y = Add(x, w) z = Mul(x, w) }")
    program = understand(load(source))
    one = rewritten(program, {"y": Relu()(program.values["x"])}, {})
    both = rewritten(program, {n: Relu()(program.values["x"]) for n in "yz"}, {})
    assert list(one.graph.initializers) == ["w"]
    assert not both.graph.initializers


def test_an_unused_weight_that_was_there_before_stays() -> None:
    source = model("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { a = Relu(x) y = Relu(a) }")
    assert [i.name for i in written(source).graph.initializer] == ["w"]


def test_a_weight_that_callers_may_override_stays_an_input_and_is_no_constant() -> None:
    text = "g (float[2] x, float[2] w) => (float[2] y) { y = Add(x, w) }"
    source = model(text)
    source.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), "w"))
    program = understand(load(source))
    assert not program.values["w"].constant
    assert program.inputs == ("x", "w")
    made = rewritten(program, {"y": Relu()(program.values["x"])}, {})
    assert [v.name for v in made.graph.inputs] == ["x", "w"]
    assert list(made.graph.initializers) == ["w"]


def test_before_ir_4_weights_are_inputs_and_new_ones_follow_the_old() -> None:
    source = model("g (float[2] w, float[2] x, float[2] v) => (float[2] y) { a = Add(x, w) y = Mul(a, v) }", 9, 3)
    for name in "wv":
        source.graph.initializer.append(numpy_helper.from_array(np.array([1, 2], np.float32), name))
    program = understand(load(source))
    assert program.inputs == ("x",)
    w, v, x = (program.values[n] for n in "wvx")
    made = rewritten(program, {"y": Mul()(Add()(x, w), Add()(v, v))}, {})
    check(made)
    assert [i.name for i in made.graph.inputs] == ["w", "x", "folded_1"]
    assert list(made.graph.initializers) == ["w", "folded_1"]


def test_fresh_names_avoid_all_that_are_taken() -> None:
    source = model("g (float[2] relu_1) => (float[2] y) { relu_2 = Relu(relu_1) y = Relu(relu_2) }")
    source.graph.node[0].name = "relu_3"
    program = understand(load(source))
    x = program.values["relu_1"]
    made = ir.to_proto(rewritten(program, {"y": Relu()(Relu()(Relu()(x)))}, {}))
    outputs = [o for n in made.graph.node for o in n.output]
    assert len({*outputs, "relu_1"}) == len(outputs) + 1


def test_tensors_are_shared_with_the_original() -> None:
    source = model("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    program = understand(load(source))
    made = rewritten(program, terms(program), {})
    assert made.graph.initializers["w"].const_value is program.model.graph.initializers["w"].const_value


def test_a_node_of_which_one_output_is_replaced_keeps_the_others() -> None:
    source = model("g (float[4] x) => (float[2] y, float[2] z) { y, z = Split <axis = 0> (x) }", 13)
    program = understand(load(source))
    x = program.values["x"]
    made = ir.to_proto(rewritten(program, {"y": Relu()(terms(program)["y"])}, {}))
    onnx.checker.check_model(made, full_check=True)
    assert [o.name for o in made.graph.output] == ["y", "z"]
    feed = {"x": np.arange(4, dtype=np.float32)}
    assert_close(run(made, feed), run(source, feed))
    assert x is program.values["x"]


def test_the_result_is_the_same_each_time() -> None:
    source = model("""g (float[3, 3] x) => (float[3, 3] y) <float[3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}>
      { a = MatMul(x, w) y = Relu(a) }""")
    program = understand(load(source))
    w, x = program.values["w"], program.values["x"]
    new = {"y": make(Add(), (Transpose((1, 0))(x), Mul()(w, w)))}
    assert len({ir.to_proto(rewritten(program, new, {})).SerializeToString(deterministic=True) for _ in range(3)}) == 1
