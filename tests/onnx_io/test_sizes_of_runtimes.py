"""What is known of sizes that a model computes is what onnxruntime makes of them, in random chains and in odd forms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superopt.onnx_io import load, understand
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

SCALARS = ("Add", "Sub", "Mul", "Min", "Max", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")


@st.composite
def chains(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Random size arithmetic over the shapes of two inputs; every value is an output. Vectors of three and scalars."""
    lines = ["sx = Shape(x)", "sz = Shape(z)", "zz = Gather(sz, pick)"]
    vectors, scalars, truths = ["sx", "zz", "c"], ["two", "minus"], []
    ends = []

    def add(op: str, inputs: Sequence[str], kept: list[str], attributes: str = "") -> None:
        name = f"v{len(lines)}"
        lines.append(f"{name} = {op}{attributes}({', '.join(inputs)})")
        kept.append(name)
        if kept is vectors or kept is scalars:
            ends.append(f"int64[3] {name}" if kept is vectors else f"int64 {name}")

    for i in range(3):
        add("Gather", ["sx", f"i{i}"], scalars)
    sizes = scalars[2:]
    for _ in range(draw(st.integers(1, 8))):
        pool = draw(st.sampled_from([vectors, scalars]))
        kind = draw(st.sampled_from(["binary", "divide", "floats", "gather", "slice", "join", "where", "product"]))
        one, other = draw(st.sampled_from(pool)), draw(st.sampled_from([*pool, *scalars]))
        if kind == "binary":
            op = draw(st.sampled_from(SCALARS))
            if op in SCALARS[:5]:
                add(op, [one, other], pool)
            else:
                add(op, [one, other], truths if pool is vectors else [])
        elif kind == "divide":
            add(draw(st.sampled_from(["Div", "Mod"])), [one, draw(st.sampled_from([*sizes, "two"]))], pool)
        elif kind == "floats":
            top, bottom, rounded = [], [], []
            add("Cast", [one], top, "<to = 1>")
            add("Cast", [draw(st.sampled_from([*sizes, "two"]))], bottom, "<to = 1>")
            add("Div", top + bottom, rounded)
            add(draw(st.sampled_from(["Floor", "Ceil", "Identity"])), rounded[:1], rounded)
            add("Cast", rounded[1:], pool, "<to = 7>")
        elif kind == "gather":
            add("Gather", [draw(st.sampled_from(vectors)), f"i{draw(st.integers(0, 2))}"], scalars)
        elif kind == "slice":
            parts: list[str] = []
            vector = draw(st.sampled_from(vectors))
            add("Slice", [vector, "at1", "end", "at0"], parts)
            add("Slice", [vector, "at0", "at1"], parts)
            add("Concat", parts, vectors, "<axis = 0>")
        elif kind == "join":
            three: list[str] = []
            for name in (draw(st.sampled_from(scalars)) for _ in range(3)):
                add("Unsqueeze", [name, "at0"], three)
            add("Concat", three, vectors, "<axis = 0>")
        elif kind == "where" and truths:
            add("Where", [draw(st.sampled_from(truths)), draw(st.sampled_from(vectors)), other], vectors)
        elif kind == "product":
            add("ReduceProd", [draw(st.sampled_from(vectors))], scalars, "<keepdims = 0>")
    return (
        f"""g (float[P, Q, 5] x, float[R, Q] z) => ({", ".join(ends)})
        <int64 i0 = {{0}}, int64 i1 = {{1}}, int64 i2 = {{2}}, int64 two = {{2}}, int64 minus = {{-1}},
         int64[3] c = {{-1, 2, 5}}, int64[3] pick = {{1, 0, 1}}, int64[1] at0 = {{0}}, int64[1] at1 = {{1}},
         int64[1] end = {{9223372036854775807}}> {{ {" ".join(lines)} }}""",
        [end.split()[1] for end in ends],
    )


@settings(max_examples=300, deadline=None)
@given(chain=chains(), values=st.tuples(*[st.integers(1, 9)] * 3))
def test_random_chains_agree_with_onnxruntime_at_random_sizes(
    chain: tuple[str, list[str]], values: tuple[int, int, int]
) -> None:
    text, ends = chain
    source = model(text)
    program = understand(load(source))
    symbols = dict(zip("PQR", values, strict=True))
    p, q, r = values
    found = run(source, {"x": np.zeros((p, q, 5), np.float32), "z": np.zeros((r, q), np.float32)})
    seen = 0
    for name, expected in zip(ends, found, strict=True):
        if name in program.sizes or name in program.constants:
            ours = program.sizes.data(name, symbols) if name in program.sizes else program.data(name)
            np.testing.assert_allclose(ours, expected, rtol=1e-6)
            assert (ours.dtype, ours.shape) == (expected.dtype, expected.shape)
            seen += 1
    assert seen >= 3, "nothing of it was known"


AS_RUNTIMES = {
    "the numbers of a shape backwards from before its first": (
        """{ s = Shape(x) to = Slice(s, before, least, zero, minus) }""",
        [9],
    ),
    "the numbers of a shape backwards to the largest number": (
        "{ s = Shape(x) to = Slice(s, minus, most, zero, minus) }",
        [4, 9],
    ),
    "a product along no axes": ("{ s = Shape<end = 2>(x) to = ReduceProd<noop_with_empty_axes = 1>(s) }", [9, 4]),
    "a sum beyond 64 bits": ("{ s = Shape<end = 1>(x) j = Concat<axis = 0>(s, most) to = Add(j, j) }", [18, -2]),
    "a number cast to fewer bits than it has": (
        """{ s = Shape<end = 1>(x) j = Concat<axis = 0>(s, most) c = Cast<to = 6>(j) to = Cast<to = 7>(c) }""",
        [9, -1],
    ),
    "a number that floats round": (
        """{ s = Shape<end = 1>(x) j = Concat<axis = 0>(s, odd) c = Cast<to = 1>(j) to = Cast<to = 7>(c) }""",
        [9, 2**24],
    ),
}


@pytest.mark.parametrize(("nodes", "expected"), AS_RUNTIMES.values(), ids=AS_RUNTIMES)
def test_what_is_known_of_sizes_is_what_runtimes_make_of_them(nodes: str, expected: Sequence[int]) -> None:
    source = model(
        f"""g (float[S, 4] x) => (int64[N] to)
        <int64[1] zero = {{0}}, int64[1] minus = {{-1}}, int64[1] before = {{-10}}, int64[1] odd = {{16777217}},
         int64[1] most = {{9223372036854775807}}, int64[1] least = {{-9223372036854775807}}> {nodes}""",
        18,
    )
    assert run(source, {"x": np.zeros((9, 4), np.float32)})[0].tolist() == expected
    program = understand(load(source))
    assert "to" not in program.sizes or program.sizes.data("to", {"S": 9}).tolist() == expected
    assert "to" not in program.constants or program.data("to").tolist() == expected
