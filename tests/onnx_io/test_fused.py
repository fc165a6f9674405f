"""Behind the operators that onnxruntime's own tools write, models are understood: their types are told."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from superopt.dim import symbol
from superopt.onnx_io import load, rewritten, understand
from superopt.onnx_io.fused import RUNTIMES, fused
from superopt.term import Type
from tests.onnx_io.fused_nodes import NODES, Node, drawn
from tests.onnx_io.models import terms
from tests.onnx_io.networks import run


@pytest.mark.parametrize("node", NODES.values(), ids=NODES)
def test_what_is_told_of_a_fused_node_is_what_the_runtime_gives(node: Node) -> None:
    types = [None if i is None else Type(i.dtype.name, i.shape) for i in node.inputs]
    told = fused(ir.from_proto(node.model().graph.node[0]), types)
    given = {f"i{n}": array for n, array in enumerate(node.inputs) if array is not None}
    found = dict(zip((n for n in node.outputs if n), run(node.model(), given), strict=True))
    assert "y" in told
    assert told == {n: (found[n].dtype.name, found[n].shape) for n in told}


def test_a_fused_node_with_an_unknown_input_tells_nothing_that_depends_on_it() -> None:
    x = Type("float32", (symbol("B"), symbol("S"), 8))
    nodes = {name: ir.from_proto(node.model().graph.node[0]) for name, node in NODES.items()}
    assert fused(nodes["a product"], [x, None]) == {}
    assert fused(nodes["a bias and gelu"], [None, x]) == {}
    assert fused(nodes["eight bits"], [Type("uint8", (2, 3)), None]) == {}
    assert fused(nodes["a product of eight bits"], [Type("uint8", (2, 3, 8)), Type("uint8", (8, 5)), None]) == {}
    assert fused(nodes["a bias and gelu"], [x, None]) == {"y": ("float32", x.shape)}


def test_a_packed_query_of_groups_tells_nothing() -> None:
    node = helper.make_node("GroupQueryAttention", ["x", "", ""], ["y"], domain=RUNTIMES, num_heads=4, kv_num_heads=2)
    assert fused(ir.from_proto(node), [Type("float32", (2, 3, 64)), None, None]) == {}


def test_products_behind_attention_with_a_mask_of_lengths_are_understood() -> None:
    nodes = [
        helper.make_node("Attention", ["x", "p", "", "k"], ["n"], domain=RUNTIMES, num_heads=2),
        helper.make_node("MatMul", ["n", "w"], ["m"]),
        helper.make_node("Add", ["m", "s"], ["y"]),
    ]
    info = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["B", "S", 8]) for n in ("x", "y")]
    weights = [
        onnx.numpy_helper.from_array(a, n) for n, a in {"s": drawn(8), "w": drawn(8, 8), "p": drawn(8, 24)}.items()
    ]
    info.insert(0, helper.make_tensor_value_info("k", onnx.TensorProto.INT32, ["B", "S"]))
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(RUNTIMES, 1)]
    graph = helper.make_graph(nodes, "g", info[:2], info[2:], weights)
    source = helper.make_model(graph, opset_imports=imports, ir_version=8)
    program = understand(load(source))
    assert set(program.summary.opaque) == {"Attention"}
    assert [str(d) for d in program.values["y"].shape] == ["B", "S", "8"]
    made = rewritten(program, terms(program), {})
    given = {"x": drawn(2, 3, 8), "k": np.int32([[1, 1, 0], [1, 1, 1]])}
    np.testing.assert_array_equal(run(ir.to_proto(made), given)[0], run(source, given)[0])


@pytest.mark.parametrize(("sizes", "told"), [([], 8), ([8, 8], None), ([8, 8, 4], 4)])
def test_attention_tells_its_columns_by_three_sizes_or_by_its_weights(sizes: list[int], told: int | None) -> None:
    node = ir.node("Attention", [ir.val("x"), ir.val("w")], {"num_heads": 2}, domain=RUNTIMES, outputs=[ir.val("y")])
    node.attributes["qkv_hidden_sizes"] = ir.AttrInt64s("qkv_hidden_sizes", sizes)
    types = [Type("float32", (2, 3, 8)), Type("float32", (8, 24))]
    assert fused(node, types) == ({} if told is None else {"y": ("float32", (2, 3, told))})
