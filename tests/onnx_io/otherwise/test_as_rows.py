"""Columns beside products with matrices are computed as rows, and the result is the same."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.onnx_io.models import model
from tests.onnx_io.networks import Array
from tests.onnx_io.otherwise.reading import operators_of

SHAPES = {
    "v": (3, 6),
    "w": (6, 3),
    "b": (6, 1),
    "d": (1, 6, 1),
    "k": (),
    "u": (6, 6),
    "r": (1, 6),
    "o": (1,),
    "m": (4, 3, 6),
}


def columns(nodes: str, begin: str = "c = Unsqueeze(x, last)", rows: str = "4", opset: int = 17) -> onnx.ModelProto:
    """A model of rows x, which become columns c, and nodes that give y of any shape."""
    made = model(
        f"g (float[{rows}, 6] x) => (float[{rows}, ...] y) <int64[1] last = {{-1}}, int64[1] two = {{2}}> "
        f"{{ {begin} {nodes} }}".replace(", ...]", ", n, k]" if "y = Identity" in nodes else ", n]"),
        opset,
    )
    rng, used = np.random.default_rng(0), {name for node in made.graph.node for name in node.input}
    for name, shape in SHAPES.items():
        if name in used:
            made.graph.initializer.append(numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name))
    return made


LAYERS = "h = MatMul(v, c) t = Tanh(h) z = MatMul(w, t)"


def feeds(rows: int = 4) -> dict[str, Array]:
    return {"x": np.random.default_rng(1).standard_normal((rows, 6)).astype(np.float32)}


ROWS = {
    "layers": f"{LAYERS} y = Squeeze(z, last)",
    "axes from the first": f"{LAYERS} y = Squeeze(z, two)",
    "a row that is added": f"{LAYERS} a = Add(z, b) y = Squeeze(a, last)",
    "a row with all axes": f"{LAYERS} a = Add(d, z) y = Squeeze(a, last)",
    "a number": f"{LAYERS} a = Mul(z, k) y = Squeeze(a, last)",
    "a number with an axis": f"{LAYERS} a = Mul(z, o) y = Squeeze(a, last)",
    "a cross layer": f"{LAYERS} a = Add(z, b) p = Mul(c, a) q = Add(p, c) y = Squeeze(q, last)",
    "two of them": f"{LAYERS} p = Mul(c, z) q = Add(p, c) i = MatMul(v, q) j = MatMul(w, i) y = Squeeze(j, last)",
    "what is computed before": "e = Exp(c) h = MatMul(v, e) z = MatMul(w, h) y = Squeeze(z, last)",
    "the larger of two": f"{LAYERS} s = Max(z, c) y = Squeeze(s, last)",
}


@pytest.mark.parametrize("nodes", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("rows", ["4", "1", "n"])
def test_what_is_computed_of_columns_is_of_rows(nodes: str, rows: str) -> None:
    found = operators_of(columns(nodes, rows=rows), feeds(1 if rows == "1" else 4))
    assert not {"Squeeze", "Unsqueeze"} & set(found)


@pytest.mark.parametrize("opset", [11, 12])
def test_axes_are_told_as_an_opset_has_them(opset: int) -> None:
    nodes = "h = MatMul(v, c) z = MatMul(w, h) y = Squeeze<axes = [2]>(z)"
    found = operators_of(columns(nodes, "c = Unsqueeze<axes = [2]>(x)", opset=opset), feeds())
    assert [op for op in found if op != "Transpose"] == ["MatMul", "MatMul"], "of matrices that are turned once"


def test_columns_that_something_else_reads_are_there() -> None:
    found = operators_of(columns(f"{LAYERS} y = Identity(z)"), feeds())
    assert (found.count("Unsqueeze"), found.count("Squeeze")) == (1, 0)


def test_columns_of_something_else_are_squeezed() -> None:
    found = operators_of(
        columns("s = Softmax<axis = 1>(c) h = MatMul(v, s) z = MatMul(w, h) y = Squeeze(z, last)"), feeds()
    )
    assert (found.count("Unsqueeze"), found.count("Squeeze")) == (1, 1)


LEFT = {
    "one product": "z = MatMul(u, c) y = Squeeze(z, last)",
    "several columns": "e = Concat<axis = 2>(c, c) h = MatMul(v, e) z = MatMul(w, h) y = Flatten(z)",
    "matrices of each": "h = MatMul(m, c) e = Concat<axis = 1>(h, h) z = MatMul(u, e) y = Squeeze(z, last)",
}


@pytest.mark.parametrize("nodes", LEFT.values(), ids=LEFT)
def test_others_are_left(nodes: str) -> None:
    source = columns(nodes)
    assert operators_of(source, feeds()) == [n.op_type for n in source.graph.node]
