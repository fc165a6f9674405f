"""Sizes that are seen as a model runs: of inputs that nobody gave, and of what is carried through."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

from superopt.cost.inputs import MOST_TURNS
from superopt.cost.ort import OnnxRuntime
from superopt.onnx_io import load, understand
from superopt.search.accepting.fed import Fed
from superopt.search.accepting.same import examine
from superopt.search.joining import with_joined
from superopt.search.settings import Setting
from superopt.search.settled import Ask, Settled, settled
from tests.models import model, weight

RUNTIME = OnnxRuntime()


def here(function: Callable[..., object], *arguments: object) -> object:
    return function(*arguments)


def taken(given: onnx.ModelProto, folder: Path, ask: Ask | None) -> Settled:
    onnx.save(given, folder / "m.onnx")
    program = understand(load(folder / "m.onnx"))
    return settled(program, folder / "m.onnx", (Setting(),), RUNTIME, ask, folder)


def chosen(rows: int | str) -> onnx.ModelProto:
    """How many are more than nothing, nothing tells before it runs."""
    nodes = [
        helper.make_node("GatherND", ["x", "rows"], ["given"]),
        helper.make_node("Compress", ["given", "m"], ["found"]),
        helper.make_node("Relu", ["found"], ["y"]),
    ]
    ends = [("x", TensorProto.FLOAT, [rows, 8]), ("y", TensorProto.FLOAT, ["n"])]
    places = np.argwhere(np.ones((5, 8), bool))
    return model(nodes, ends[:1], ends[1:], {"m": (weight(40) > 0), "rows": places})


@pytest.mark.parametrize("rows", [5, "length"])
def test_how_many_are_chosen_is_seen(rows: int | str, tmp_path: Path) -> None:
    found = taken(chosen(rows), tmp_path, here)
    assert int((weight(40) > 0).sum()) in found.sizes.values()
    assert taken(chosen(rows), tmp_path, None).sizes == found.settings[0].sizes


def test_a_graph_of_nodes_and_edges_has_more_than_one_node(tmp_path: Path) -> None:
    """An edge from a second node is refused where there is one."""
    nodes = [
        helper.make_node("Gather", ["edges", "first"], ["sources"]),
        helper.make_node("Gather", ["x", "sources"], ["y"]),
    ]
    ends = [("x", TensorProto.FLOAT, ["nodes", 16]), ("edges", TensorProto.INT64, [2, "m"])]
    given = model(nodes, ends, [("y", TensorProto.FLOAT, ["m", 16])], {"first": np.array(0)})
    (found,) = taken(given, tmp_path, here).settings
    assert (found.likely, found.shapes) == (True, {"x": (128, 16), "edges": (2, 128)})


def test_of_texts_that_an_image_is_held_against_there_are_as_many_as_are_to_be_found(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Transpose", ["texts"], ["columns"], perm=[1, 0]),
        helper.make_node("MatMul", ["images", "columns"], ["scores"]),
        helper.make_node("TopK", ["scores", "k"], ["best", "places"]),
    ]
    ends = [(n, TensorProto.FLOAT, [n[0], 8]) for n in ("images", "texts")]
    found = taken(model(nodes, ends, [("best", TensorProto.FLOAT, ["i", 5])], {"k": np.array([5])}), tmp_path, here)
    assert found.settings[0].shapes == {"images": (1, 8), "texts": (128, 8)}


def test_states_are_of_the_sizes_of_what_they_are_joined_with_one_after_the_other(tmp_path: Path) -> None:
    """Beside an image a quarter as large, and added to half of both."""
    nodes = [
        helper.make_node("MaxPool", ["frame"], ["small"], kernel_shape=[4, 4], strides=[4, 4]),
        helper.make_node("Concat", ["small", "near"], ["both"], axis=1),
        helper.make_node("MaxPool", ["both"], ["smaller"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Add", ["far", "smaller"], ["y"]),
    ]
    ends = [("frame", 1, ["b", 3, "h", "w"]), ("near", 1, ["b", 2, "h1", "w1"]), ("far", 1, ["b", 5, "h2", "w2"])]
    found = taken(model(nodes, ends, [("y", 1, ["b", 5, "h3", "w3"])]), tmp_path, here)
    assert found.settings[0].likely
    assert found.settings[0].shapes == {"frame": (1, 3, 224, 224), "near": (1, 2, 56, 56), "far": (1, 5, 28, 28)}


def test_a_model_that_does_not_run_has_the_sizes_that_are_known(tmp_path: Path) -> None:
    given = chosen(5)
    (rows,) = (w for w in given.graph.initializer if w.name == "rows")
    rows.CopyFrom(onnx.numpy_helper.from_array(np.full((40, 2), 9), "rows"))  # where there is nothing
    found = taken(given, tmp_path, here)
    assert found == Settled((Setting(),), {})


def test_a_node_of_another_domain_that_is_called_concat_joins_nothing() -> None:
    """It has no axis along which it would."""
    text = """<ir_version: 8, opset_import: ["" : 17, "own" : 1]> g (float[N, 4] x, float[M, 4] s) => (float[K, 4] y)
      { a = Relu(x) y = own.Concat(a, s) }"""
    program = understand(load(onnx.parser.parse_model(text)))
    assert with_joined(program, {"N": 3}, lambda value, setting: (3, 4)) == {"N": 3}


def test_a_value_of_another_rank_than_declared_tells_nothing(tmp_path: Path) -> None:
    def branch(name: str, node: onnx.NodeProto) -> onnx.GraphProto:
        return helper.make_graph([node], name, [], [helper.make_tensor_value_info(node.output[0], 1, None)])

    flat = branch("flat", helper.make_node("Reshape", ["x", "s"], ["r"]))
    same = branch("same", helper.make_node("Identity", ["x"], ["i"]))
    ends = [("x", TensorProto.FLOAT, [3, 4]), ("y", TensorProto.FLOAT, ["a", "b"])]
    nodes = [
        helper.make_node("If", ["c"], ["z"], then_branch=flat, else_branch=same),
        helper.make_node("Relu", ["z"], ["y"]),
    ]
    given = model(nodes, ends[:1], ends[1:], {"s": np.array([-1]), "c": np.array(True)})
    assert set(taken(given, tmp_path, here).sizes.values()) <= {12}


@pytest.mark.parametrize("shape", [[5, 8], ["batch", 8], ["batch", "batch"]])
def test_where_all_sizes_are_known_nothing_is_run(shape: list[int | str], tmp_path: Path) -> None:
    def nobody(*_: object) -> None:
        raise AssertionError("it was run")

    ends = [("x", TensorProto.FLOAT, shape), ("y", TensorProto.FLOAT, shape)]
    given = model([helper.make_node("Mul", ["x", "w"], ["y"])], ends[:1], ends[1:], {"w": weight(1)})
    assert taken(given, tmp_path, nobody) == Settled((Setting(),), {})


def a_table() -> onnx.ModelProto:
    """Words of a hundred."""
    nodes = [helper.make_node("Gather", ["table", "ids"], ["r"]), helper.make_node("Relu", ["r"], ["y"])]
    ends = [("ids", TensorProto.INT64, [1, "length"]), ("y", TensorProto.FLOAT, [1, "length", 8])]
    return model(nodes, ends[:1], ends[1:], {"table": weight(100, 8)})


def test_words_are_any_that_the_model_knows(tmp_path: Path) -> None:
    found = taken(a_table(), tmp_path, here)
    assert [dict(setting.limits) for setting in found.settings] == [{"ids": 100}]
    (drawn,) = RUNTIME.feeds(RUNTIME.session(tmp_path / "m.onnx"), 0, found.settings[0].draw()).values()
    assert drawn.shape == (1, 128)
    assert 50 < drawn.max() < 100


def test_words_that_the_model_refuses_are_not_drawn(tmp_path: Path) -> None:
    def refusing(function: Callable[..., object], *arguments: object) -> object:
        draws = arguments[-1] if isinstance(arguments[-1], list) else []
        return None if any(draw.limits for draw in draws) else function(*arguments)

    assert [dict(s.limits) for s in taken(a_table(), tmp_path, refusing).settings] == [{}]


def test_a_wrong_row_of_a_table_is_seen(tmp_path: Path) -> None:
    settings = taken(a_table(), tmp_path, here).settings
    wrong = a_table()
    table = onnx.numpy_helper.to_array(wrong.graph.initializer[0]).copy()
    table[70] *= 1.01
    wrong.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(table, "table"))
    onnx.save(wrong, tmp_path / "wrong.onnx")
    compared = examine(tmp_path / "m.onnx", tmp_path / "wrong.onnx", RUNTIME, fed=Fed(settings=settings))
    assert compared.differs
    assert examine(tmp_path / "m.onnx", tmp_path / "m.onnx", RUNTIME, fed=Fed(settings=settings)).agrees


def test_columns_are_drawn_each_of_their_own_table(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Gather", ["i", "first"], ["a"], axis=1),
        helper.make_node("Gather", ["i", "second"], ["b"], axis=1),
        helper.make_node("Gather", ["table", "a"], ["c"]),
        helper.make_node("Gather", ["other", "b"], ["d"]),
        helper.make_node("Add", ["c", "d"], ["y"]),
    ]
    ends = [("i", TensorProto.INT64, [50, 2]), ("y", TensorProto.FLOAT, [50, 8])]
    places = {"first": np.array(0), "second": np.array(1)}
    given = model(nodes, ends[:1], ends[1:], {"table": weight(100, 8), "other": weight(4, 8), **places})
    (setting,) = taken(given, tmp_path, here).settings
    (drawn,) = RUNTIME.feeds(RUNTIME.session(tmp_path / "m.onnx"), 0, setting.draw()).values()
    assert (drawn.max(0) < [100, 4]).all()
    assert drawn.max(0)[0] > 50
    assert set(drawn[:, 1]) == set(range(4))


def test_a_loop_takes_turns_where_an_input_says_how_many(tmp_path: Path) -> None:
    """Of no turns nothing could be told."""
    source = """<ir_version: 8, opset_import: ["" : 17]> g (float[2] x, int64 n) => (float[2] y) <bool go = {1}> {
        y = Loop(n, go, x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] r)
        { d = Identity(c) r = Tanh(s) }> }"""
    setting = taken(onnx.parser.parse_model(source), tmp_path, here).settings[0]
    session = RUNTIME.session(tmp_path / "m.onnx")
    counts = {int(RUNTIME.feeds(session, seed, setting.draw())["n"]) for seed in range(20)}
    assert counts == set(range(1, MOST_TURNS + 1))
