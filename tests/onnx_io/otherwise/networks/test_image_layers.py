"""Convolutions of several signals, each with a kernel of its own, are groups of channels of one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.onnx_io import load, understand
from tests.models import assert_same, model, weight
from tests.onnx_io.networks import run

COUNT, LENGTH = 6, 16
Part = list[tuple[str, list[str], str, dict[str, object]]]
"""Nodes of one branch: what they are, what they read and give, where `#` is the branch's number, and attributes."""


def branches(part: Part, rows: int, kernels: dict[str, tuple[int, ...]]) -> onnx.ModelProto:
    """Several branches of one make, each of two channels of a signal of its own, joined behind each other."""
    nodes = [helper.make_node("Split", ["x", "sizes"], [f"x{i}" for i in range(COUNT)], axis=1)]
    weights = {"sizes": np.array([2] * COUNT), "two": np.array([2]), "flat": np.array([0, -1])}
    for i in range(COUNT):
        for op, read, gives, said in part:
            read = [name.replace("#", str(i)) for name in read]
            nodes.append(helper.make_node(op, read, [gives.replace("#", str(i))], **said))
        for j, (name, shape) in enumerate(kernels.items()):
            weights[name.replace("#", str(i))] = weight(*shape, seed=10 * i + j)
    nodes.append(helper.make_node("Concat", [f"y{i}" for i in range(COUNT)], ["y"], axis=1))
    ends = [("x", TensorProto.FLOAT, [rows, 2 * COUNT, LENGTH])], [("y", TensorProto.FLOAT, ["rows", "features"])]
    return model(nodes, *ends, weights)


LARGEST, HIGHEST = ("GlobalMaxPool", ["c#"], "p#", {}), ("GlobalMaxPool", ["r#"], "p#", {})
FLAT = ("Flatten", ["p#"], "y#", {})
ROWS = ("Reshape", ["p#", "flat"], "y#", {})
KERNELS = {"k#": (4, 2, 3), "b#": (4,), "l#": (3, 4, 5)}
LAYERS = [
    ("Conv", ["x#", "k#", "b#"], "c#", {"pads": [1, 1], "strides": [2]}),
    ("Relu", ["c#"], "r#", {}),
    ("Conv", ["r#", "l#"], "d#", {"auto_pad": "SAME_UPPER"}),
]
CASES: dict[str, tuple[Part, dict[str, tuple[int, ...]]]] = {
    "pooled whole": ([*LAYERS, ("GlobalAveragePool", ["d#"], "p#", {}), FLAT], KERNELS),
    "pooled in windows": (
        [*LAYERS, ("MaxPool", ["d#"], "p#", {"kernel_shape": [2], "strides": [2], "ceil_mode": 1}), FLAT],
        KERNELS,
    ),
    "of the mean of windows": (
        [*LAYERS, ("AveragePool", ["d#"], "p#", {"kernel_shape": [3], "pads": [1, 0]}), ROWS],
        KERNELS,
    ),
    "in groups": (
        [("Conv", ["x#", "k#"], "c#", {"group": 2, "dilations": [2]}), LARGEST, ("Squeeze", ["p#", "two"], "y#", {})],
        {"k#": (4, 1, 3)},
    ),
    "of one signal": (
        [("Conv", ["x0", "k#", "b#"], "c#", {}), ("Tanh", ["c#"], "t#", {}), ("GlobalMaxPool", ["t#"], "p#", {}), FLAT],
        {"k#": (4, 2, 3), "b#": (4,)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("case", CASES)
def test_branches_of_signals_are_groups_of_channels(case: str, rows: int) -> None:
    part, kernels = CASES[case]
    given = branches(part, rows, kernels)
    program = understand(load(given))
    made = ir.to_proto(program.model)
    onnx.checker.check_model(made, full_check=True)
    before, after = (Counter(n.op_type for n in m.graph.node) for m in (given, made))
    assert after["Conv"] == before["Conv"] // COUNT
    x = np.random.default_rng(0).standard_normal((rows, 2 * COUNT, LENGTH)).astype(np.float32)
    np.testing.assert_allclose(*(run(m, {"x": x})[0] for m in (given, made)), rtol=1e-5, atol=1e-6)


STAYS: dict[str, onnx.ModelProto] = {
    "one kernel with a bias each": branches(
        [("Conv", ["x#", "k0", "b#"], "c#", {}), ("Relu", ["c#"], "r#", {}), HIGHEST, FLAT],
        1,
        {"k#": (4, 2, 3), "b#": (4,)},
    ),
    "one signal in groups": branches(
        [("Conv", ["x0", "k#"], "c#", {"group": 2}), ("Relu", ["c#"], "r#", {}), HIGHEST, FLAT],
        1,
        {"k#": (4, 1, 3)},
    ),
    "that multiply often": branches(
        [("Conv", ["x#", "k#"], "c#", {}), ("Relu", ["c#"], "r#", {}), HIGHEST, FLAT],
        64,
        {"k#": (64, 2, 3)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("given", STAYS.values(), ids=STAYS)
def test_others_stay(given: onnx.ModelProto) -> None:
    assert not understand(load(given)).otherwise


def test_branches_of_sensors_are_faster_and_the_same(options: Options) -> None:
    """As networks have that recognize what a person does, a small one for each channel of a sensor."""
    part, kernels = CASES["pooled whole"]
    given = branches(part, 1, kernels)
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert Counter(n.op_type for n in result.proto().graph.node)["Conv"] == 2
    assert_same(result.proto(), given)
