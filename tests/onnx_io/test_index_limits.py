"""Of how many numbers inputs of integers may be drawn is told by what a model does with them."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

from superopt.onnx_io import index_limits, load, understand


def limits(inputs: str, nodes: str, sizes: dict[str, int] | None = None) -> dict[str, int]:
    """Of a model with these inputs and nodes, whose output is y, with a table of seven rows of three beside them."""
    text = f'<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]> g ({inputs}) => (y) {{ {nodes} }}'
    given = onnx.parser.parse_model(text)
    table = np.arange(21, dtype=np.float32).reshape(7, 3)
    given.graph.initializer.append(onnx.numpy_helper.from_array(table, "table"))
    given.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("y", _type_of(given), None))
    return index_limits(understand(load(given)), sizes or {})


def _type_of(given: onnx.ModelProto) -> int:
    inferred = onnx.shape_inference.infer_shapes(given)
    return next(o.type.tensor_type.elem_type for o in inferred.graph.output)


CHOOSING = {
    "rows": ("int64[2] i", "y = Gather(table, i)", 7),
    "columns": ("int32[2] i", "y = Gather<axis = -1>(table, i)", 3),
    "the shorter of two axes": (
        "int64[2] i",
        "a = Gather(table, i) b = Gather<axis = 1>(table, i) y = MatMul(b, a)",
        3,
    ),
    "rows, when moved": ("int64[2] i", "k = Constant<value_ints = [0]>() j = Unsqueeze(i, k) y = Gather(table, j)", 7),
    "rows, of one of two": ("int64[2] i, int64[2] j", "k = Concat<axis = 0>(i, j) y = Gather(table, k)", 7),
    "rows that are compared as well": (
        "int64[2] i",
        "k = Constant<value = int64 {1}>() m = Equal(i, k) f = Cast<to = 1>(m) r = Gather(table, i) y = MatMul(f, r)",
        7,
    ),
    "rows of one of two tables in one": (
        "int64[5, 2] i",
        "k = Constant<value_ints = [0, 3]>() j = Add(i, k) y = Gather(table, j)",
        4,
    ),
    "elements": ("int64[7, 2] i", "y = GatherElements<axis = 1>(table, i)", 3),
    "rows and columns": ("int64[5, 2] i", "y = GatherND(table, i)", 3),
    "rows alone": ("int64[5, 1] i", "y = GatherND(table, i)", 7),
    "where it is written": ("int64[2, 1] i, float[2, 3] x", "y = ScatterND(table, i, x)", 7),
    "a place of so many": (
        "int64[2] i",
        "d = Constant<value = int64 {5}>() v = Constant<value_floats = [0.0, 1.0]>() y = OneHot(i, d, v)",
        5,
    ),
    "one of all numbers": (
        "int64[2, 1] i",
        "k = Constant<value_ints = [0, 1, 2, 3]>() m = Equal(i, k) y = Cast<to = 1>(m)",
        4,
    ),
    "rows of a table that is normalized as well": (
        "int32[1, 2] i, int32[1, 2] t, float[5, 3] u, float[3] g",
        "y, m, n = com.microsoft.EmbedLayerNormalization(i, t, table, u, u, g, g)",
        7,
    ),
    "shades": ("uint8[2, 3] i", "y = Cast<to = 1>(i)", 256),
    "shades of a sign": ("int8[2, 3] i", "y = Cast<to = 1>(i)", 128),
}


@pytest.mark.parametrize(("inputs", "nodes", "limit"), CHOOSING.values(), ids=CHOOSING)
def test_what_chooses_is_drawn_of_all_that_it_chooses_of(inputs: str, nodes: str, limit: int) -> None:
    assert limits(inputs, nodes)["i"] == limit


def test_columns_choose_each_of_their_own_table() -> None:
    nodes = """a = Constant<value = int64 {0}>() b = Constant<value_ints = [-1]>()
        c = Gather<axis = 1>(i, a) d = Gather<axis = -1>(i, b) e = Gather(table, c) f = Gather<axis = 1>(table, d)
        k = Constant<value_ints = [7, 5]>() g = Reshape(f, k) y = MatMul(g, e)"""
    assert limits("int64[5, 4] i", nodes) == {"i": (7, 2, 2, 3)}


UNKNOWN = {
    "a mask that is added": ("int64[2, 3] i", "f = Cast<to = 1>(i) y = Add(f, f)"),
    "a mask that is asked": ("int64[2, 3] i", "b = Cast<to = 9>(i) y = Cast<to = 1>(b)"),
    "a rate that is asked for": (
        "int64[2] i",
        "k = Constant<value = int64 {16000}>() m = Equal(i, k) y = Cast<to = 1>(m)",
    ),
    "what is computed with": ("int64[2] i", "j = Add(i, i) y = Gather(table, j)"),
    "what chooses and is computed with": ("int64[2] i", "a = Gather(table, i) j = Mul(i, i) y = Gather(a, j)"),
    "rows of which there are two": ("int64[2] i, float[2, 3] x", "y = Gather(x, i)"),
}


@pytest.mark.parametrize(("inputs", "nodes"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_may_be_a_mask_or_is_computed_with_is_0_or_1(inputs: str, nodes: str) -> None:
    assert limits(inputs, nodes) == {}


def test_edges_point_at_as_many_nodes_as_there_are() -> None:
    of_edges = "int64[2, m] i, float[n, 3] x", "z = Constant<value = int64 {0}>() s = Gather(i, z) y = Gather(x, s)"
    assert limits(*of_edges, {"n": 50, "m": 90}) == {"i": 50}
    assert limits(*of_edges) == {}


def test_lengths_are_compared_with_all_places_of_a_sequence() -> None:
    of_lengths = (
        "float[n, t, 3] x, int64[n] lengths",
        """s = Shape<start = 1, end = 2>(x) t1 = Squeeze(s) z = Constant<value = int64 {0}>()
        o = Constant<value = int64 {1}>() r = Range(z, t1, o) k = Constant<value_ints = [1]>()
        l = Unsqueeze(lengths, k) m = Less(r, l) f = Cast<to = 1>(m) k2 = Constant<value_ints = [2]>()
        g = Unsqueeze(f, k2) a = Mul(x, g) h = Clip(l, o)
        c = Cast<to = 1>(h) d = Unsqueeze(c, k2) y = Div(a, d)""",
    )
    assert limits(*of_lengths, {"n": 1, "t": 40}) == {"lengths": 40}
    assert limits(*of_lengths) == {}


def test_a_place_of_none_is_drawn_as_0() -> None:
    of_none = "d = Constant<value = int64 {0}>() v = Constant<value_floats = [0.0, 1.0]>() y = OneHot(i, d, v)"
    assert limits("int64[2] i", of_none) == {"i": 1}


def test_numbers_that_are_passed_on_by_a_thousand_nodes_are_0_or_1() -> None:
    chain = " ".join(f"i{k + 1} = Identity(i{k})" for k in range(2000))
    assert limits("int64[2] i0", f"{chain} y = Gather(table, i2000)") == {}
