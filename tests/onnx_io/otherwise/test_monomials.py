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
        ["ReduceSum", "Gather", "Gather", "Gather", "Mul", "Concat"],
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
    assert Counter(n.op_type for n in made.graph.node if n.op_type != "Constant") == Counter(kinds)
    assert (made.graph.input, made.graph.output) == (given.graph.input, given.graph.output)
    (before,), (after,) = run(given, {"x": X}), run(made, {"x": X})
    np.testing.assert_allclose(before, after, rtol=1e-6)


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_other_joins_stay(text: str) -> None:
    assert not understand(load(model(text, 13))).otherwise


def test_columns_are_of_the_value_that_the_join_sees_and_not_of_one_in_a_loop_by_the_same_name() -> None:
    turn = "b (int64 i, bool c, float[n, 6] z) => (bool o, float[n, 6] q) { o = Identity(c) q = Add(z, z) }"
    text = joined((of_columns(i, p, "z") for i, p in enumerate(PAIRS)), "z = Relu(x) t = Constant<value_int = 2>()")
    text = text.replace("b] y)", "b] y, float[n, 6] w)").replace("p4) }", f"p4) w = Loop<body = {turn}>(t, , z) }}")
    given = model(text, 13)
    program = understand(load(given))
    assert program.otherwise
    for before, after in zip(run(given, {"x": X}), run(ir.to_proto(program.model), {"x": X}), strict=True):
        np.testing.assert_array_equal(before, after)


def nested(number: int) -> str:
    """A product of a column with one of two others."""
    chosen = " ".join(f"{n}{number} = Slice(x, b{c}, b{c + 1}, axes)" for c, n in enumerate("uvw"))
    return f"{chosen} m{number} = Mul(v{number}, w{number}) p{number} = Mul(u{number}, m{number})"


def test_what_is_multiplied_first_is_so_side_by_side() -> None:
    given = model(joined(map(nested, range(4)), BOUNDS), 13)
    program = understand(load(given))
    assert program.otherwise
    x = np.full((5, 6), 1e30, np.float32)
    x[:, 0] = 1e-30  # the product of the others is infinite, and with this one first it would not be
    (before,), (after,) = (run(m, {"x": x}) for m in (given, ir.to_proto(program.model)))
    np.testing.assert_array_equal(before, after)


def test_products_in_different_orders_are_not_side_by_side() -> None:
    parts = [nested(i) if i % 2 else of_columns(i, (0, 1, 2)) for i in range(6)]
    assert not understand(load(model(joined(parts, BOUNDS), 13))).otherwise


def test_a_join_may_be_of_columns_of_another_one() -> None:
    first = " ".join(of_columns(i + 10, p) for i, p in enumerate(PAIRS))
    first += " z = Concat<axis = 1>(p10, p11, p12, p13, p14)"
    given = model(joined((of_columns(i, (p[0] % 5, p[1] % 5), "z") for i, p in enumerate(PAIRS)), first), 13)
    made = ir.to_proto(understand(load(given)).model)
    assert sum(n.op_type == "Mul" for n in made.graph.node) == 2
    (before,), (after,) = run(given, {"x": X}), run(made, {"x": X})
    np.testing.assert_allclose(before, after, rtol=1e-6)
