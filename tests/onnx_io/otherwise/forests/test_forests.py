"""Forests of soft decisions are computed level by level, all trees at once, and are the same."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.onnx_io.models import model
from tests.onnx_io.networks import Array
from tests.onnx_io.otherwise.reading import gain, operators_of

WIDTH, CLASSES, DEPTH = 12, 3, 3
LEAVES = 2**DEPTH
RNG = np.random.default_rng(0)
NUMBERS = "float one = {1.0}, int64[1] last = {-1}, int64[1] zero = {0}, int64[1] two = {2}"


def forest(tree: str, end: str, trees: int = 3, more: str = "", rows: str = "n", opset: int = 17) -> onnx.ModelProto:
    """Trees of which each has chances d, and gives p."""
    nodes = " ".join(f"z{i} = Gemm(x, w{i}, b{i}) d{i} = Sigmoid(z{i}) {tree.format(i=i)}" for i in range(trees))
    made = model(
        f"g (float[{rows}, {WIDTH}] x) => (float[{rows}, {CLASSES}] y) <{NUMBERS}> {{ {nodes} {end} {more} }}",
        opset,
    )
    shapes = {"w": (WIDTH, LEAVES - 1), "b": (LEAVES - 1,), "l": (LEAVES, CLASSES)}
    data: dict[str, Array] = {
        f"{k}{i}": RNG.standard_normal(s).astype(np.float32) for k, s in shapes.items() for i in range(trees)
    }
    data |= {"nodes": NODES, "right": RIGHT, "left": 1 - RIGHT}
    used = {name for node in made.graph.node for name in node.input}
    made.graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in data.items() if name in used)
    return made


def _paths() -> tuple[Array, Array]:
    """The decisions on the way to each leaf, and whether they are turned around."""
    nodes, right = np.zeros((LEAVES, DEPTH), np.int64), np.zeros((LEAVES, DEPTH), np.float32)
    for leaf in range(LEAVES):
        at = 0
        for level in range(DEPTH):
            turn = leaf >> (DEPTH - 1 - level) & 1
            nodes[leaf, level], right[leaf, level], at = at, turn, 2 * at + 1 + turn
    return nodes, right


NODES, RIGHT = _paths()


def _level(n: int) -> str:
    """The paths of one level: those before, repeated for both turns, times the chances of these."""
    first, last = 2**n - 1, 2 ** (n + 1) - 1
    before = "k{i}_" + str(n - 1)
    return (
        f"f{{i}}_{n} = Constant<value_ints = [{first}]>() t{{i}}_{n} = Constant<value_ints = [{last}]>() "
        f"s{{i}}_{n} = Slice(c{{i}}, f{{i}}_{n}, t{{i}}_{n}, h{{i}}) "
        + (
            f"r{{i}}_{n} = Constant<value_ints = [0, -1, 1]>() q{{i}}_{n} = Reshape({before}, r{{i}}_{n}) "
            f"u{{i}}_{n} = Constant<value_ints = [1, 1, 2]>() v{{i}}_{n} = Tile(q{{i}}_{n}, u{{i}}_{n}) "
            f"k{{i}}_{n} = Mul(v{{i}}_{n}, s{{i}}_{n}) "
            if n
            else f"k{{i}}_{n} = Identity(s{{i}}_{n}) "
        )
    )


LEVELS = (
    "h{i} = Constant<value_ints = [1]>() g{i} = Unsqueeze(d{i}, two) e{i} = Sub(one, g{i}) "
    "c{i} = Concat<axis = 2>(g{i}, e{i}) " + "".join(map(_level, range(DEPTH))) + "o{i} = Constant<value_ints = "
    f"[0, {LEAVES}]>() m{{i}} = Reshape(k{{i}}_{DEPTH - 1}, o{{i}}) p{{i}} = MatMul(m{{i}}, l{{i}})"
)
GATHERED = (
    "g{i} = Gather<axis = 1>(d{i}, nodes) a{i} = Mul(g{i}, left) e{i} = Sub(one, g{i}) c{i} = Mul(e{i}, right) "
    "s{i} = Add(a{i}, c{i}) m{i} = ReduceProd<axes = [2], keepdims = 0>(s{i}) p{i} = Gemm<beta = 0.0>(m{i}, l{i})"
)
STACKED = (
    " ".join(f"j{i} = Unsqueeze(p{i}, two)" for i in range(3))
    + " a = Concat<axis = 2>(j0, j1, j2) y = ReduceSum<keepdims = 0>(a, two)"
)
ADDED = "y0 = Add(p0, p1) y1 = Add(y0, p2) y2 = Add(y1, p3) y3 = Add(y2, p4) y = Mul(y3, one)"
TREES = {"level by level": LEVELS, "by gathered paths": GATHERED}


def feeds(rows: int = 4) -> dict[str, Array]:
    return {"x": np.random.default_rng(1).standard_normal((rows, WIDTH)).astype(np.float32)}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
@pytest.mark.parametrize("rows", ["n", "4", "1"])
@pytest.mark.parametrize(("end", "trees"), [(STACKED, 3), (ADDED, 5)], ids=["stacked", "added"])
def test_all_trees_of_a_forest_are_computed_at_once(tree: str, rows: str, end: str, trees: int) -> None:
    found = operators_of(forest(tree, end, trees, rows=rows), feeds(1 if rows == "1" else 4))
    assert (found.count("MatMul") + found.count("Gemm"), found.count("Sigmoid")) == (2, 1)
    assert found.count("Mul") - (end == ADDED) == 2 * (DEPTH - 1)


def test_several_layers_below_are_one() -> None:
    source = forest(LEVELS, STACKED)
    for node in source.graph.node:
        if node.op_type == "Gemm":
            node.input[0] = "below"
    source.graph.node.insert(0, onnx.helper.make_node("MatMul", ["x", "u"], ["below"]))
    source.graph.initializer.append(
        numpy_helper.from_array(RNG.standard_normal((WIDTH, WIDTH)).astype(np.float32), "u")
    )
    assert operators_of(source, feeds()).count("MatMul") == 2


LEFT = {
    "what something else reads": forest(LEVELS, STACKED.replace("y =", "q ="), more="y = Add(q, p0)"),
    "chances that are squared": forest(LEVELS.replace("e{i} = Sub(one, g{i})", "e{i} = Mul(g{i}, g{i})"), STACKED),
    "what is left of something else": forest(LEVELS.replace("e{i} = Sub(one, g{i})", "e{i} = Exp(g{i})"), STACKED),
    "the same chance twice": forest(GATHERED.replace("right)", "left)"), STACKED),
}


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_others_are_left(source: onnx.ModelProto) -> None:
    assert operators_of(source, feeds()).count("Sigmoid") == 3


def test_a_forest_is_faster_so() -> None:
    assert gain(forest(GATHERED, ADDED, 5, rows="64"), feeds(64)) > 1.5


def test_what_repeats_its_one_row_for_others_is_left() -> None:
    repeated = GATHERED.replace("g{i} = Gather", "r{i} = Gather").replace("a{i} =", "g{i} = Mul(r{i}, four) a{i} =")
    source = forest(repeated, STACKED, rows="1")
    source.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 4
    source.graph.initializer.append(numpy_helper.from_array(np.ones((4, 1, 1), np.float32), "four"))
    assert "ReduceProd" in operators_of(source, feeds(1))


def test_what_is_added_to_each_row_is_no_bias() -> None:
    source = forest(LEVELS, STACKED, rows=str(LEAVES - 1))
    for i, node in reversed(list(enumerate(source.graph.node))):
        if node.op_type == "Gemm":
            source.graph.node.insert(i + 1, onnx.helper.make_node("Add", [node.output[0], "column"], [f"a{i}"]))
            source.graph.node[i + 2].input[0] = f"a{i}"  # the Sigmoid's
    column = RNG.standard_normal((LEAVES - 1, 1)).astype(np.float32)
    source.graph.initializer.append(numpy_helper.from_array(column, "column"))
    assert operators_of(source, feeds(LEAVES - 1)).count("Sigmoid") == 3


def test_what_takes_very_many_steps_is_left() -> None:
    steps = " ".join(f"v{i + 1} = Mul(v{i}, one)" for i in range(400))
    source = model(
        f"g (float[n, {LEAVES}] x) => (float[n, {CLASSES}] y) <float one = {{1.0}}> "
        f"{{ v0 = Sigmoid(x) {steps} y = MatMul(v400, l) }}",
        17,
    )
    source.graph.initializer.append(numpy_helper.from_array(np.ones((LEAVES, CLASSES), np.float32), "l"))
    assert "Sigmoid" in operators_of(source, {"x": np.ones((2, LEAVES), np.float32)})


def test_few_numbers_between_layers_stay_between_them() -> None:
    source = forest(LEVELS, STACKED)
    for node in source.graph.node:
        if node.op_type == "Gemm" and node.input[0] == "x":
            node.input[0] = "wide"
    for x, w, y, shape in (("x", "u", "few", (WIDTH, 2)), ("few", "v", "wide", (2, WIDTH))):
        source.graph.node.insert(0 if y == "few" else 1, onnx.helper.make_node("MatMul", [x, w], [y]))
        source.graph.initializer.append(numpy_helper.from_array(RNG.standard_normal(shape).astype(np.float32), w))
    found = operators_of(source, feeds())
    assert (found.count("MatMul"), found.count("Sigmoid")) == (3, 1)
