"""Parts that are put in their places one after the other are beside each other; what is put elsewhere stays."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import superopt
from superopt.api import Options
from tests.onnx_io.models import model
from tests.onnx_io.networks import assert_close, run
from tests.onnx_io.otherwise.reading import operators_of

SHAPE = (2, 4, 3)
FEEDS = {
    "x": np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32),
    "z": np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32),
}


def elements(places: list[int], to: str, what: str, gives: str, axis: int = 1, rows: int = 2) -> str:
    """A ScatterElements; its indices are initializers by the places' name."""
    name = "i_" + "_".join(str(p).replace("-", "m") for p in places) + f"_{axis}_{rows}"
    return f"{gives} = ScatterElements<axis = {axis}>({to}, {name}, {what})"


def assigned(nodes: str, rows: str = "2", opset: int = 17) -> onnx.ModelProto:
    """A model that puts parts of x into z, with the indices that it names."""
    held = "<int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64 three = {3}, int64[1] at = {1}>"
    row = f"float[{rows}, 4, 3]"
    text = f"g ({row} x, {row} z) => ({row} y) {held} {{ {nodes} }}"
    made = model(text, opset)
    for name in sorted({name for node in made.graph.node for name in node.input if name.startswith(("i_", "v_"))}):
        kind, *told = name.split("_")
        if kind == "v":  # vectors of the first axes
            data = np.array([[[a, int(told[0])]] for a in range(2)], np.int64)
        else:
            places, axis, size = [int(p.replace("m", "-")) for p in told[:-2]], int(told[-2]), int(told[-1])
            sizes = [len(places) if a == axis else size if a == 0 else d for a, d in enumerate(SHAPE)]
            data = np.broadcast_to(np.reshape(places, [-1 if a == axis else 1 for a in range(3)]), sizes)
        made.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(data, np.int64), name))
    return made


def read(source: onnx.ModelProto) -> list[str]:
    """The operators of a model as it is read."""
    asked = {i.name for i in source.graph.input}
    return operators_of(source, {name: data for name, data in FEEDS.items() if name in asked}, rounds=False)


PARTS = " ".join(
    f"g{i} = Gather<axis = 1>(x, {name}) n{i} = Exp(g{i}) u{i} = Unsqueeze(n{i}, at)"
    for i, name in enumerate(("zero", "one", "two", "three"))
)
ALL = f"{PARTS} {elements([0], 'z', 'u0', 'a')} {elements([1], 'a', 'u1', 'b')} {elements([2], 'b', 'u2', 'c')} "
PUT = {
    "all places": (ALL + elements([-1], "c", "u3", "y"), 0),
    "some places": (ALL + "y = Identity(c)", 1),
    "a place twice": (ALL + elements([1], "c", "u3", "y"), 1),
    "several at once": (
        f"{PARTS} w = Concat<axis = 1>(u0, u1) {elements([1, 2], 'z', 'w', 'a')} {elements([2], 'a', 'u2', 'y')}", 3),
    "a part within another": (
        f"{PARTS} q = Concat<axis = 1>(u0, u2, u3)"
        f"{elements([0, 1, 2], 'z', 'q', 'a')} {elements([1], 'a', 'u1', 'y')}", 3),
    "by vectors": (f"{PARTS} a = ScatterND(z, v_2, u0) b = ScatterND(a, v_0, u1) y = ScatterND(b, v_1, u3)", 1),
    "copies between": (
        f"{PARTS} {elements([0], 'z', 'u0', 'a')} p = Identity(a) {elements([1], 'p', 'u1', 'b')} y = Identity(b)", 1),
}  # fmt: skip


@pytest.mark.parametrize(("nodes", "slices"), PUT.values(), ids=PUT)
def test_parts_are_beside_each_other(nodes: str, slices: int) -> None:
    operators = read(assigned(nodes))
    assert not {"ScatterElements", "ScatterND"}.intersection(operators)
    assert operators.count("Slice") == slices


def test_one_place_may_be_told_for_any_number_of_rows() -> None:
    """As torch's exporter writes it."""
    nodes = PARTS
    for i, (to, gives) in enumerate((("z", "a"), ("a", "b"), ("b", "y"))):
        name = ("zero", "one", "two")[i]
        nodes += (
            f" s{i} = Shape(u{i}) e{i} = Expand({name}, s{i}) {gives} = ScatterElements<axis = 1>({to}, e{i}, u{i})"
        )
    operators = read(assigned(nodes, rows="N"))
    assert "ScatterElements" not in operators


def test_what_is_read_between_is_there() -> None:
    nodes = f"{PARTS} {elements([0], 'z', 'u0', 'a')} {elements([1], 'a', 'u1', 'b')} {elements([2], 'b', 'u2', 'c')}"
    operators = read(assigned(f"{nodes} y = Sub(c, b)"))
    assert operators.count("ScatterElements") == 1


def test_a_part_that_was_put_is_read_itself() -> None:
    """As a script does that makes each step of the one before: `y[:, i] = f(y[:, i - 1])`."""
    nodes, names = "g0 = Gather<axis = 1>(z, zero) ", ("zero", "one", "two", "three")
    for i, (to, gives) in enumerate(zip("zabc", "abcy", strict=True)):
        nodes += f"n{i} = Tanh(g{i}) u{i} = Unsqueeze(n{i}, at) {elements([i], to, f'u{i}', gives)} "
        nodes += f"g{i + 1} = Gather<axis = 1>({gives}, {names[i]}) " if i < 3 else ""
    operators = read(assigned(nodes))
    assert not {"ScatterElements", "Slice"}.intersection(operators)
    assert operators.count("Concat") == 1
    assert operators.count("Gather") == 1


def test_what_was_there_before_is_read_there() -> None:
    """Also of copies: `t[:, 1] = x; t[:, 2] = x * t[:, 1] - t[:, 0]`."""
    nodes = f"{PARTS} {elements([1], 'z', 'u1', 'a')} c = Identity(a) h = Gather<axis = 1>(c, zero) n = Neg(h) "
    nodes += f"u = Unsqueeze(n, at) {elements([2], 'c', 'u', 'b')} q = Gather<axis = 1>(b, one) n3 = Sin(q) "
    nodes += f"w = Unsqueeze(n3, at) {elements([3], 'b', 'w', 'y')}"
    operators = read(assigned(nodes.replace(PARTS, PARTS.split(" g2")[0])))
    assert not {"Identity", "ScatterElements"}.intersection(operators)


@pytest.mark.parametrize("end", ["y = {}", "b = {} y = Neg(b)"], ids=["an output", "a value"])
@pytest.mark.parametrize("what", ["x", "z"])
def test_what_has_a_name_of_its_own_keeps_it(what: str, end: str) -> None:
    """An input that fills all places is what stands there."""
    put = elements([0, 1, 2, 3], "a", what, "@").removeprefix("@ = ")
    read(assigned(f"{PARTS} {elements([0], 'z', 'u0', 'a')} {end.format(put)}"))


STAYING = {
    "places that are computed": (
        "r = ReduceMax<keepdims = 0>(x) k = Cast<to = 7>(r) k1 = Mod(k, two) u = Exp(x) s = Shape(u) e = Expand(k1, s)"
        "a = ScatterElements<axis = 1>(z, e, u) y = ScatterElements<axis = 1>(a, e, x)"),
    "what is added": (
        f"{PARTS} {elements([0], 'z', 'u0', 'a')} {elements([1], 'a', 'u1', 'y')}"
        .replace("ScatterElements<axis = 1>", 'ScatterElements<axis = 1, reduction = "add">')),
    "places out of order":
        f"w = Exp(x) {elements([1, 0, 2, 3], 'z', 'w', 'a')} {elements([0, 2, 1, 3], 'a', 'x', 'y')}",
}  # fmt: skip


@pytest.mark.parametrize("nodes", STAYING.values(), ids=STAYING)
def test_others_are_left(nodes: str) -> None:
    assert read(assigned(nodes)).count("ScatterElements") == 2


def test_corners_of_boxes_are_computed_faster_and_are_the_same(options: Options) -> None:
    """As detectors compute them from centres: `y[..., 0] = x[..., 0] - x[..., 2] / 2`."""
    nodes = "h = Constant<value_float = 0.5>() " + " ".join(
        f"g{i} = Gather<axis = 2>(x, {name})" for i, name in enumerate(("zero", "one", "two", "three"))
    )
    for i, (name, to, gives) in enumerate(zip(("Sub", "Sub", "Add", "Add"), "zabc", "abcy", strict=True)):
        nodes += f" w{i} = Mul(g{2 + i % 2}, h) p{i} = {name}(g{i % 2}, w{i}) u{i} = Unsqueeze(p{i}, at2)"
        nodes += f" {gives} = ScatterElements<axis = 2>({to}, i{i}, u{i})"
    held = "<int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64 three = {3}, int64[1] at2 = {2}>"
    source = model(f"g (float[1, 300, 4] x, float[1, 300, 4] z) => (float[1, 300, 4] y) {held} {{ {nodes} }}")
    for i in range(4):
        source.graph.initializer.append(numpy_helper.from_array(np.full((1, 300, 1), i, np.int64), f"i{i}"))
    result = superopt.optimize(source, options)
    assert result.report.outcome == "faster"
    assert_close(run(result.proto()), run(source))
