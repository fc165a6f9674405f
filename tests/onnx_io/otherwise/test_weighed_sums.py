"""Sums of weighed differences, one beside the other, are computed at once, however large they are."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from superopt.onnx_io.otherwise.networks.small import MOST
from tests.onnx_io.models import model
from tests.onnx_io.otherwise.reading import operators_of

PLACES, CHANNELS, CENTRES = 160, 128, 6
assert PLACES * CHANNELS > MOST

RNG = np.random.default_rng(0)


def centres(one: str) -> onnx.ModelProto:
    """Features x of all places, shares s of these for each centre, and the descriptor of each centre."""
    nodes = "".join(
        f"f{i} = Constant<value_ints = [{i}]>() t{i} = Constant<value_ints = [{i + 1}]>() a{i} = Slice(s, f{i}, t{i}, "
        f"one) d{i} = {one.format(i=i)} w{i} = Mul(d{i}, a{i}) p{i} = ReduceSum<keepdims = 0>(w{i}, two) "
        for i in range(CENTRES)
    )
    names = ", ".join(f"q{i}" for i in range(CENTRES))
    behind = "".join(f"q{i} = Unsqueeze(p{i}, one) " for i in range(CENTRES))
    made = model(
        f"g (float[1, {CHANNELS}, {PLACES}] x, float[1, {CENTRES}, {PLACES}] s) => (float[1, {CENTRES}, {CHANNELS}] y) "
        f"<int64[1] one = {{1}}, int64[1] two = {{2}}> {{ {nodes} {behind} y = Concat<axis = 1>({names}) }}",
        17,
    )
    for i in range(CENTRES):
        data = RNG.standard_normal((CHANNELS, 1)).astype(np.float32)
        made.graph.initializer.append(numpy_helper.from_array(data, f"c{i}"))
    return made


FEEDS = {
    "x": RNG.standard_normal((1, CHANNELS, PLACES)).astype(np.float32),
    "s": RNG.random((1, CENTRES, PLACES), np.float32),
}


@pytest.mark.parametrize("one", ["Sub(x, c{i})", "Sub(c{i}, x)", "Add(x, c{i})"])
def test_weighed_differences_are_computed_at_once(one: str) -> None:
    assert operators_of(centres(one), FEEDS).count("ReduceSum") == 1


def test_what_is_computed_otherwise_of_so_much_is_not() -> None:
    source = centres("Sub(x, c{i})")
    for node in source.graph.node:
        if node.op_type == "Mul":
            node.op_type = "Max"
    assert operators_of(source, FEEDS).count("ReduceSum") == CENTRES
