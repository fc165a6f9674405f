"""Products of columns that are joined are computed side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from superopt.onnx_io import load, understand
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

X = np.random.default_rng(0).standard_normal((5, 6)).astype(np.float32)
PAIRS = [(0, 1), (0, 0), (5, 2), (3, 4), (1, 5)]


def joined(parts: Iterable[str], more: str = "", axis: int = 1) -> str:
    """A model that joins what it computes by some nodes, the results of which are p0, p1 and so on."""
    texts = list(parts)
    names = ", ".join(f"p{i}" for i in range(len(texts)))
    return f"""g (float[n, 6] x) => (float[a, b] y) {{
        axes = Constant<value_ints = [1]>()
        {more} {" ".join(texts)}
        y = Concat<axis = {axis}>({names}) }}"""


def of_columns(number: int, columns: tuple[int, ...], x: str = "x") -> str:
    """A product as skl2onnx writes it."""
    return f"""i{number} = Constant<value_ints = [{", ".join(map(str, columns))}]>()
        c{number} = Gather<axis = 1>({x}, i{number})
        p{number} = ReduceProd<axes = [1], keepdims = 1>(c{number})"""


def of_slices(number: int, columns: tuple[int, int]) -> str:
    """A product of two, as people write it."""
    first, second = (f"Slice(x, b{c}, b{c + 1}, axes)" for c in columns)
    return f"f{number} = {first} s{number} = {second} p{number} = Mul(f{number}, s{number})"


BOUNDS = " ".join(f"b{c} = Constant<value_ints = [{c}]>()" for c in range(7))
CASES = {
    "of two": (joined(of_columns(i, p) for i, p in enumerate(PAIRS)), ["Gather", "Gather", "Mul"]),
    "of three": (joined(of_columns(i, (*p, 2)) for i, p in enumerate(PAIRS)), ["Gather"] * 3 + ["Mul"] * 2),
    "of slices": (joined((of_slices(i, p) for i, p in enumerate(PAIRS)), BOUNDS, -1), ["Gather", "Gather", "Mul"]),
    "behind single columns, and beside what is none": (
        joined(
            ["p0 = ReduceSum<keepdims = 1>(x, axes)"]
            + [of_columns(i, (i,)) for i in range(1, 6)]
            + [of_columns(i + 6, p) for i, p in enumerate(PAIRS)]
        ),
        ["ReduceSum", "Gather", "Gather", "Gather", "Mul"],
    ),
    "of columns of chosen columns": (
        joined(
            (of_columns(i, (p[0] % 4, p[1] % 4), "z") for i, p in enumerate(PAIRS)),
            "j = Constant<value_ints = [5, 3, 0, 1]>() z = Gather<axis = 1>(x, j)",
        ),
        ["Gather", "Gather", "Mul"],
    ),
    "of what is computed": (
        joined((of_columns(i, p, "z") for i, p in enumerate(PAIRS)), "z = Tanh(x)"),
        ["Tanh", "Gather", "Gather", "Mul"],
    ),
}
STAYS = {
    "too few": joined(of_columns(i, p) for i, p in enumerate(PAIRS[:3])),
    "single columns": joined(of_columns(i, (i,)) for i in range(6)),
    "along rows": joined((of_columns(i, p) for i, p in enumerate(PAIRS)), axis=0),
    "columns of different values": joined(
        (of_columns(i, p, "xz"[i % 2]) for i, p in enumerate(PAIRS)), "z = Tanh(x)"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "kinds"), CASES.values(), ids=CASES)
def test_products_are_computed_side_by_side(text: str, kinds: list[str]) -> None:
    given = model(text, 13)
    program = understand(load(given))
    made = ir.to_proto(program.model)
    onnx.checker.check_model(made, full_check=True)
    assert program.otherwise
    assert Counter(n.op_type for n in made.graph.node if n.op_type != "Constant") == Counter([*kinds, "Concat"])
    assert (made.graph.input, made.graph.output) == (given.graph.input, given.graph.output)
    (before,), (after,) = run(given, {"x": X}), run(made, {"x": X})
    np.testing.assert_allclose(before, after, rtol=1e-6)


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_other_joins_stay(text: str) -> None:
    assert not understand(load(model(text, 13))).otherwise
