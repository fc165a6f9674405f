"""Constants that say the same again and again are told once, and what is computed stays the same."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from superopt.onnx_io import load, understand
from superopt.onnx_io.otherwise.told_once import LARGE, LEAST, LEAST_RUN, LEAST_RUN_OF_LARGE, LEAST_TIMES
from tests.onnx_io.models import model
from tests.onnx_io.networks import Array
from tests.onnx_io.otherwise.reading import operators_of

RNG = np.random.default_rng(0)


def by(op: str, data: Array, shape: str = "2, 3, 8, 128", turned: bool = False, after: str = "") -> onnx.ModelProto:
    """A model of one operator on a value of a shape and a constant."""
    inputs = "c, x" if turned else "x, c"
    last = f"y = {after}(a)" if after else "y = Identity(a)"
    made = model(f"g (float[{shape}] x) => (float[{shape}] y) {{ a = {op}({inputs}) {last} }}", 17)
    made.graph.initializer.append(numpy_helper.from_array(data, "c"))
    return made


def numbers(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def repeated(*shape: int, to: tuple[int, ...] = (2, 3, 8, 128)) -> Array:
    return np.broadcast_to(numbers(*shape), to).copy()


def read(source: onnx.ModelProto, shape: tuple[int, ...] = (2, 3, 8, 128)) -> list[tuple[int, ...]]:
    """The shapes of the constants that a model has as it is read, which computes exactly the same."""
    operators_of(source, {"x": numbers(*shape)}, rounds=False)
    made = ir.to_proto(understand(load(source)).model)
    used = {name for n in made.graph.node for name in n.input}
    held = {n.output[0]: n.attribute[0].t for n in made.graph.node if n.op_type == "Constant"}
    held |= {t.name: t for t in made.graph.initializer}
    return [tuple(t.dims) for name, t in held.items() if name in used]


@pytest.mark.parametrize("op", ["Sub", "Mul", "Div", "Max"])
@pytest.mark.parametrize("turned", [False, True], ids=["behind", "in front"])
def test_what_is_the_same_along_an_axis_is_told_once(op: str, turned: bool) -> None:
    assert read(by(op, repeated(2, 3, 8, 1), turned=turned)) == [(2, 3, 8, 1)]


def test_so_is_what_is_added_to_much() -> None:
    shape = (LARGE // 64, 64)
    source = by("Add", repeated(1, 64, to=shape), f"{shape[0]}, 64")
    assert read(source, shape) == [(1, 64)]


@pytest.mark.parametrize(
    ("own", "to"),
    [
        ((1, 1, 8, 128), (2, 4, 8, 128)),
        ((2, 1, 1, 128), (2, 3, 8, 128)),
        ((8, 1), (16, 8, 128)),
    ],
    ids=["first axes", "middle axes", "of fewer axes"],
)
def test_along_whichever_axes(own: tuple[int, ...], to: tuple[int, ...]) -> None:
    shape = (2, *to) if len(to) < 4 else to
    data = np.broadcast_to(numbers(*own), to).copy()
    assert read(by("Sub", data, ", ".join(map(str, shape))), shape) == [(*(1,) * (len(to) - len(own)), *own)]


def test_rows_of_what_is_large_may_be_shorter() -> None:
    rows, run = LARGE // LEAST_RUN_OF_LARGE + 1, LEAST_RUN_OF_LARGE
    assert read(by("Sub", repeated(rows, 1, to=(rows, run)), f"{rows}, {run}"), (rows, run)) == [(rows, 1)]


def test_what_a_model_repeats_itself_is_told_once() -> None:
    """As scripts expand weights, which are then moved."""
    source = model(
        "g (float[1, 8, 16, 128] x) => (float[1, 8, 16, 128] y) <int64[3] s = {128, 8, 16}, int64[1] z = {0}> "
        "{ e = Expand(c, s) t = Transpose<perm = [1, 2, 0]>(e) u = Unsqueeze(t, z) y = Sub(x, u) }",
        17,
    )
    source.graph.initializer.append(numpy_helper.from_array(numbers(8, 16), "c"))
    assert (1, 8, 16, 1) in read(source, (1, 8, 16, 128))


def test_how_many_rows_there_are_may_be_open() -> None:
    assert read(by("Sub", repeated(1, 3, 8, 1, to=(1, 3, 8, 128)), "n, 3, 8, 128")) == [(1, 3, 8, 1)]


SMALL = numbers(2, 3, 8, 128)
SIGNS = np.copysign(np.float32(0), SMALL)
SIGNS[..., 0] = 1
LEFT = {
    "zeros of two signs": by("Sub", SIGNS),
    "what differs": by("Sub", SMALL),
    "what is seldom repeated": by("Sub", repeated(2, 3, 8, 128, to=(2, 3, 8, 128))),
    "one number": by("Sub", repeated(1, 1, 1, 1)),
    "few elements": by(
        "Sub", repeated(1, 1, 1, 128, to=(1, 1, LEAST // 128 - 1, 128)), f"1, 1, {LEAST // 128 - 1}, 128"
    ),
    "what is told fewer times": by(
        "Sub", repeated(1, 8, 128, to=(LEAST_TIMES - 1, 8, 128)), f"{LEAST_TIMES - 1}, 8, 128"
    ),
    "short rows of the same": by("Sub", repeated(256, 1, to=(256, LEAST_RUN - 1)), f"256, {LEAST_RUN - 1}"),
    "short rows that are repeated": by(
        "Sub", repeated(1, LEAST_RUN - 1, to=(256, LEAST_RUN - 1)), f"256, {LEAST_RUN - 1}"
    ),
    "what is added to little": by("Add", repeated(2, 3, 8, 1)),
    "masks": by("Add", repeated(1, 128, to=(LARGE // 128, 128)), f"{LARGE // 128}, 128", after="Softmax"),
}


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_others_are_left(source: onnx.ModelProto) -> None:
    assert not understand(load(source)).otherwise


def test_what_gives_its_size_to_the_result_is_left() -> None:
    source = model("g (float[3, 8, 1] x) => (float[3, 8, 128] y) { y = Sub(x, c) }", 17)
    source.graph.initializer.append(numpy_helper.from_array(repeated(3, 1, 1, to=(3, 8, 128)), "c"))
    assert read(source, (3, 8, 1)) == [(3, 1, 128)]
