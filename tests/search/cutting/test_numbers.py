"""Constants of one element are numbers to the search, and a gelu of a model is folded where it stands."""

from __future__ import annotations

import math

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from superopt.cost.analytic import AnalyticCost
from superopt.onnx_io import check, load, rewritten, understand
from superopt.operators.constant import Scalar
from superopt.operators.differences import Sub
from superopt.operators.pointwise import Add
from superopt.search.cutting.pieces import Piece, cut_into_pieces, distinct
from superopt.search.replay import placement
from superopt.search.rewriting.finders.masked import Masking
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import rewrites_of
from superopt.search.strategies.backtrack import backtrack
from superopt.search.strategies.found import Limits
from superopt.term import subterms
from tests.models import model
from tests.onnx_io.networks import run


def bent(root: float = math.sqrt(2), dtype: type = np.float32, opset: int = 13, kept: bool = False) -> onnx.ModelProto:
    """A gelu in single steps, and a mean; before opset 18 ONNX has its axes as an attribute."""
    nodes = [
        helper.make_node("Div", ["x", "root"], ["a"]),
        helper.make_node("Erf", ["a"], ["b"]),
        helper.make_node("Add", ["b", "one"], ["c"]),
        helper.make_node("Mul", ["x", "c"], ["d"]),
        helper.make_node("Mul", ["d", "half"], ["e"]),
        helper.make_node("ReduceMean", ["e"], ["y"], axes=[1], keepdims=0),
    ]
    if kept:
        nodes.append(helper.make_node("GridSample", ["image", "grid"], ["z"]))
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    ends = [("x", kind, ["N", 64]), ("y", kind, ["N"])]
    inputs = [*ends[:1], *([("image", kind, [1, 1, 4, 4]), ("grid", kind, [1, 2, 2, 2])] if kept else [])]
    outputs = [*ends[1:], *([("z", kind, [1, 1, 2, 2])] if kept else [])]
    weights = {"root": np.array([root], dtype), "one": np.array(1, dtype), "half": np.array(0.5, dtype)}
    return model(nodes, inputs, outputs, weights, opset=opset)


def pieces(given: onnx.ModelProto) -> list[Piece]:
    return cut_into_pieces(understand(load(given)))


def test_constants_of_one_element_are_numbers() -> None:
    (piece,) = pieces(bent())
    found = {t.operator.value for t in subterms(*piece.graph.outputs) if isinstance(t.operator, Scalar)}
    assert found == {1.0, 0.5, float(np.float32(math.sqrt(2)))}


def test_pieces_of_other_numbers_are_other_pieces() -> None:
    assert len(distinct([*pieces(bent()), *pieces(bent())])) == 1
    assert len(distinct([*pieces(bent()), *pieces(bent(root=1.5))])) == 2


def optimized(given: onnx.ModelProto) -> onnx.ModelProto:
    """What a search with definitions alone makes of a model, by the analytic cost."""
    program = understand(load(given))
    (piece,) = cut_into_pieces(program)
    matching = Matching(rewrites_of((), ["gelu"]))
    found = backtrack(piece.canonical, matching, AnalyticCost(sizes={"N": 256}), Limits(expanded=8)).best[0]
    assert [s.known for s in found.steps] == ["definition"]
    new = placement(piece, found.graph.outputs)
    made = rewritten(program, new.new, new.origins)
    check(made)
    return ir.to_proto(made)


def test_a_gelu_of_symbolic_size_is_folded_where_it_stands() -> None:
    given = bent()
    after = optimized(given)
    assert [n.op_type for n in after.graph.node] == ["Gelu", "ReduceMean"]
    feed = {"x": np.random.default_rng(0).standard_normal((5, 64)).astype(np.float32)}
    np.testing.assert_allclose(run(after, feed)[0], run(given, feed)[0], rtol=1e-5, atol=1e-6)


def test_a_gelu_of_64_bits_is_folded_too() -> None:
    assert [n.op_type for n in optimized(bent(dtype=np.float64)).graph.node] == ["Gelu", "ReduceMean"]


def test_the_opset_rises_as_far_as_needed_and_other_nodes_are_written_anew() -> None:
    after = optimized(bent())
    assert [(o.domain, o.version) for o in after.opset_import] == [("", 20)]
    (mean,) = (n for n in after.graph.node if n.op_type == "ReduceMean")
    assert len(mean.input) == 2  # since opset 18 the axes are an input
    assert "axes" not in {a.name for a in mean.attribute}


def chosen(values: np.ndarray) -> onnx.ModelProto:
    """Scores that are masked by a constant of their shape."""
    nodes = [
        helper.make_node("Where", ["mask", "x", "low"], ["a"]),
        helper.make_node("Mul", ["a", "low"], ["y"]),
    ]
    kind = onnx.TensorProto.FLOAT
    return model(
        nodes,
        [("mask", onnx.TensorProto.BOOL, [4, 4]), ("x", kind, [4, 4])],
        [("y", kind, [4, 4])],
        {"low": values},
    )


@pytest.mark.parametrize("shape", [(4, 4), (1, 1), ()], ids=["whole", "one of its rank", "one"])
@pytest.mark.parametrize("value", [-9e15, -np.inf])
def test_of_a_constant_of_one_value_what_is_chosen_is_a_number(value: float, shape: tuple[int, ...]) -> None:
    (piece,) = pieces(chosen(np.full(shape, value, np.float32)))
    number = float(np.float32(value))
    assert {t.operator.value for t in subterms(*piece.graph.outputs) if isinstance(t.operator, Scalar)} == {number}
    multiplied = any(v.label == "low" for v in piece.graph.inputs)
    assert multiplied == ((len(shape) == 2 and shape != (1, 1)) or np.isinf(value)), "what is not chosen stays"


@pytest.mark.parametrize("rows", [4, "N"], ids=["known", "open"])
def test_scores_to_which_minus_infinity_is_added_are_written(rows: int | str) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["s"]), helper.make_node("Where", ["mask", "low", "s"], ["y"])]
    ends = [("mask", onnx.TensorProto.BOOL, [4]), ("x", 1, [rows, 4]), ("y", 1, [rows, 4])]
    weights = {"w": np.eye(4, dtype=np.float32), "low": np.array(-np.inf, np.float32)}
    given = model(nodes, ends[:2], ends[2:], weights)
    program = understand(load(given))
    (piece,) = cut_into_pieces(program)
    made = Masking().of(piece.canonical.outputs[0])
    assert made is not None
    new = placement(piece, (made,))
    after = ir.to_proto(rewritten(program, new.new, new.origins))
    feed = {"mask": np.arange(4) % 2 == 0, "x": np.ones((4, 4), np.float32)}
    np.testing.assert_array_equal(run(after, feed)[0], run(given, feed)[0])
    assert "Add" in [n.op_type for n in after.graph.node]


@pytest.mark.parametrize("last", [1.0, np.inf], ids=["another value", "infinite"])
def test_what_is_not_one_finite_number_stays_a_constant(last: float) -> None:
    values = np.full((4, 4), last, np.float32)
    values[0, 0] = 0.0 if np.isfinite(last) else last
    (piece,) = pieces(chosen(values))
    assert not any(isinstance(t.operator, Scalar) for t in subterms(*piece.graph.outputs))


@pytest.mark.parametrize(
    ("op_type", "order", "shape", "filled", "left"),
    [
        ("Add", 1, (3, 4), 0.0, 0),
        ("Add", -1, (3, 4), 0.0, 0),
        ("Sub", 1, (3, 4), 0.0, 0),
        ("Sub", -1, (3, 4), 0.0, 1),
        ("Add", 1, (4,), 0.0, 1),
        ("Add", 1, (3, 4), 1e-30, 1),
    ],
    ids=["added", "added to", "taken away", "taken from", "a bias", "almost"],
)
def test_matrices_that_add_nothing_are_left_out(
    op_type: str, order: int, shape: tuple[int, ...], filled: float, left: int
) -> None:
    nodes = [helper.make_node(op_type, ["x", "zeros"][::order], ["a"]), helper.make_node("Relu", ["a"], ["y"])]
    ends = [(name, 1, [2, 3, 4]) for name in "xy"]
    (piece,) = pieces(model(nodes, ends[:1], ends[1:], {"zeros": np.full(shape, filled, np.float32)}))
    assert sum(isinstance(t.operator, Add | Sub) for t in subterms(*piece.graph.outputs)) == left
