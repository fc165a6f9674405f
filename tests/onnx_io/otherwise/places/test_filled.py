"""Boxes that are put into a value one after the other are beside each other; few stay, and such as something reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.onnx_io.models import model
from tests.onnx_io.otherwise.reading import gain, operators_of

Box = Sequence[slice]

SHAPE, SHIFTS = (1, 2, 5, 3, 8), 5
"""Of a volume: two groups for each of five shifts of pictures of three by eight places."""

EVERY = slice(None)


def given(shape: Sequence[int], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def hold(made: onnx.ModelProto, name: str, data: np.ndarray) -> str:
    made.graph.initializer.append(numpy_helper.from_array(np.array(data, order="C"), name))
    return name


def vectors(shape: Sequence[int], box: Box) -> np.ndarray:
    """The places of a box, as ScatterND takes them."""
    places = np.meshgrid(*(np.arange(d)[s] for d, s in zip(shape, box, strict=False)), indexing="ij")
    return np.stack(places, -1).astype(np.int64)


def put(shape: Sequence[int], boxes: Sequence[Box], base: np.ndarray | None = None, more: str = "") -> onnx.ModelProto:
    """A model that puts parts of the input x, of which each number is the sine, into boxes of another value."""
    lines = []
    for i, box in enumerate(boxes):
        to = "base" if i == 0 else f"v{i - 1}"
        size = [len(range(*s.indices(d))) for d, s in zip(shape, box, strict=True)]
        bounds = "zeros" if not i else f"first{i}"
        lines.append(f"c{i} = Slice(x, {bounds}, size{i}) s{i} = Sin(c{i}) v{i} = ScatterND({to}, at{i}, s{i})")
        assert all(size)
    text = "\n".join(lines)
    dims = ", ".join(map(str, shape))
    made = model(f"g (float[{dims}] x) => (float[{dims}] y) {{ {text} {more or f'y = Cos(v{len(boxes) - 1})'} }}", 17)
    hold(made, "base", np.zeros(shape, np.float32) if base is None else base)
    for i, box in enumerate(boxes):
        size = [len(range(*s.indices(d))) for d, s in zip(shape, box, strict=True)]
        first = [min(i % 3, d - n) for d, n in zip(shape, size, strict=True)] if i else [0] * len(shape)
        hold(made, "zeros" if not i else f"first{i}", np.array(first, np.int64))
        hold(made, f"size{i}", np.array(first, np.int64) + size)
        hold(made, f"at{i}", vectors(shape, box))
    return made


def shifted(i: int) -> Box:
    return (EVERY, EVERY, slice(i, i + 1), EVERY, slice(i, None))


def test_a_volume_of_shifts_is_padded_and_joined() -> None:
    """As torch's older exporter writes `volume[:, :, i, :, i:] = f(left[..., i:], right[..., :-i])`."""
    operators = operators_of(put(SHAPE, [shifted(i) for i in range(SHIFTS)]), {"x": given(SHAPE)}, rounds=False)
    assert "ScatterND" not in operators
    assert (operators.count("Concat"), operators.count("Pad")) == (1, SHIFTS - 1)


def test_halves_of_channels_are_beside_each_other() -> None:
    """Features of both pictures, as PSMNet (Chang and Chen 2018) has them."""
    boxes = [(EVERY, slice(c, c + 1), *shifted(i)[2:]) for i in range(SHIFTS) for c in range(2)]
    operators = operators_of(put(SHAPE, boxes), {"x": given(SHAPE)}, rounds=False)
    assert "ScatterND" not in operators
    assert operators.count("Concat") == 3


@pytest.mark.parametrize("rows", ["1", "N"])
def test_parts_of_parts_are_told(rows: str) -> None:
    """As torch's newer exporter writes it, also with any number of rows: what is put into a row that is taken out, with
    the axis in front, and put back.
    """
    lines, to = [], "base"
    for i in range(1, 6):
        lines.append(
            f"g{i} = Gather<axis = 1>({to}, n{i}) t{i} = Transpose<perm = [2, 1, 0]>(g{i}) c{i} = Slice(x, r{i}, e, l)"
            f"s{i} = Sin(c{i}) m{i} = Transpose<perm = [2, 1, 0]>(s{i}) p{i} = ScatterND(t{i}, at{i}, m{i})"
            f"b{i} = Transpose<perm = [2, 1, 0]>(p{i}) u{i} = Unsqueeze(b{i}, one)"
            f"q{i} = Shape(u{i}) w{i} = Expand(n{i}, q{i}) v{i} = ScatterElements<axis = 1>({to}, w{i}, u{i})"
        )
        to = f"v{i}"
    held = "<int64[1] e = {8}, int64[1] l = {2}, int64[1] one = {1}, int64[1] zero = {0}>"
    text = f"g (float[{rows}, 3, 8] x) => (float[{rows}, 6, 3, 8] y) {held} {{ k = Shape<end = 1>(x) " + (
        f"d = Concat<axis = 0>(k, six) base = ConstantOfShape(d) {' '.join(lines)} y = Cos({to}) }}"
    )
    made = model(text, 17)
    hold(made, "six", np.array([6, 3, 8], np.int64))
    for i in range(1, 6):
        hold(made, f"n{i}", np.array(i, np.int64))
        hold(made, f"r{i}", np.array([i], np.int64))
        hold(made, f"at{i}", np.arange(i, 8)[:, None])
    operators = operators_of(made, {"x": given((1 if rows == "1" else 2, 3, 8))}, rounds=False)
    assert not {"ScatterND", "ScatterElements"}.intersection(operators)
    assert operators.count("Transpose") == 0


@pytest.mark.parametrize("seed", range(12))
def test_what_was_put_last_is_there(seed: int) -> None:
    """Any boxes, some of which lie on others, in a value that is not zero or is."""
    random = np.random.default_rng(seed)
    shape, boxes = (3, 4, 5), []
    for _ in range(int(random.integers(4, 9))):
        ends = [sorted(random.choice(d + 1, 2, replace=False)) for d in shape]
        boxes.append(tuple(slice(int(a), int(b)) for a, b in ends))
    base = np.zeros(shape, np.float32) if seed % 2 else given(shape, seed)
    operators_of(put(shape, boxes, base), {"x": given(shape)}, rounds=False)


def test_what_is_covered_is_not_put() -> None:
    boxes = [*(shifted(i) for i in range(4)), (EVERY,) * len(SHAPE), shifted(2)]
    assert "ScatterND" not in operators_of(put(SHAPE, boxes), {"x": given(SHAPE)}, rounds=False)


def test_what_is_read_between_is_there() -> None:
    more = "r = Exp(v2) z = Cos(v4) y = Add(r, z)"
    operators_of(put(SHAPE, [shifted(i) for i in range(SHIFTS)], more=more), {"x": given(SHAPE)}, rounds=False)


def test_where_each_is_read_all_stay() -> None:
    """Nothing would be put less often."""
    more = (
        " ".join(f"r{i} = Exp(v{i})" for i in range(SHIFTS)) + f" y = Sum({', '.join(f'r{i}' for i in range(SHIFTS))})"
    )
    operators = operators_of(put(SHAPE, [shifted(i) for i in range(SHIFTS)], more=more), {"x": given(SHAPE)})
    assert operators.count("ScatterND") == SHIFTS


def test_few_stay() -> None:
    operators = operators_of(put(SHAPE, [shifted(i) for i in range(2)]), {"x": given(SHAPE)})
    assert operators.count("ScatterND") == 2


def test_single_numbers_stay() -> None:
    """What is around them is cut along all axes, and would be copied once more for each of these."""
    shape = (8, 4, 9)
    boxes = [(slice(i, i + 1), slice(2, 3), slice(5, 6)) for i in (1, 3, 5)]
    operators = operators_of(put(shape, boxes, given(shape)), {"x": given(shape)}, rounds=False)
    assert operators.count("ScatterND") == 3


CHANNELS_LAST = (1, 5, 6, 8)


def four_ways() -> onnx.ModelProto:
    """`z = y.clone(); z[:, 1:, :, :2] = y[:, :-1, :, :2]`, and so on: channels that go down, up, right and left."""
    lines, held, to = [], dict[str, list[int]](), "y0"
    for i in range(4):
        axis, back = 1 + i // 2, i % 2
        size = CHANNELS_LAST[axis]
        bounds = [[back, 2 * i], [size - 1 + back, 2 * i + 2], [axis, 3]]
        held |= dict(zip((f"s{i}", f"e{i}", f"a{i}"), bounds, strict=True))
        lines.append(f"c{i} = Slice(y0, s{i}, e{i}, a{i}) v{i} = ScatterND({to}, at{i}, c{i})")
        to = f"v{i}"
    dims = ", ".join(map(str, CHANNELS_LAST))
    made = model(f"g (float[{dims}] x) => (float[{dims}] y) {{ y0 = Sin(x) {' '.join(lines)} y = Cos({to}) }}", 17)
    for name, bounds_of in held.items():
        hold(made, name, np.array(bounds_of, np.int64))
    for i in range(4):
        box = [EVERY] * 4
        box[1 + i // 2] = slice(0, -1) if i % 2 else slice(1, None)
        box[3] = slice(2 * i, 2 * i + 2)
        hold(made, f"at{i}", vectors(CHANNELS_LAST, box))
    return made


def test_channels_that_are_shifted_four_ways_are_cut_no_finer_than_they_are_shifted() -> None:
    """As S²-MLP (Yu et al. 2022) has it: of each way what is moved, and the row or column that stays."""
    operators = operators_of(four_ways(), {"x": given(CHANNELS_LAST)}, rounds=False)
    assert "ScatterND" not in operators
    assert (operators.count("Slice"), operators.count("Concat")) == (8, 5)


def test_channels_that_are_shifted_through_time_are_beside_each_other() -> None:
    """As a temporal shift (Lin et al. 2019) puts those of either way, and all others."""
    shape = (1, 4, 8, 3)
    ways: list[Box] = [
        (EVERY, slice(0, 3), slice(0, 2), EVERY),
        (EVERY, slice(1, 4), slice(2, 4), EVERY),
        (EVERY, EVERY, slice(4, 8), EVERY),
    ]
    assert "ScatterND" not in operators_of(put(shape, ways), {"x": given(shape)}, rounds=False)


def test_a_volume_is_filled_faster() -> None:
    shape = (1, 8, 16, 16, 32)
    assert gain(put(shape, [shifted(i) for i in range(16)]), {"x": given(shape)}) > 1.5
