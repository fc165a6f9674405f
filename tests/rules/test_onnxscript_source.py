"""Rules as a module for onnxscript: each fires on its own left side, and outputs stay, also those of networks."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnx_ir.passes.common as passes
import pytest
from onnx import helper, numpy_helper
from onnxscript import optimizer
from onnxscript.rewriter import RULE_NAME_TAG

from superopt.onnx_io import standalone
from superopt.operators.instances import small_instances
from superopt.operators.picks import Slice
from superopt.rules.exchange.onnxscript_source import onnxscript_refusals, to_onnxscript
from superopt.rules.format import load_rules, parse_file
from superopt.rules.rule import Rule
from superopt.term import Graph, subterms, variables
from tests.onnx_io.models import model
from tests.onnx_io.networks import LIGHT, assert_close, name, randomized, run
from tests.rules.generated import demand_equal, imported, rewritten, says_something
from tests.rules.shipped import at_some_ranks

CASES = list(load_rules(Path(__file__).parents[1] / "verify" / "cases" / "proved.rules").rules)
ALL = at_some_ranks()
OF_NETWORKS = [r for r in ALL if set(r.operators()) <= {"conv", "add", "mul", "relu", "expand", "concat", "slice"}]
SHIPPED = list(
    dict.fromkeys([*random.Random(0).sample(ALL, 200), *(r for r in OF_NETWORKS if "conv" in r.operators())])
)
RULES = [*SHIPPED, *CASES]
REFUSED = dict(onnxscript_refusals(RULES))
FIRING = [rule for rule in RULES if rule.name not in REFUSED and not rule.facts]
"""Those that are written, and ask nothing of elements, which examples do not tell."""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The module of all shipped rules, and of the proved cases."""
    return imported(RULES, tmp_path_factory.mktemp("generated"))


def fired(proto: onnx.ModelProto) -> set[str]:
    """The rules whose nodes are left in a model."""
    return {p.value for n in proto.graph.node for p in n.metadata_props if p.key == RULE_NAME_TAG}


# ---------------------------------------------------------------------------------------------------- all rules


def test_each_rule_is_a_class_or_is_named_as_refused(generated: Any) -> None:
    assert SHIPPED
    written = [rule.rule_name for rule in generated.RULES]
    assert sorted([*written, *generated.REFUSED]) == sorted(rule.name for rule in RULES)
    assert generated.REFUSED == REFUSED
    assert len(set(REFUSED) & {rule.name for rule in SHIPPED}) < len(SHIPPED) // 5


@pytest.mark.parametrize("first", range(4))
def test_each_rule_fires_on_an_example_of_its_left_side_and_keeps_the_outputs(generated: Any, first: int) -> None:
    agreed = []
    for rule in FIRING[first::4]:
        for example in small_instances(rule.source, rule.conditions, count=8, seed=first):
            before = standalone(Graph(tuple(variables(*example)), example), opset=19)
            count, after = rewritten(before, generated.rule_set(rule.name, gaining=False, times=1))
            if count and _is_run(before) and says_something(before):
                demand_equal(before, after)
                agreed.append(rule.name)
                break
        assert rule.name in agreed or _is_written_otherwise(rule) or _is_zero(rule), f"{rule.name} never fired"
    assert len(agreed) > len(FIRING) // 5


def test_whatever_fires_on_the_left_sides_of_other_rules_keeps_the_outputs(generated: Any) -> None:
    seen = set()
    for rule in FIRING[:: len(FIRING) // 60]:
        (example,) = list(small_instances(rule.source, rule.conditions, count=1, seed=3))
        before = standalone(Graph(tuple(variables(*example)), example), opset=19)
        if _is_run(before) and says_something(before):
            _, after = rewritten(before, generated.rule_set(gaining=False, times=1))
            demand_equal(before, after)
            seen |= fired(after)
    assert len(seen) > 15


def _is_run(proto: onnx.ModelProto) -> bool:
    """Whether onnxruntime takes the pools: it refuses those padded by as much as the kernel, however dilated."""
    for node in proto.graph.node:
        given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type in ("MaxPool", "AveragePool"):
            kernel = given["kernel_shape"] * 2
            if any(p >= k for p, k in zip(given.get("pads", [0] * len(kernel)), kernel, strict=True)):
                return False
    return True


def _is_zero(rule: Rule) -> bool:
    """Whether the left is 0 whatever is given, as `x − x` is."""
    (example,) = list(small_instances(rule.source, rule.conditions, count=1, seed=3))
    return not says_something(standalone(Graph(tuple(variables(*example)), example), opset=19))


def _is_written_otherwise(rule: Rule) -> bool:
    """Whether superopt writes the left as other nodes: one Concat or Slice for several, what is broadcast before a
    Reshape.
    """
    below = [(t.operator, i) for t in subterms(*rule.source) for i in t.inputs]
    joined = any(op.name == "concat" and i.operator == op for op, i in below)
    cut = any(isinstance(op, Slice) and isinstance(i.operator, Slice) and op.axis != i.operator.axis for op, i in below)
    return joined or cut or any(op.name == "expand" and not i.is_variable for op, i in below)


# ---------------------------------------------------------------------------------------------------- networks


def beginning(proto: onnx.ModelProto, concats: int) -> onnx.ModelProto:
    """A model up to one of its concats: matching in Python takes its time with every node."""
    joined = [i for i, node in enumerate(proto.graph.node) if node.op_type == "Concat"]
    last = proto.graph.node[joined[concats - 1]]
    del proto.graph.node[joined[concats - 1] + 1 :], proto.graph.output[:]
    proto.graph.output.append(helper.make_tensor_value_info(last.output[0], onnx.TensorProto.FLOAT, None))
    return onnx.shape_inference.infer_shapes(proto)


def taken_apart(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A network whose batch normalizations and biases are products and sums by channel."""
    weights = {i.name: numpy_helper.to_array(i) for i in proto.graph.initializer}
    nodes: list[onnx.NodeProto] = []
    for node in proto.graph.node:
        (out, *_), given = node.output, {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "Conv" and len(node.input) == 3:
            weights[f"{out}.b"] = weights[node.input[2]].reshape(-1, 1, 1)
            nodes.append(helper.make_node("Conv", node.input[:2], [f"{out}.c"], **given))
            nodes.append(helper.make_node("Add", [f"{out}.c", f"{out}.b"], [out]))
        elif node.op_type == "BatchNormalization":
            scale, bias, mean, variance = (weights[i].reshape(-1, 1, 1) for i in node.input[1:])
            factor = scale / np.sqrt(variance + np.float32(given.get("epsilon", 1e-5)))
            weights |= {f"{out}.f": factor, f"{out}.b": bias - mean * factor}
            nodes.append(helper.make_node("Mul", [node.input[0], f"{out}.f"], [f"{out}.m"]))
            nodes.append(helper.make_node("Add", [f"{out}.m", f"{out}.b"], [out]))
        else:
            nodes.append(node)
    kept = [numpy_helper.from_array(w, n) for n, w in weights.items()]
    graph = helper.make_graph(nodes, "apart", proto.graph.input, proto.graph.output, kept)
    apart = helper.make_model(graph, opset_imports=proto.opset_import, ir_version=8)
    return onnx.version_converter.convert_version(apart, 13)


@pytest.mark.parametrize("path", [p for p in LIGHT if name(p) in ("inception_v2", "shufflenet")], ids=name)
def test_a_network_loses_operators_and_keeps_its_outputs(generated: Any, path: Path) -> None:
    proto = randomized(path)
    before = taken_apart(beginning(proto, concats=3) if name(path) == "inception_v2" else proto)
    graph, counted = ir.from_proto(before), Counter[str]()
    passes.CommonSubexpressionEliminationPass()(graph)
    for _ in range(5):
        passes.ShapeInferencePass()(graph)
        count = generated.rule_set().apply_to_model(graph)
        counted.update(node.metadata_props.pop(RULE_NAME_TAG, "") for node in graph.graph)
        optimizer.fold_constants(graph, input_size_limit=1 << 40, output_size_limit=1 << 40)
        if not count:
            break
    passes.RemoveUnusedNodesPass()(graph)
    after = ir.to_proto(graph)
    assert count == 0, "the rules do not come to an end"
    assert counted["conv-scale"] or counted["mul-conv-to-conv-mul"]
    merged = [rule for rule in counted if rule.startswith(("conv-share-input", "conv-conv-to-slice-slice-conv-concat"))]
    assert merged or name(path) == "shufflenet"
    assert len(after.graph.node) < 0.9 * len(before.graph.node)
    assert_close(run(after), run(before))


@pytest.mark.parametrize("path", [p for p in LIGHT if name(p) in ("shufflenet", "resnet50")], ids=name)
def test_a_network_as_it_is_keeps_its_outputs_whatever_applies_once(generated: Any, path: Path) -> None:
    before = randomized(path)
    count, after = rewritten(before, generated.rule_set(gaining=False, times=1))
    assert count
    assert_close(run(after), run(before))


# ---------------------------------------------------------------------------------------------------- the source


SCALED = """
(rule scaled (given (?x n c h w) (?k o c 3 3) (?v o))
  (from (mul (conv ?x ?k) (expand (1) ?v))) (to (conv ?x (mul ?k (expand (0) ?v)))))
"""


def test_the_rule_stands_above_what_it_was_made_to() -> None:
    source = to_onnxscript(parse_file(SCALED).rules)
    assert "    #   (from (mul (conv ?x ?k) (expand (1) ?v)))\n" in source
    assert '    gains = ({"k", "v"},)\n' in source
    assert "        (v_0,) = aligned(v, (1,), 4)\n" in source


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(given (?x n (* a b))) (from (relu ?x)) (to ?x)", "the size a stands nowhere by itself"),
        ("(given (?x n)) (from (relu (every 0 2 ?x))) (to (every 0 2 (relu ?x)))", "every is not one ONNX node"),
        ("(given (?x n)) (from (expand (0) (n 2) ?x)) (to (expand (0) (n 2) ?x))", "an output is an expand"),
        ("(given (?x)) (from (relu (expand () (n m) ?x))) (to (relu (expand () (n m) ?x)))", "all inputs of relu"),
        (
            "(given (?x n (* a b)) (?y a b)) (from (add ?x (expand (1) (reshape ((* a b)) ?y)))) (to ?x)",
            "reshape is computed before it is broadcast",
        ),
        (
            "(given (?x m)) (from (matmul (expand (1) (n m) ?x) (expand (0) (m n) ?x))) (to (expand (1) (n n) ?x))",
            "matmul does not broadcast by itself",
        ),
    ],
)
def test_what_cannot_be_written_is_refused_with_the_reason(text: str, reason: str) -> None:
    (rule,) = parse_file(f"(rule r {text})").rules
    ((refused, given),) = onnxscript_refusals([rule])
    assert refused == "r"
    assert given.startswith(reason)
    assert f'"r": "{given}"' in to_onnxscript([rule])


def test_the_example_in_the_module_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = imported(parse_file(SCALED).rules, tmp_path)
    before = model("g (float[1,3,8,8] x) => (float[] y) { c = Conv(x, k) y = Mul(c, v) }")
    for label, shape in {"k": (4, 3, 3, 3), "v": (4, 1, 1)}.items():
        before.graph.initializer.append(numpy_helper.from_array(np.full(shape, 2, np.float32), label))
    onnx.save(before, tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    names = vars(module).copy()
    exec("\n".join(line[4:] for line in module.__doc__.splitlines() if line.startswith("    ")), names)
    after = ir.to_proto(names["model"])
    assert [node.op_type for node in after.graph.node] == ["Conv"]
    demand_equal(before, after)


def test_the_same_rules_give_the_same_source() -> None:
    assert to_onnxscript(CASES) == to_onnxscript(CASES)


def test_names_of_a_rule_may_be_words_of_python_or_of_the_module(tmp_path: Path) -> None:
    text = "(rule 1-class (given (?op shape) (?class shape)) (from (add ?op ?class)) (to (add ?class ?op)))"
    module = imported(parse_file(text).rules, tmp_path)
    before = model("g (float[4] a, float[4] b) => (float[4] y) { y = Add(a, b) }")
    count, after = rewritten(before, module.rule_set("1-class", gaining=False, times=1))
    assert count == 1
    assert list(after.graph.node[0].input) == ["b", "a"]
