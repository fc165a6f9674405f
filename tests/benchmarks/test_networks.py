"""The benchmark networks: outputs that show something, or else comparing them would say nothing."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from benchmarks.networks import LIGHT, NAMES, network
from superopt.cost.ort import OnnxRuntime

QUICK = ("squeezenet", "shufflenet")


@cache
def made(name: str, seed: int = 0) -> onnx.ModelProto:
    return network(name, seed)


def outputs(model: onnx.ModelProto, count: int = 2) -> list[NDArray[np.float32]]:
    runtime = OnnxRuntime()
    session = runtime.session(model.SerializeToString())
    return [runtime.run(session, runtime.feeds(session, seed))[0].ravel() for seed in range(count)]


def test_there_are_nine() -> None:
    assert len(NAMES) == 9


@pytest.mark.parametrize("name", QUICK)
def test_the_softmax_is_neither_saturated_nor_flat(name: str) -> None:
    for output in outputs(made(name)):
        assert 5 / output.size < output.max() < 0.5
        assert abs(output.sum() - 1) < 1e-4


@pytest.mark.parametrize("name", QUICK)
def test_pictures_are_told_apart(name: str) -> None:
    one, two = outputs(made(name))
    assert np.abs(one - two).max() > 0.05 * one.max()


@pytest.mark.parametrize("name", QUICK)
def test_a_seed_gives_the_same_bytes_and_another_seed_others(name: str) -> None:
    first = made(name).SerializeToString(deterministic=True)
    assert network(name).SerializeToString(deterministic=True) == first
    assert made(name, 1).SerializeToString(deterministic=True) != first


@pytest.mark.parametrize("name", QUICK)
def test_the_picture_is_the_only_input_and_values_keep_their_names(name: str) -> None:
    model = made(name)
    light = onnx.load(LIGHT / f"light_{name}.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert model.ir_version >= 8
    assert len(model.graph.input) == 1
    assert model.graph.output == light.graph.output
    assert list(model.graph.node) == [n for n in light.graph.node if n.op_type != "ConstantOfShape"]
