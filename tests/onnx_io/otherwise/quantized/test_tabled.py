"""Functions of bytes that take many operators are looked up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.onnx_io.otherwise.quantized.quantized_nodes import Held, model, pair
from tests.onnx_io.otherwise.reading import gain, operators_of

SHAPE = (1, 32, 512)
LOOKED_UP = ["QuantizeLinear", "Cast", "Reshape", "GatherElements", "Reshape", "DequantizeLinear", "Softmax"]
Step = tuple[str, Sequence[str], str]

ERF: Sequence[Step] = (
    ("Div", ("a", "root"), "b"),
    ("Erf", ("b",), "c"),
    ("Add", ("c", "one"), "d"),
    ("Mul", ("a", "d"), "e"),
    ("Mul", ("e", "half"), "g"),
)
TANH: Sequence[Step] = (
    ("Pow", ("a", "three"), "b"),
    ("Mul", ("b", "little"), "c"),
    ("Add", ("a", "c"), "d"),
    ("Mul", ("d", "slope"), "e"),
    ("Tanh", ("e",), "f"),
    ("Add", ("f", "one"), "h"),
    ("Mul", ("a", "h"), "i"),
    ("Mul", ("half", "i"), "g"),
)
NUMBERS = {"root": 2**0.5, "one": 1, "half": 0.5, "three": 3, "little": 0.044715, "slope": 0.7978845608}


def function(
    steps: Sequence[Step],
    quantized: Sequence[str] = (),
    kind: type[np.generic] = np.uint8,
    shape: Sequence[int | str] = SHAPE,
    shown: str = "",
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Steps from `a` to `g` between two pairs, some of whose values are quantized too, and inputs of all bytes."""
    held: Held = {name: np.float32(number) for name, number in NUMBERS.items() if any(name in s[1] for s in steps)}
    low = np.iinfo(kind).min
    nodes = pair("x", "a", held, 0.0517, kind(117 + low))
    for kind_of, read, made in steps:
        nodes.append(helper.make_node(kind_of, [f"{r}_" if r in quantized else r for r in read], [made]))
        if made in quantized:
            nodes += pair(made, f"{made}_", held, 0.0371, kind(101 + low))
    nodes += [*pair("g", "z", held, 0.0413, kind(9 + low)), helper.make_node("Softmax", ["z"], ["y"], axis=-1)]
    made = model(nodes, held, shape, shape)
    if shown:
        made.graph.output.append(helper.make_tensor_value_info(shown, onnx.TensorProto.FLOAT, shape))
    every = (np.arange(np.prod(SHAPE)) % 256).astype(np.float32)
    return made, {"x": ((every - 117) * np.float32(0.0517)).reshape(SHAPE)}


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize(
    "given",
    [(ERF, ()), (ERF, ("c", "d", "e")), (TANH, ()), (TANH, ("b", "e", "h"))],
    ids=["erf", "erf, pairs", "tanh", "tanh, pairs"],
)
def test_a_gelu_of_bytes_is_looked_up(given: tuple[Sequence[Step], Sequence[str]], kind: type[np.generic]) -> None:
    assert operators_of(*function(*given, kind=kind), rounds=False) == LOOKED_UP


def test_bytes_with_a_sign_are_looked_up_where_they_stay_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("superopt.onnx_io.otherwise.quantized.unsigned_values.all_are_exact", lambda _: False)
    assert operators_of(*function(ERF, kind=np.int8), rounds=False) == LOOKED_UP


@pytest.mark.parametrize("shape", [("n", 32, 512), ("n", "m", 512), (1, 32, "k")])
def test_sizes_may_be_symbols(shape: Sequence[int | str]) -> None:
    found = operators_of(*function(ERF, shape=shape), rounds=False)
    assert [kind for kind in found if kind != "Shape"] == LOOKED_UP


@pytest.mark.parametrize("shown", ["e", "d_"])
def test_what_is_shown_on_the_way_stays(shown: str) -> None:
    assert "GatherElements" not in operators_of(*function(ERF, ["d"], shown=shown), rounds=False)


SHORT: Sequence[Step] = (("Sigmoid", ("a",), "s"), ("Mul", ("a", "s"), "g"))
OF_TWO: Sequence[Step] = (*ERF[:-1], ("Mul", ("e", "x"), "g"))


@pytest.mark.parametrize("steps", [SHORT, OF_TWO], ids=["short", "of something else too"])
def test_others_stay(steps: Sequence[Step]) -> None:
    assert "GatherElements" not in operators_of(*function(steps), rounds=False)


def test_many_that_are_multiplied_by_themselves_are_read_soon() -> None:
    names = ["a", *(f"m{i}" for i in range(40)), "g"]
    steps = [("Mul", (one, one), other) for one, other in pairwise(names)]
    made, fed = function(steps)
    assert "GatherElements" not in operators_of(made, {"x": fed["x"] * 0}, rounds=False)


def test_gelus_are_faster_so() -> None:
    assert gain(*function(TANH, ("b", "c", "d", "e", "f", "h", "i"))) > 1.2
