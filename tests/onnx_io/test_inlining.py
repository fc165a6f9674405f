"""Functions give way to what they stand for, where that is the same; all else of a model stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest

from superopt.onnx_io import inlining, load, save, save_showing, understand
from superopt.onnx_io.inlining import inlined
from tests.onnx_io.networks import run

HEADER = '<ir_version: 9, opset_import: ["" : 17, "own" : 1]>'
X = {"x": np.array([-1.5, 2.5], np.float32)}

FUNCTION = '<domain: "own", opset_import: ["" : %d, "own" : 1]> %s'

CASES = {
    "called twice": (
        "a = own.f(x) b = Exp(a) y = own.f(b)",
        ["f (v) => (w) { t = Neg(v) w = Mul(t, v) }"],
    ),
    "one function calls another": (
        "y = own.g(x)",
        ["f (v) => (w) { t = Neg(v) w = Mul(t, v) }", "g (v) => (w) { t = own.f(v) s = own.f(t) w = Add(s, v) }"],
    ),
    "names of the model's are names of the function's": (
        "t = Exp(x) w = own.f(t) v = Sub(w, t) y = Add(v, x)",
        ["f (v) => (w) { t = Neg(v) w = Mul(t, v) }"],
    ),
    "an attribute is given, another is not": (
        "a = own.f <slope = 0.5> (x) b = own.f(x) y = Sub(a, b)",
        ["f <slope> (v) => (w) { w = LeakyRelu<alpha: float = @slope>(v) }"],
    ),
    "results are left out": ("a, , y = own.f(x)", ["f (v) => (a, b, c) { a = Neg(v) b = Exp(a) c = Add(b, v) }"]),
    "an input is left out": ("y = own.f(x)", ["f (v, low) => (w) { w = Clip(v, low) }"]),
    "it is called in a branch, which has its names": (
        """yes = Constant<value = bool {1}>() t = own.f(x) y = If (yes) <
             then_branch = p () => (float[2] a) { w = Neg(t) a = own.f(w) },
             else_branch = q () => (float[2] b) { b = own.f(t) }>""",
        ["f (v) => (w) { t = Neg(v) w = Mul(t, v) }"],
    ),
    "a branch is in it": (
        "a = own.f(x) y = own.f(a)",
        [
            """f (v) => (w) { yes = Constant<value = bool {1}>() t = Neg(v) w = If (yes) <
             then_branch = p () => (float[2] a) { s = Exp(t) a = Mul(s, v) },
             else_branch = q () => (float[2] b) { b = Neg(t) }> }"""
        ],
    ),
    "a loop is in it": (
        "a = own.f(x) y = own.f(a)",
        [
            """f (v) => (w) { n = Constant<value = int64 {3}>() yes = Constant<value = bool {1}>()
               w = Loop (n, yes, v) < body = p (int64 i, bool go, float[2] c) => (bool on, float[2] d)
               { on = Identity(go) d = Add(c, v) }> }"""
        ],
    ),
}


def given(graph: str, functions: list[str], opset: int = 17) -> onnx.ModelProto:
    """A model of x and y."""
    bodies = " ".join(FUNCTION % (opset, f) for f in functions)
    return onnx.parser.parse_model(f"{HEADER} g (float[2] x) => (float[2] y) {{ {graph} }} {bodies}")


@pytest.mark.parametrize("case", CASES)
def test_all_functions_give_way_to_what_computes_the_same(case: str) -> None:
    source = given(*CASES[case])
    made = ir.to_proto(inlined(load(source)))
    onnx.checker.check_model(made, full_check=True)
    assert not made.functions
    assert [o.domain for o in made.opset_import] == [""]
    assert made.graph.input == source.graph.input
    assert made.graph.output == source.graph.output
    np.testing.assert_array_equal(run(made, X), run(source, X), strict=True)


def test_a_function_may_give_what_it_is_given() -> None:
    """onnxruntime does not load such a one as it stands."""
    made = ir.to_proto(inlined(load(given("a, b = own.f(x) y = Mul(a, b)", ["f (v) => (w, v) { w = Neg(v) }"]))))
    assert not made.functions
    np.testing.assert_array_equal(run(made, X)[0], -X["x"] * X["x"])


def test_what_is_said_of_outputs_and_of_the_model_survives() -> None:
    source = given("y = own.f(x)", ["f (v) => (w) { w = Neg(v) }"])
    source.graph.output[0].doc_string, source.doc_string = "the answer", "the model"
    source.graph.output[0].metadata_props.add(key="unit", value="m")
    onnx.helper.set_model_props(source, {"owner": "someone"})
    made = ir.to_proto(inlined(load(source)))
    assert (made.graph.output, made.doc_string) == (source.graph.output, source.doc_string)
    assert made.metadata_props == source.metadata_props


def test_sizes_that_a_function_names_are_not_the_models() -> None:
    text = """<ir_version: 10, opset_import: ["" : 17, "own" : 1]> g (float[N, 3] x) => (float[M] y)
      { a = own.f(x) y = own.f(a) }
      <domain: "own", opset_import: ["" : 17]> f (v) => (w) <float[N] t> { t = Flatten<axis = 0>(v) w = Squeeze(t) }"""
    source = onnx.parser.parse_model(text)
    assert [v.name for v in source.functions[0].value_info] == ["t"]
    made = inlined(load(source))
    assert not made.functions
    assert all(v.shape is None for node in made.graph for v in node.outputs if "/" in (v.name or ""))


def test_an_older_opset_of_the_same_operators_is_the_models() -> None:
    source = given("y = own.f(x)", ["f (v) => (w) { w = Neg(v) }"], opset=15)
    made = ir.to_proto(inlined(load(source)))
    assert not made.functions
    assert [(o.domain, o.version) for o in made.opset_import] == [("", 17)]


def test_a_model_that_imports_no_operators_has_those_of_its_functions() -> None:
    source = given("y = own.f(x)", ["f (v) => (w) { w = Neg(v) }"])
    del source.opset_import[0]
    made = ir.to_proto(inlined(load(source)))
    assert not made.functions
    assert [(o.domain, o.version) for o in made.opset_import] == [("", 17)]
    np.testing.assert_array_equal(run(made, X), run(source, X), strict=True)


def staying(domain: str = "own", call: str = "", body: str = "w = Neg(v)", attribute: str = "") -> onnx.ModelProto:
    """A model that calls a function once, or as it is said."""
    imports = '"own" : 1, "com.microsoft" : 1, "other" : 1'
    return onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["" : 17, {imports}]> g (float[2] x) => (float[2] y)
        {{ {call or f"y = {domain}.f(x)"} }}
        <domain: "{domain}", opset_import: ["" : 17, "own" : 1, "other" : 2]> f {attribute} (v) => (w) {{ {body} }}"""
    )


def test_a_function_that_the_runtime_has_an_operator_for_stays() -> None:
    """It takes its own, whatever the function says: of Gelu as a negation it gives gelu."""
    source = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 17, "com.microsoft" : 1]> g (float[2] x) => (float[2] y)
        { y = com.microsoft.Gelu(x) }
        <domain: "com.microsoft", opset_import: ["" : 17]> Gelu (v) => (w) { w = Neg(v) }"""
    )
    loaded = load(source)
    assert inlined(loaded) is loaded
    assert not np.array_equal(run(source, X)[0], -X["x"])


def test_a_function_of_another_version_of_a_domain_stays() -> None:
    loaded = load(staying(body="w = other.Twist(v)"))
    assert inlined(loaded) is loaded


def test_what_a_function_that_stays_calls_stays_too_and_others_do_not() -> None:
    text = """<ir_version: 9, opset_import: ["" : 17, "own" : 1, "other" : 1]> g (float[2] x) => (float[2] y)
      { a = own.f(x) b = own.g(a) y = own.h(b) }"""
    bodies = {"f": "w = own.g(v) t = other.Twist(w)", "g": "w = Neg(v)", "h": "w = Exp(v)"}
    functions = [
        f'<domain: "own", opset_import: ["" : 17, "own" : 1, "other" : 2]> {n} (v) => (w) {{ {b} }}'
        for n, b in bodies.items()
    ]
    made = inlined(load(onnx.parser.parse_model(f"{text} {' '.join(functions)}")))
    assert sorted(key[1] for key in made.functions) == ["f", "g"]
    assert [n.op_type for n in made.graph] == ["f", "g", "Exp"]


def test_a_function_that_is_called_with_a_subgraph_is_carried_through(tmp_path: Path) -> None:
    """onnx_ir's own walk through nodes fails in such a function."""
    body = """f <branch> (v) => (w) { yes = Constant<value = bool {1}>() u = Neg(v) b = If (yes) <
                then_branch: graph = @branch,
                else_branch = q () => (float[2] e) { e = Constant<value_floats = [0.0, 0.0]>() }> w = Add(u, b) }"""
    call = "t = Exp(x) y = own.f<branch = p () => (float[2] a) { a = Constant<value_floats = [1.0, 2.0]>() }>(t)"
    made = given(call, [body])
    read = load(made)
    assert inlined(read) is read
    assert [bool(step.reason) for step in understand(read).steps] == [False, True]
    save(read, tmp_path / "m.onnx")
    (before,), (after,) = run(made, X), run(onnx.load(tmp_path / "m.onnx"), X)
    assert (before == after).all()


def test_large_constants_are_not_repeated() -> None:
    body = "c = ConstantOfShape(n) w = Add(v, c)"
    source = staying(call="a = own.f(x) y = own.f(a)", body=f"n = Constant<value = int64[1] {{2}}>() {body}")
    assert not inlined(load(source)).functions
    zeros = onnx.numpy_helper.from_array(np.zeros(inlining.MOST_REPEATED // 4 + 1, np.float32))
    source.functions[0].node.append(onnx.helper.make_node("Constant", [], ["large"], value=zeros))
    loaded = load(source)
    assert inlined(loaded) is loaded


def test_many_nodes_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inlining, "MOST_NODES", 7)
    loaded = load(given(*CASES["one function calls another"]))
    assert inlined(loaded) is not loaded
    monkeypatch.setattr(inlining, "MOST_NODES", 6)
    assert inlined(loaded) is loaded


def test_the_model_itself_is_not_changed() -> None:
    loaded = load(given(*CASES["a branch is in it"]))
    before = ir.to_proto(loaded).SerializeToString(deterministic=True)
    assert inlined(loaded) is not loaded
    assert ir.to_proto(loaded).SerializeToString(deterministic=True) == before


def test_inner_values_of_functions_are_shown_by_the_names_that_programs_know(tmp_path: Path) -> None:
    onnx.save(given(*CASES["one function calls another"]), tmp_path / "m.onnx")
    program = understand(load(tmp_path / "m.onnx"))
    names = [name for step in program.steps for name in step.outputs]
    assert not program.summary.opaque
    assert len(names) > 4
    assert save_showing(tmp_path / "m.onnx", tmp_path / "shown.onnx", names) == names
    shown: list[Any] = run(onnx.load(tmp_path / "shown.onnx"), X)
    assert len(shown) == len(names)
