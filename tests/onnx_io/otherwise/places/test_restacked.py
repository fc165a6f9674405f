"""Places of one value that are joined one after the other are the value, with its axes in another order."""

from __future__ import annotations

import numpy as np
import pytest

from tests.onnx_io.models import model
from tests.onnx_io.otherwise.reading import operators_of

STEPS = 6
NUMBERS = ", ".join(f"int64 i{t} = {{{t if t % 2 else t - STEPS}}}" for t in range(STEPS))
HELD = f"<{NUMBERS}, int64[1] first = {{0}}, int64[1] second = {{1}}, int64[3] shape = {{2, 1, 3}}>"


def joined(
    each: str, join: str, order: str = "012345", rows: str = "2", more: str = "", axis: int = 0, rank: int = 3
) -> str:
    """A model that takes places of a series along an axis, and joins what is made of each."""
    nodes = " ".join(f"t{t} = Gather<axis = {axis}>(s, i{t}) " + each.format(t=t) for t in range(STEPS))
    joins, dims = join.format(", ".join(f"{'p' if each else 't'}{t}" for t in order)), "k, m, n"[: 3 * rank - 2]
    sizes = [f"{STEPS}, {rows}, 3", f"{rows}, {STEPS}, 3"][axis]
    return f"g (float[{sizes}] x) => (float[{dims}] y) {HELD} {{ s = Exp(x) {nodes} {more} y = {joins} }}"


def read(text: str) -> list[str]:
    """The operators of a model as it is read."""
    source = model(text)
    shape = [d.dim_value or 2 for d in source.graph.input[0].type.tensor_type.shape.dim]
    feeds = {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    return operators_of(source, feeds, rounds=False)


SPREAD = "p{t} = Unsqueeze(t{t}, second)"
JOINED = {
    "steps behind rows": (joined(SPREAD, "Concat<axis = 1>({})"), ["Exp", "Transpose"]),
    "in another order": (joined(SPREAD, "Concat<axis = 1>({})", "543210"), ["Exp", "Gather", "Transpose"]),
    "some of them": (joined(SPREAD, "Concat<axis = 1>({})", "0123"), ["Exp", "Gather", "Transpose"]),
    "of any number of rows": (joined(SPREAD, "Concat<axis = 1>({})", rows="N"), ["Exp", "Transpose"]),
    "by reshaping": (joined("p{t} = Reshape(t{t}, shape)", "Concat<axis = 1>({})"), ["Exp", "Transpose"]),
    "that were behind rows": (
        joined("p{t} = Unsqueeze(t{t}, first)", "Concat<axis = 0>({})", axis=1), ["Exp", "Transpose"]),
    "along rows": (joined("", "Concat<axis = 0>({})", rank=2), ["Exp", "Reshape"]),
    "along what each has": (joined("", "Concat<axis = -1>({})", rank=2), ["Exp", "Transpose", "Reshape"]),
    "behind several others": (
        joined("", "Concat<axis = 0>(w, v, {})", more="w = Neg(t3) v = Abs(t3)", rank=2),
        ["Exp", "Gather", "Neg", "Abs", "Reshape", "Concat"]),
    "behind something else": (
        joined(SPREAD, "Concat<axis = 1>(z, {})", more="w = Neg(t3) z = Unsqueeze(w, second)"),
        ["Exp", "Gather", "Neg", "Unsqueeze", "Transpose", "Concat"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "operators"), JOINED.values(), ids=JOINED)
def test_they_are_joined_once(text: str, operators: list[str]) -> None:
    assert read(text) == operators


STAYING = {
    "of other values": joined("p{t} = Neg(t{t})", "Concat<axis = 0>({})", rank=2),
    "few of them": joined(SPREAD, "Concat<axis = 1>({})", "012"),
    "spread elsewhere": joined("p{t} = Unsqueeze(t{t}, first)", "Concat<axis = 1>({})"),
    "of sizes that a Reshape cannot tell": joined("", "Concat<axis = 1>({})", rows="N", rank=2),
}


@pytest.mark.parametrize("text", STAYING.values(), ids=STAYING)
def test_others_are_left(text: str) -> None:
    assert "Concat" in read(text)


def test_what_has_a_name_of_its_own_keeps_it() -> None:
    """All places of an input, as they are."""
    text = (
        joined("p{t} = Unsqueeze(t{t}, first)", "Concat<axis = 0>({})")
        .replace("s = Exp(x)", "")
        .replace("(s, i", "(x, i")
    )
    assert read(text) == ["Identity"]
