"""What is understood of a model, what is opaque and why, and which values are constants."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper

from superopt.errors import InvalidModel, UsageError
from superopt.onnx_io import Program, check, load, rewritten, understand
from superopt.onnx_io.order import in_order
from superopt.operators import READERS
from tests.onnx_io.models import model, terms
from tests.onnx_io.networks import LIGHT, assert_close, name, run

OPAQUE: dict[str, tuple[str, int, str]] = {
    "an operator that is not declared": (
        "g (float[2] x) => (float[2] y) { y = Asinh(x) }",
        17,
        "Asinh is not declared",
    ),
    "another domain": ("g (float[2] x) => (float[2] y) { y = custom.F(x) }", 17, "domain custom"),
    "a subgraph": (
        """g (bool c, float[2] x) => (float[2] y) { y = If(c) <
           then_branch = t () => (float[2] t) { t = Relu(x) }, else_branch = e () => (float[2] e) { e = Relu(x) }> }""",
        17,
        "subgraphs",
    ),
    "an old opset": ("g (float[2] x) => (float[2] y) { y = Relu(x) }", 6, "opset 6 is older"),
    "a size that may be one, where that matters": (
        """g (float[1, 1, 2, 2] x, float[h, w] z) => (float[1, 1, h, w] y) <int64[2] one = {1, 1}>
           { s = Shape(z) t = Concat<axis = 0>(one, s)
             y = Resize<mode = "linear", coordinate_transformation_mode = "pytorch_half_pixel">(x, , , t) }""",
        17,
        "resize by linear, pytorch_half_pixel",
    ),
    "rounding that decides what is nearest": (
        """g (float[1, 1, 1, 6] x) => (float[1, 1, 1, 10] y) <int64[4] t = {1, 1, 1, 10}>
           { y = Resize<coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(x, , , t) }""",
        17,
        "rounding decides between",
    ),
    "padding that counts, and sizes rounded up": (
        """g (float[1, 1, 4, 4] x) => (float[1, 1, 2, 2] y)
           { y = AveragePool<kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1, count_include_pad = 1>(x) }""",
        19,
        "counts the padding",
    ),
    "sizes rounded up past a dilated window": (
        """g (float[1, 1, 7] x) => (float[1, 1, 3] y)
           { y = MaxPool<kernel_shape = [2], strides = [3], dilations = [2], ceil_mode = 1>(x) }""",
        22,
        "reach past the window",
    ),
    "a reflection wider than what is there": (
        """g (float[3] x) => (float[9] y) <int64[2] w = {3, 3}> { y = Pad<mode = "reflect">(x, w) }""",
        17,
        "reflect more than the axis of 3",
    ),
    "a mask, and not to look ahead": (
        """g (float[1, 1, 2, 4] q, float[2, 2] m) => (float[1, 1, 2, 4] y)
           { y = Attention<is_causal = 1>(q, q, q, m) }""",
        24,
        "not to look ahead",
    ),
    "a transposed convolution to more than it reaches": (
        """g (float[1, 1, 3, 3] x, float[1, 1, 2, 2] k) => (float[1, 1, 9, 9] y)
           { y = ConvTranspose<output_shape = [9, 9], strides = [2, 2]>(x, k) }""",
        17,
        "to more than it reaches",
    ),
    "half precision": ("g (float16[2] x) => (float16[2] y) { y = Relu(x) }", 17, "element type float16"),
    "integers": ("g (int64[2] x) => (int64[2] y) { y = Add(x, x) }", 17, "element type int64"),
    "an empty tensor": ("g (float[0, 2] x) => (float[0, 2] y) { y = Relu(x) }", 17, "empty"),
    "a mask that is used": (
        "g (float[2] x) => (float[2] y, bool[2] m) { y, m = Dropout(x) }",
        13,
        "'m' is used and not declared",
    ),
    "indices that are used": (
        "g (float[1, 1, 4, 4] x) => (float[1, 1, 2, 2] y, int64[1, 1, 2, 2] i) "
        "{ y, i = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x) }",
        17,
        "'i' is used and not declared",
    ),
    "a broadcast that sizes decide": ("g (float[N] x, float[M] z) => (float[K] y) { y = Add(x, z) }", 17, "N"),
    "a shape from outside": ("g (float[4] x, int64[2] s) => (float[A, B] y) { y = Reshape(x, s) }", 17, "model runs"),
    "training": ("g (float[2] x, bool t) => (float[2] y) { y = Dropout(x, , t) }", 17, "training"),
}


def opaque(program: Program) -> str:
    """The reason of the one node of a model."""
    (step,) = program.steps
    assert step.terms == ()
    return step.reason


@pytest.mark.parametrize(("text", "opset", "reason"), OPAQUE.values(), ids=OPAQUE)
def test_what_is_not_covered_is_opaque_for_a_reason_and_stays(text: str, opset: int, reason: str) -> None:
    source = model(text, opset)
    program = understand(load(source))
    assert reason in opaque(program)
    assert ir.to_proto(rewritten(program, terms(program), {})).graph.node[0].op_type == source.graph.node[0].op_type


def test_a_type_that_onnx_infers_otherwise_makes_a_node_opaque(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(READERS, ("", "Relu"), READERS["", "GlobalAveragePool"])
    program = understand(load(model("g (float[1, 2, 3, 3] x) => (float[1, 2, 3, 3] y) { y = Relu(x) }")))
    assert "by our shape rule" in opaque(program)


def test_a_declaration_that_fails_makes_a_node_opaque(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(READERS, ("", "Relu"), lambda node: node.attributes["none"])
    assert opaque(understand(load(model("g (float[2] x) => (float[2] y) { y = Relu(x) }")))) == "KeyError: 'none'"


def test_an_unused_mask_does_not_make_dropout_opaque() -> None:
    program = understand(load(model("g (float[2] x) => (float[2] y) { y, m = Dropout(x) }", 13)))
    assert program.steps[0].outputs == ("y",)
    assert program.steps[0].terms == (program.values["x"],)


def test_shapes_that_onnx_does_not_know_come_from_our_shape_rules() -> None:
    pool = "MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)"
    program = understand(load(model(f"g (float[1, 1, H, W] x) => (float[1, 1, A, B] y) {{ y = {pool} }}")))
    assert [str(d) for d in program.values["y"].shape] == ["1", "1", "(div H 2)", "(div W 2)"]


def test_sizes_without_a_name_are_all_different() -> None:
    source = model("g (float[?, ?] x, float[?, ?] z) => (float[A, B] y) { y = Relu(x) }")
    program = understand(load(source))
    sizes = [str(d) for n in "xz" for d in program.values[n].shape]
    assert len(set(sizes)) == 4


def test_names_of_sizes_become_words() -> None:
    source = model("g (float[N] x, float[M] z) => (float[N] y) { y = Relu(x) }")
    for info, text in (
        (source.graph.input[0], "batch size"),
        (source.graph.input[1], "2"),
        (source.graph.output[0], "batch size"),
    ):
        info.type.tensor_type.shape.dim[0].dim_param = text
    program = understand(load(source))
    assert [str(program.values[n].shape[0]) for n in "xyz"] == ["batch_size", "batch_size", "size_2"]
    assert ir.to_proto(rewritten(program, terms(program), {})).graph.input == source.graph.input


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("n + m", "(+ m n)"),
        ("2*n", "(* 2 n)"),
        ("n - m", "(+ (* -1 m) n)"),
        ("(n + m)//2", "(div (+ m n) 2)"),
        ("n-m", "n_m"),  # a name, as people write them
        ("n + other", "n_other"),
        ("f(n)", "f_n_"),
        ("n*(m//0)", "n_m_0_"),
    ],
)
def test_a_size_that_is_named_by_how_it_follows_from_others_is_computed(text: str, size: str) -> None:
    source = model("g (float[n] x, float[m] z, float[N] v) => (float[N] y) { y = Relu(v) }")
    source.graph.input[2].type.tensor_type.shape.dim[0].dim_param = text
    source.graph.output[0].type.tensor_type.shape.dim[0].dim_param = text
    program = understand(load(source))
    assert str(program.values["y"].shape[0]) == size
    assert ir.to_proto(rewritten(program, terms(program), {})).graph.output == source.graph.output


def test_an_attribute_that_the_declaration_does_not_know_makes_a_node_opaque() -> None:
    text = """g (float[2, 3] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[2, 3] y)
      { y = BatchNormalization<spatial = SPATIAL, momentum = 0.5>(x, s, b, m, v) }"""
    reasons = [understand(load(model(text.replace("SPATIAL", v), 7))).steps[0].reason for v in "10"]
    assert reasons == ["", "the declaration does not know the attribute spatial"]


def test_a_single_axis_may_be_a_number_without_an_axis_of_its_own() -> None:
    """As the functions that ONNX publishes write it, though its documentation asks for a list."""
    source = model("g (float[2, 3] x) => (float[2, 1, 3] y) <int64 at = {1}> { y = Unsqueeze(x, at) }")
    program = understand(load(source))
    assert program.summary.opaque == {}
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert_close(run(ir.to_proto(rewritten(program, terms(program), {})), {"x": x}), run(source, {"x": x}))


TRAINING = """g (float[2, 3, 4] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[2, 3, 4] y, float[3] z)
  { y, n, w = BatchNormalization<training_mode = 1, epsilon = 0.01>(x, s, b, m, v) z = Relu(READ) }"""


def test_a_batch_normalization_in_training_mode_is_understood_where_nothing_is_learned() -> None:
    """As the weights of convolutions are standardized by exporters."""
    source = model(TRAINING.replace("READ", "s"), 17)
    program = understand(load(source))
    assert program.summary.opaque == {}
    made = rewritten(program, terms(program), {})
    rng = np.random.default_rng(0)
    feed = {
        i.name: rng.random([d.dim_value for d in i.type.tensor_type.shape.dim], np.float32) for i in source.graph.input
    }
    assert_close(run(ir.to_proto(made), feed), run(source, feed))
    learned = understand(load(model(TRAINING.replace("READ", "n"), 17)))
    assert learned.summary.opaque == {"BatchNormalization": {"output 'n' is used and not declared": 1}}


@pytest.mark.parametrize("opset", [9, 15])
def test_weights_that_are_standardized_are_constants_by_their_own_moments(opset: int) -> None:
    """Before opset 14 further outputs alone say that a batch normalization is in training mode."""
    said, outputs = ("", "y, m1, v1, p, q") if opset < 14 else ("<training_mode = 1>", "y, m1, v1")
    source = model(
        f"""g (float[1, 2, 3] x) => (float[1, 2, 3] z)
          <float[1, 2, 3] w = {{1, 2, 4, 8, 16, 32}}, float[2] s = {{1, 2}}, float[2] b = {{0, 1}},
           float[2] m = {{3, 4}}, float[2] v = {{5, 6}}>
          {{ {outputs} = BatchNormalization{said}(w, s, b, m, v) z = Add(x, y) }}""",
        opset,
    )
    program = understand(load(source))
    assert program.summary.opaque == {}
    feed = {"x": np.zeros((1, 2, 3), np.float32)}
    (found,) = run(ir.to_proto(rewritten(program, terms(program), {})), feed)
    assert_close([found], run(source, feed))
    w = np.array([[1, 2, 4], [8, 16, 32]])
    centred = w - w.mean(1, keepdims=True)
    wanted = centred / np.sqrt(w.var(1, keepdims=True) + 1e-5) * [[1], [2]] + [[0], [1]]
    assert_close([found], [wanted[None].astype(np.float32)])


def test_integers_are_moved_without_loss() -> None:
    source = model("""g (int64[2, 3] x) => (int64[3, 4] y)
      { t = Transpose(x) v = Slice(t, two, three, at) w = Slice(t, zero, two, at) u = Concat<axis = 0>(w, v)
        y = Concat<axis = 1>(u, big) }""")
    for name_, value in (("two", 2), ("three", 3), ("zero", 0), ("at", 0)):
        source.graph.initializer.append(numpy_helper.from_array(np.array([value]), name_))
    source.graph.initializer.append(numpy_helper.from_array(2**62 + np.arange(6).reshape(3, 2), "big"))
    program = understand(load(source))
    assert program.summary.opaque == {}
    feed = {"x": 2**53 + np.arange(6).reshape(2, 3)}
    made = rewritten(program, terms(program), {})
    check(made)
    (expected,), (actual,) = run(source, feed), run(ir.to_proto(made), feed)
    assert (actual == expected).all()


def test_what_is_computed_of_integers_is_opaque_and_its_shape_is_known() -> None:
    source = model("""g (int64[n, 3] x, int64[1, 3] z, float[n, 3] v) => (int64[n, 3] a, float[n, 3] y) {
        a = Add(x, z) y = Relu(v) }""")
    program = understand(load(source))
    assert [step.reason for step in program.steps] == ["element type int64 of 'x'", ""]
    assert str(program.values["a"].type) == "int64(n, 3)"


def test_a_shape_chain_over_known_sizes_is_constant() -> None:
    program = understand(
        load(
            model("""g (float[2, 3, 4] x) => (float[2, 12] y)
      <int64 zero = {0}, int64[1] at = {0}, int64[1] rest = {-1}>
      { s = Shape(x) b = Gather(s, zero) u = Unsqueeze(b, at) c = Concat<axis = 0>(u, rest) y = Reshape(x, c) }""")
        )
    )
    assert [s.node.op_type for s in program.steps] == ["Reshape"]
    assert list(program.data("c")) == [2, -1]
    assert program.values["y"].shape == (2, 12)
    made = rewritten(program, terms(program), {})
    check(made)
    assert [n.op_type for n in made.graph] == ["Reshape"]


@pytest.mark.parametrize("op", ["RandomNormal<shape = [2]>()", "RandomUniformLike(w)", "Bernoulli(w)"])
def test_random_values_are_no_constants(op: str) -> None:
    program = understand(
        load(model(f"g (float[2] x) => (float[2] y) <float[2] w = {{1, 2}}> {{ r = {op} y = Add(x, r) }}"))
    )
    assert not program.values["r"].constant
    assert len(program.steps) == 2


def test_what_is_computed_from_constants_is_constant_and_computed_once() -> None:
    program = understand(
        load(
            model("""g (float[2] x) => (float[2] y) <float[2] w = {1, 2}, int64[1] two = {2}>
      { f = ConstantOfShape<value = float[1] {3}>(two) a = Mul(w, f) c = Constant<value = float[2] {5, 6}>()
        b = Add(a, c) y = Add(x, b) }""")
        )
    )
    assert [s.outputs for s in program.steps] == [("y",)]
    assert list(program.data("b")) == [8, 12]
    assert program.data("b") is program.data("b")


@pytest.mark.parametrize(("count", "stays"), [(2, True), (4096, False)])
def test_of_computed_constants_small_ones_outlast_a_release_of_weights(count: int, stays: bool) -> None:
    source = model(
        f"g (float[{count}] x) => (float[{count}] y) <float[1] one = {{1}}, int64[1] n = {{{count}}}>"
        " { a = Expand(one, n) b = Add(a, a) y = Mul(x, b) }"
    )
    program = understand(load(source))
    before = program.data("b")
    program.release_weights()
    assert (program.data("b") is before) is stays
    assert np.array_equal(program.data("b"), before)


def test_the_data_of_what_is_no_constant_are_a_named_error() -> None:
    program = understand(load(model("g (float[2] x) => (float[2] y) { y = Relu(x) }")))
    for label in ("x", "nothing"):
        with pytest.raises(UsageError, match=label):
            program.data(label)


def test_a_model_in_the_wrong_order_is_read_in_the_right_one() -> None:
    made = ir.from_proto(model("g (float[2] x) => (float[2] y) { a = Relu(x) b = Relu(a) y = Relu(b) }"))
    nodes = list(made.graph)
    made.graph.remove(nodes[0])
    made.graph.append(nodes[0])
    assert [n.outputs[0].name for n in in_order(made.graph)] == ["a", "b", "y"]


def test_a_cycle_is_refused() -> None:
    made = ir.from_proto(model("g (float[2] x) => (float[2] y) { a = Relu(x) y = Relu(a) }"))
    made.graph[0].replace_input_with(0, made.graph[1].outputs[0])
    with pytest.raises(InvalidModel, match="cycle"):
        in_order(made.graph)


@pytest.mark.parametrize("path", [p for p in LIGHT if name(p) == "squeezenet"], ids=name)
def test_a_network_of_symbolic_batch_is_understood_and_computes_the_same(path: object) -> None:
    source = onnx.load(str(path))
    given_too = {i.name for i in source.graph.initializer}
    for info in (*(i for i in source.graph.input if i.name not in given_too), *source.graph.output):
        info.type.tensor_type.shape.dim[0].dim_param = "N"
    program = understand(load(source))
    assert program.summary.opaque == {}
    made = ir.to_proto(rewritten(program, terms(program), {}))
    feed = {program.inputs[0]: np.random.default_rng(0).standard_normal((2, 3, 224, 224)).astype(np.float32)}
    assert_close(run(made, feed), run(source, feed))


BINARY = ["Add", "Mul", "Div", "MatMul"]
UNARY = ["Relu", "Sqrt", "Softmax", "Identity", "Erf", "Neg"]


@st.composite
def programs(draw: st.DrawFn) -> onnx.ModelProto:
    """Random graphs over 3 × 3 matrices and vectors of 3, weights among them, some operators not declared."""
    names = ["x", "w", "v"]
    lines = []
    for i in range(draw(st.integers(1, 8))):
        op = draw(st.sampled_from(BINARY + UNARY))
        arguments = [
            draw(st.sampled_from(names if op != "MatMul" else [n for n in names if n != "v"]))
            for _ in range(1 + (op in BINARY))
        ]
        if set(arguments) == {"v"}:
            arguments[0] = "x"
        lines.append(f"n{i} = {op}({', '.join(arguments)})")
        names.append(f"n{i}")
    outputs = ", ".join(f"float[3, 3] n{i}" for i in sorted(draw(st.sets(st.integers(0, len(lines) - 1), min_size=1))))
    made = model(f"g (float[3, 3] x) => ({outputs}) {{ {' '.join(lines)} }}", draw(st.sampled_from([9, 13, 17])))
    rng = np.random.default_rng(0)
    made.graph.initializer.append(numpy_helper.from_array(rng.uniform(0.5, 1, (3, 3)).astype(np.float32), "w"))
    made.graph.initializer.append(numpy_helper.from_array(rng.uniform(0.5, 1, 3).astype(np.float32), "v"))
    return made


@settings(max_examples=150, deadline=None)
@given(source=programs(), data=st.data())
def test_any_part_of_any_program_written_anew_computes_the_same(source: onnx.ModelProto, data: st.DataObject) -> None:
    program = understand(load(source))
    known = terms(program)
    some = data.draw(st.sets(st.sampled_from(sorted(known)))) if known else set()
    origins = {t: n for n, t in known.items()} if data.draw(st.booleans()) else {}
    made = rewritten(program, {n: known[n] for n in some}, origins)
    check(made)
    feed = {"x": np.random.default_rng(1).uniform(0.5, 1, (3, 3)).astype(np.float32)}
    for a, e in zip(run(ir.to_proto(made), feed), run(source, feed), strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-6)
