"""GatherND by tuples of one index, or of several that are known, is read as the gather that it is, and no other is."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from superopt.onnx_io import load, understand
from tests.models import model, weight
from tests.onnx_io.networks import run
from tests.onnx_io.test_catalogue import read_back
from tests.onnx_io.test_understanding import opaque

CONSTANT = {"i": np.array([[[1], [3]], [[-1], [0]], [[2], [2]]])}


def indexed(indices: tuple[int, ...], constant: bool, result: tuple[int, ...], **given: int) -> onnx.ModelProto:
    ends = [("x", TensorProto.FLOAT, [4, 5]), ("i", TensorProto.INT64, indices)]
    node = helper.make_node("GatherND", ["x", "i"], ["y"], **given)
    return model(
        [node], ends[:1] if constant else ends, [("y", TensorProto.FLOAT, result)], CONSTANT if constant else {}
    )


@pytest.mark.parametrize("constant", [False, True], ids=["computed", "constant"])
def test_one_index_takes_what_stands_there_from_the_end_too(constant: bool) -> None:
    made = indexed((3, 2, 1), constant, (3, 2, 5))
    feed = {"x": weight(4, 5), **({} if constant else CONSTANT)}
    np.testing.assert_array_equal(read_back(made, feed), run(made, feed)[0])


@pytest.mark.parametrize("count", [2, 3])
def test_several_known_indices_take_of_the_axes_as_one(count: int) -> None:
    indices = np.array([[[0, 4, 1], [3, -1, 0]], [[-4, 2, -2], [1, 1, 1]]])[..., :count]
    shape = (2, 2, *(4, 5, 2)[count:])
    node = helper.make_node("GatherND", ["x", "i"], ["y"])
    ends = [("x", TensorProto.FLOAT, [4, 5, 2])], [("y", TensorProto.FLOAT, shape)]
    made = model([node], *ends, {"i": indices})
    assert all(step.terms for step in understand(load(made)).steps)
    feed = {"x": weight(4, 5, 2)}
    np.testing.assert_array_equal(read_back(made, feed), run(made, feed)[0])


@pytest.mark.parametrize(
    ("made", "why"),
    [(indexed((3, 2), False, (3,)), "more than one index"), (indexed((4, 1), False, (4,), batch_dims=1), "batch")],
    ids=["two indices", "a batch"],
)
def test_other_tuples_stay_opaque(made: onnx.ModelProto, why: str) -> None:
    understood = understand(load(made))
    assert why in opaque(understood)
