"""Deformable attention takes rows of channels, for all places of all levels at once, and sums them up by products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from superopt.onnx_io import load, understand
from tests.onnx_io.models import model
from tests.onnx_io.networks import Array, run
from tests.onnx_io.otherwise.reading import gain, operators_of

HEADS, CHANNELS, POINTS = 4, 16, 4
LEVELS = ((8, 6), (5, 5), (2, 3))


def held(name: str, numbers: Sequence[int]) -> str:
    """A constant row of integers."""
    return f"int64[{len(numbers)}] {name} = {{{', '.join(map(str, numbers))}}}"


def attention(
    batch: str = "1",
    queries: int = 60,
    levels: Sequence[tuple[int, int]] = LEVELS,
    channels: int = CHANNELS,
    said: str = "align_corners = 0",
    form: str = "split",
    between: str = "p = Mul(places, two) centred = Sub(p, one)",
) -> onnx.ModelProto:
    """Attention whose values are made to maps level by level; or, of the other form, moved before they are `cut`."""
    many, rows, all_points = len(levels), sum(h * w for h, w in levels), POINTS * len(levels)
    constants = [
        held("parts", [h * w for h, w in levels]),
        held("heads", [0, rows, HEADS, channels]),
        held("flat", [0, -1, HEADS * channels]),
        held("grids", [-1, queries, POINTS, 2]),
        held("counts", [-1, 1, queries, all_points]),
        held("ones", [1] * many),
        held("third", [3]),
        held("last", [-1]),
        held("behind", [-2]),
        held("cut", [-1, channels, rows]),
        held("found", [-1, channels, queries, all_points]),
        held("given", [-1, HEADS * channels, queries]),
    ]
    names = [", ".join(f"{letter}{i}" for i in range(many)) for letter in "vgu"]
    nodes = ["v = Reshape(x, heads)", between]
    if form == "cut":
        nodes += ["m = Transpose<perm = [0, 2, 3, 1]>(v)", "n = Reshape(m, cut)"]
        nodes += [f"{names[0]} = Split<axis = 2>(n, parts)"]
    else:
        nodes += [f"{names[0]} = Split<axis = 1>(v, parts)"]
    nodes += [f"{names[1]} = Split<axis = 3>(centred, ones)"]
    for i, (height, width) in enumerate(levels):
        constants.append(held(f"map{i}", [-1, channels, height, width]))
        if form == "cut":
            nodes.append(f"x{i} = Reshape(v{i}, map{i})")
        else:
            nodes += [f"f{i} = Reshape(v{i}, flat)", f"t{i} = Transpose<perm = [0, 2, 1]>(f{i})"]
            nodes.append(f"x{i} = Reshape(t{i}, map{i})")
        nodes += [f"h{i} = Squeeze(g{i}, third)", f"k{i} = Transpose<perm = [0, 2, 1, 3, 4]>(h{i})"]
        nodes += [f"l{i} = Reshape(k{i}, grids)", f"s{i} = GridSample<{said}>(x{i}, l{i})"]
        nodes.append(f"u{i} = Identity(s{i})" if form == "cut" else f"u{i} = Unsqueeze(s{i}, behind)")
    nodes.append(f"stacked = Concat<axis = {-1 if form == 'cut' else -2}>({names[2]})")
    nodes += ["found_ = Reshape(stacked, found)", "a = Transpose<perm = [0, 2, 1, 3]>(weights)"]
    nodes += ["counts_ = Reshape(a, counts)", "weighed = Mul(found_, counts_)"]
    nodes += ["summed = ReduceSum<keepdims = 0>(weighed, last)", "z = Reshape(summed, given)"]
    shapes = f"float[{batch}, {rows}, {HEADS * channels}] x, float[{batch}, {queries}, {HEADS}, {many}, {POINTS}, 2] "
    shapes += f"places, float[{batch}, {queries}, {HEADS}, {all_points}] weights"
    outputs = f"float[{batch}, {queries}, {HEADS * channels}] y"
    scale = "float two = {2.0}, float one = {1.0}"
    text = f"g ({shapes}) => ({outputs}) <{scale}, {', '.join(constants)}> "
    return model(text + "{ " + " ".join([*nodes, "y = Transpose<perm = [0, 2, 1]>(z)"]) + " }")


def feeds(source: onnx.ModelProto, batch: int = 1, spread: float = 0.7) -> Mapping[str, Array]:
    """Values, places around the maps, some far away, and weights."""
    drawn = np.random.default_rng(0)
    shapes = {i.name: [d.dim_value or batch for d in i.type.tensor_type.shape.dim] for i in source.graph.input}
    made = {name: drawn.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    made["places"] = (0.5 + spread * made["places"]).astype(np.float32)
    flat = made["places"].reshape(-1, 2)
    flat[:7] = [[0, 0], [1, 1], [0, 1], [1e6, 0.5], [-1e6, -1e6], [0.5, 1e6], [0.5, 0.5]]
    made["weights"] = np.abs(made["weights"])
    return made


ATTENTIONS = {
    "of one image": (attention(), 1),
    "of several images": (attention(batch="3"), 3),
    "of any number of images": (attention(batch="N"), 3),
    "of one of any number": (attention(batch="N"), 1),
    "of many queries": (attention(queries=400), 1),
    "of any number, in turns": (attention(batch="N", queries=400), 2),
    "of values that are moved at once": (attention(form="cut"), 1),
    "of those of several images": (attention(batch="2", form="cut"), 2),
    "of one level": (attention(levels=((7, 9),), queries=200, channels=24), 1),
    "of levels of one size": (attention(queries=80, levels=((6, 6), (6, 6))), 1),
    "from corner to corner": (attention(said="align_corners = 1"), 1),
    "of a mode that is told": (attention(said='mode = "bilinear", padding_mode = "zeros"'), 1),
}


@pytest.mark.parametrize(("source", "batch"), ATTENTIONS.values(), ids=ATTENTIONS)
def test_rows_are_taken(source: onnx.ModelProto, batch: int) -> None:
    for spread in (0.3, 0.7, 4.0):
        found = operators_of(source, feeds(source, batch, spread))
        assert "GridSample" not in found
        assert "Concat" in found  # of four neighbours


@pytest.mark.parametrize("batch", [1, 2])
def test_what_is_summed_up_is_not_moved(batch: int) -> None:
    source = attention(batch=str(batch))
    assert operators_of(source, feeds(source)).count("Transpose") == 2  # of rows and weights of neighbours


@pytest.mark.parametrize(
    "between",
    [
        "p = Mul(two, places) centred = Sub(p, one)",
        "half = Div(one, two) p = Div(places, half) n = Neg(one) centred = Add(n, p)",
        "p = Mul(places, two) centred = Sub(one, p)",
        "p = Add(places, one) q = Sub(p, two) centred = Mul(q, two)",
    ],
)
def test_places_are_scaled_once(between: str) -> None:
    source = attention(between=between)
    assert operators_of(source, feeds(source)).count("Sub") == 8  # of neighbours along both axes


STAYS = {
    "of few channels": attention(channels=8),
    "of few channels at few points": attention(levels=((7, 9),), queries=200),
    "of few places": attention(queries=20),
    "of rows of one": attention(levels=((8, 6), (1, 5))),
    "to the nearest": attention(said='mode = "nearest"'),
}


@pytest.mark.parametrize("source", STAYS.values(), ids=STAYS)
def test_others_sample_maps(source: onnx.ModelProto) -> None:
    assert "GridSample" in operators_of(source, feeds(source))


def test_many_queries_take_turns() -> None:
    few, many = attention(queries=60), attention(queries=400)
    assert "Scan" not in operators_of(few, feeds(few))
    assert "Scan" in operators_of(many, feeds(many))


@pytest.mark.parametrize("queries", [60, 400])
def test_a_batch_of_any_number_may_be_empty(queries: int) -> None:
    source = attention(batch="N", queries=queries, form="cut")
    empty = {name: value[:0] for name, value in feeds(source).items()}
    found = operators_of(source, empty)
    assert "GridSample" not in found
    assert ("Loop" in found) == (queries == 400)


def test_places_and_weights_that_are_given_apart_are_taken_so() -> None:
    source = model(
        """g (float[3, 97, 32] values, float[3, 150, 4, 2] p, float[3, 150, 4, 2] q, float[3, 1, 150, 8] weights)
        => (float[3, 32, 150] y) <int64[1] last = {-1}, int64[4] first = {3, 32, 9, 9},
        int64[4] second = {3, 32, 4, 4}, int64[2] parts = {81, 16}> {
        t = Transpose<perm = [0, 2, 1]>(values)
        a, b = Split<axis = 2>(t, parts)
        x = Reshape(a, first)  z = Reshape(b, second)
        s = GridSample(x, p)  r = GridSample(z, q)
        found = Concat<axis = 3>(s, r)
        weighed = Mul(weights, found)
        y = ReduceSum<keepdims = 0>(weighed, last) }"""
    )
    drawn = np.random.default_rng(0)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in source.graph.input}
    given = {name: drawn.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    assert "GridSample" not in operators_of(source, given)


def test_levels_that_are_joined_as_other_queries_sample_maps() -> None:
    source = model(
        """g (float[N, 81, 32] values, float[N, 150, 4, 2] p, float[N, 150, 4, 2] q, float[N, 1, 300, 4] weights)
        => (float[N, 32, 300] y) <int64[1] last = {-1}, int64[4] map = {-1, 32, 9, 9},
        int64[4] all = {-1, 32, 300, 4}> {
        t = Transpose<perm = [0, 2, 1]>(values)
        x = Reshape(t, map)
        s = GridSample(x, p)  r = GridSample(x, q)
        joined = Concat<axis = 3>(s, r)
        found = Reshape(joined, all)
        weighed = Mul(weights, found)
        y = ReduceSum<keepdims = 0>(weighed, last) }"""
    )
    drawn = np.random.default_rng(0)
    shapes = {i.name: [d.dim_value or 2 for d in i.type.tensor_type.shape.dim] for i in source.graph.input}
    given = {name: drawn.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    assert "GridSample" in operators_of(source, given)


@pytest.mark.parametrize("queries", [60, 400])
def test_a_place_that_is_no_number_concerns_its_query_alone(queries: int) -> None:
    source = attention(queries=queries)
    given, made = dict(feeds(source)), ir.to_proto(understand(load(source)).model)
    (wanted,) = run(source, given)
    given["places"][0, 5, 0, 0, 0] = np.nan
    (found,) = run(made, given)
    kept = np.arange(queries) != 5
    np.testing.assert_allclose(found[:, kept], wanted[:, kept], rtol=1e-4, atol=1e-5)


def test_it_gains() -> None:
    source = attention(queries=300, levels=((40, 40), (20, 20), (10, 10)), channels=64)
    assert gain(source, feeds(source, spread=0.3)) > 1.5
