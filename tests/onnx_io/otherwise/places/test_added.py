"""Rows that are added up in few computed places are a product with rows of ones and zeros."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.onnx_io.models import model
from tests.onnx_io.otherwise.reading import gain, operators_of

DRAW = np.random.default_rng(0)


def edges(
    nodes: int, many: int | str, shape: tuple[int, ...], start: str = "zero", repeat: str = "Expand"
) -> onnx.ModelProto:
    """What edges say, added up at their nodes, to what is there: nothing, or what is given."""
    each = ", ".join(map(str, shape))
    ones = ", ".join("1" for _ in shape)
    to = "Shape(m)" if repeat == "Expand" else "Concat<axis=0>(one, widths)"
    return model(
        f"""g (int64[{many}] i, float[{many}, {each}] m, float[{nodes}, {each}] x) => (float[{nodes}, {each}] y)
        <int64[{1 + len(shape)}] column = {{-1, {ones}}}, int64[{1 + len(shape)}] all = {{{nodes}, {each}}},
         int64[1] one = {{1}}, int64[{len(shape)}] widths = {{{each}}}> {{
        zero = ConstantOfShape(all)
        c = Reshape(i, column)
        to = {to}
        n = {repeat}(c, to)
        y = ScatterElements<axis=0, reduction="add">({start}, n, m) }}""",
        18,
    )


def fed(nodes: int, many: int, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    return {
        "i": DRAW.integers(-nodes, nodes, many),
        "m": DRAW.standard_normal((many, *shape)).astype(np.float32),
        "x": DRAW.standard_normal((nodes, *shape)).astype(np.float32),
    }


@pytest.mark.parametrize("start", ["zero", "x"])
@pytest.mark.parametrize("repeat", ["Expand", "Tile"])
@pytest.mark.parametrize("shape", [(64,), (4, 16)])
@pytest.mark.parametrize("many", [90, "E"])
def test_rows_of_edges_are_added_up_at_few_nodes_by_a_product(
    many: int | str, shape: tuple[int, ...], repeat: str, start: str
) -> None:
    made = operators_of(edges(30, many, shape, start, repeat), fed(30, 90, shape))
    assert {"OneHot", "MatMul"} <= set(made)
    assert "ScatterElements" not in made
    assert ("Add" in made) == (start == "x")


@pytest.mark.parametrize(("nodes", "many", "shape"), [(300, 900, (16,)), (30, 20, (16,)), (30, 900, (1,))])
def test_rows_stay_one_by_one_where_nodes_are_many_or_rows_short_or_few(
    nodes: int, many: int, shape: tuple[int, ...]
) -> None:
    assert "ScatterElements" in operators_of(edges(nodes, many, shape), fed(nodes, many, shape))


def test_rows_of_each_of_a_batch_are_added_up_at_the_same_nodes() -> None:
    source = model(
        """g (int64[90] i, float[3, 90, 16] m) => (float[3, 30, 16] y)
        <int64[2] column = {-1, 1}, int64[3] each = {3, 90, 16}, int64[3] all = {3, 30, 16}> {
        zero = ConstantOfShape(all)
        c = Reshape(i, column)
        n = Expand(c, each)
        y = ScatterElements<axis=1, reduction="add">(zero, n, m) }""",
        18,
    )
    given = fed(30, 90, (16,))
    feeds = {"i": given["i"], "m": DRAW.standard_normal((3, 90, 16)).astype(np.float32)}
    made = operators_of(source, feeds)
    assert set(made) == {"Reshape", "OneHot", "MatMul"}


def test_what_is_put_and_not_added_stays() -> None:
    source = edges(30, 90, (16,))
    source.graph.node[-1].attribute[1].s = b"max"
    assert "ScatterElements" in operators_of(source, fed(30, 90, (16,)))


def test_numbers_of_64_bits_stay_as_no_runtime_has_such_rows() -> None:
    source, given = edges(30, 90, (64,), "x"), fed(30, 90, (64,))
    for value in (*source.graph.input[1:], *source.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    feeds = {name: array if name == "i" else array.astype(np.float64) for name, array in given.items()}
    assert "ScatterElements" in operators_of(source, feeds)


def test_edges_of_a_molecule_are_added_up_sooner() -> None:
    assert gain(edges(30, 870, (64,)), fed(30, 870, (64,))) > 1.5
