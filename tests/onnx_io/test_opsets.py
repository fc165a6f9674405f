"""Up to which opset a model may rise: nodes that cannot be written anew have to mean the same there."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnx_ir as ir
import pytest

from superopt.errors import SuperoptError
from superopt.onnx_io import check, highest_opset, load, opset_of, rewritten, standalone, understand
from superopt.onnx_io.opsets import needed_opset, stays
from superopt.operators.activations import Gelu
from superopt.operators.clip import Clip
from superopt.operators.layout import Expand, Transpose
from superopt.operators.pointwise import Add, Relu
from superopt.term import Graph, variable
from tests.onnx_io.models import model
from tests.onnx_io.networks import run
from tests.search.cutting.test_numbers import bent

X = variable("x", (2, 3), "float32")


@pytest.mark.parametrize(
    ("op_type", "given", "old", "new", "expected"),
    [
        ("Relu", {}, 13, 20, True),
        ("Reshape", {}, 13, 20, True),  # what came new has a default that means what was meant
        ("Shape", {}, 13, 20, True),
        ("ReduceMean", {}, 13, 20, True),
        ("ReduceMean", {"axes": [1]}, 13, 20, False),
        ("ReduceMean", {"axes": [1]}, 13, 17, True),
        ("Softmax", {"axis": 1}, 11, 13, False),
        ("Shape", {}, 11, 20, True),
        ("Cast", {"to": 9}, 11, 23, True),
        ("Unsqueeze", {"axes": [0]}, 11, 23, True),
        ("Resize", {}, 10, 11, False),
        ("Softmax", {}, 11, 23, False),
        ("Cast", {"to": 1}, 17, 20, True),
        ("GridSample", {}, 17, 20, False),
        ("DFT", {}, 17, 20, False),
        ("GroupNormalization", {"num_groups": 2}, 18, 21, False),
        ("NoSuchOperator", {}, 17, 20, False),
        ("LayerNormalization", {}, 11, 17, True),
        ("SimplifiedLayerNormalization", {}, 17, 23, True),
        ("Scale", {}, 9, 10, False),
    ],
)
def test_a_node_stays_where_it_means_the_same(
    op_type: str, given: dict[str, int | list[int]], old: int, new: int, expected: bool
) -> None:
    attributes = ir.convenience.convert_attributes(given)
    node = ir.Node("", op_type, [ir.Value(name="x")] * (3 if "Norm" in op_type else 1), attributes)
    if op_type == "Reshape":
        node = ir.Node("", op_type, [ir.Value(name=n) for n in "xs"], attributes)
    assert stays(node, old, new) is expected


def test_an_opset_is_needed_only_by_what_runs_and_is_new() -> None:
    assert needed_opset([Relu()(X)], (), 13) == 13
    assert needed_opset([Relu()(Gelu(0)(X))], (), 13) == 20
    assert needed_opset([Relu()(Gelu(0)(X))], {Gelu(0)(X)}, 13) == 13
    assert needed_opset([Gelu(0)(X)], (), 22) == 22


def test_a_repetition_needs_no_newer_opset() -> None:
    """What reads it may repeat by itself; else it is a Tile where there is no Expand."""
    column = Expand((0,), X.shape)(variable("c", (2,), "float32"))
    for term, kinds in ((Add()(X, column), set()), (Transpose((1, 0))(column), {"Tile"})):
        assert needed_opset([term], (), 7) == 7
        made = standalone(Graph((X,), (term,)), 7)
        check(made)
        assert {n.op_type for n in made.graph.node} & {"Tile", "Expand"} == kinds


def test_axes_of_nodes_that_stay_become_inputs_where_the_opset_rises_so_far() -> None:
    """Those that compute a shape, of a mask that is opaque, as torch wrote it for years."""
    text = """g (int64[B, S] m, float[B, S] x) => (float[B, S] y, bool[B, 1, S] n)
      <int64 i0 = {0}, int64 i1 = {1}, int64[1] one = {1}>
      { s = Shape(m) b = Gather(s, i0) t = Gather(s, i1) bu = Unsqueeze<axes = [0]>(b) tu = Unsqueeze<axes = [0]>(t)
        to = Concat<axis = 0>(bu, one, tu) keep = Cast<to = 9>(m) n = Reshape(keep, to) y = Relu(x) }"""
    program = understand(load(model(text, 11)))
    made = rewritten(program, {"y": Gelu(0)(program.values["x"])}, {})
    assert made.opset_imports[""] == 20
    check(made)
    given = {"m": np.array([[0, 2, 0], [1, 0, 0]]), "x": np.ones((2, 3), np.float32)}
    np.testing.assert_array_equal(run(ir.to_proto(made), given)[1], run(model(text, 11), given)[1])


def test_an_opaque_node_that_would_mean_something_else_holds_the_opset_down() -> None:
    free, held = (understand(load(bent(opset=17, kept=kept))) for kept in (False, True))
    assert highest_opset(free) > 20
    assert highest_opset(held) == 19
    d = held.values["x"]
    with pytest.raises(SuperoptError, match="opset 20"):
        rewritten(held, {"e": Gelu(0)(d)}, {})
    assert rewritten(free, {"e": Gelu(0)(free.values["x"])}, {}).opset_imports[""] == 20


@pytest.mark.parametrize(("opset", "highest"), [(14, 18), (18, 18), (20, 20)])
def test_a_pool_of_means_holds_the_opset_where_runtimes_compute_it_fast(opset: int, highest: int) -> None:
    """So what is gained elsewhere by an operator of a newer one is not lost there, and not even offered."""
    text = "g (float[1, 4, 8, 8] x) => (float[1, 4, 6, 6] y) { r = Relu(x) y = AveragePool<kernel_shape = [3, 3]>(r) }"
    program = understand(load(model(text, opset)))
    assert highest_opset(program) == highest
    if highest < needed_opset([Gelu(0)(program.values["x"])], (), opset):
        with pytest.raises(SuperoptError, match="take longer, in opset 20"):
            rewritten(program, {"r": Gelu(0)(program.values["x"])}, {})


@pytest.mark.parametrize("old", [13, 17])
def test_a_split_into_equal_parts_says_how_many_where_the_opset_rises(old: int) -> None:
    text = "g (float[6, 4] x) => (float[2, 4] a, float[2, 4] b, float[2, 4] y) { a, b, c = Split(x) y = Relu(c) }"
    program = understand(load(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {old}]> {text}')))
    made = rewritten(program, {"y": Gelu(0)(program.values["c"])}, {})
    (split,) = [n for n in made.graph if n.op_type == "Split"]
    assert made.opset_imports[""] == 20
    assert split.attributes["num_outputs"].value == 3
    assert "num_outputs" not in next(iter(program.model.graph)).attributes
    check(made, "the optimized model")


def test_a_split_into_given_parts_stays_as_it_is() -> None:
    text = "g (float[6, 4] x, int64[2] n) => (float[a, 4] a, float[6, 4] y) { a, c = Split(x, n) y = Relu(x) }"
    program = understand(load(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')))
    made = rewritten(program, {"y": Gelu(0)(program.values["x"])}, {})
    assert [dict(n.attributes) for n in made.graph if n.op_type == "Split"] == [{}]
    check(made, "the optimized model")


@pytest.mark.parametrize("seed", range(4))
def test_a_clip_whose_bounds_are_drawn_runs_in_an_old_opset_too(seed: int) -> None:
    """As kernels are timed: onnxruntime refuses bounds that are attributes whose least is above the most."""
    bounds = [variable(name, (), "float32", constant=True) for name in ("low", "high")]
    graph = Graph((X,), (Clip()(X, *bounds),))
    old, new = (standalone(graph, opset, seed) for opset in (9, 13))
    np.testing.assert_array_equal(run(old), run(new))


@pytest.mark.parametrize(
    ("opset", "rows", "node", "expected"),
    [
        (10, "n", "Slice(x, zero, two, zero)", 11),
        (10, "4", "Slice(x, zero, two, zero)", 10),
        (10, "n", "Relu(x)", 10),
        (9, "n", "Slice<starts = [0], ends = [2]>(x)", 9),
        (12, "n", "Slice(x, zero, two, zero)", 12),
    ],
)
def test_slices_of_open_sizes_are_written_in_no_opset_in_which_runtimes_mistake_them(
    opset: int, rows: str, node: str, expected: int
) -> None:
    """What stands beside them in another order may fail at other sizes there."""
    text = f"""g (float[{rows}, 3] x) => (float[m, 3] y) <int64[1] zero = {{0}}, int64[1] two = {{2}}> {{
      s = {node} y = Neg(s) }}"""
    program = understand(load(model(text, opset)))
    made = rewritten(program, {"y": Relu()(program.values["s"])}, {})
    assert opset_of(made) == expected
    assert opset_of(rewritten(program, {}, {})) == opset
