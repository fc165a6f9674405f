"""Cosines of whole multiples and whole powers are products, as exact as they were; others stay."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from superopt.onnx_io import load, understand
from tests.onnx_io.networks import run
from tests.onnx_io.otherwise.functions import Array, Network
from tests.onnx_io.otherwise.reading import operators_of

ROWS, NUMBERS = 100, 20


def numbers(low: float, high: float, rows: int = ROWS, many: int = NUMBERS, seed: int = 0) -> Array:
    """Numbers between two, and these two and zero."""
    x = np.random.default_rng(seed).uniform(low, high, (rows, many)).astype(np.float32)
    x[0, :3] = low, high, 0.0
    return x


def chebyshev(net: Network, degrees: list[float], spelled: str = "last", bounds: float = 0.0) -> str:
    """Cosines of multiples of the angles whose cosines the numbers are."""
    x = net("Clip", "x", net.held(-bounds), net.held(bounds)) if bounds else "x"
    if spelled == "repeated":  # before the angle is computed
        size = [net.rows, net.numbers, len(degrees)]
        angle = net("Acos", net("Expand", net.at_end(x), net.held(size, "int64")))
    else:
        angle = net("Acos", net.at_end(x)) if spelled == "last" else net.at_end(net("Acos", x))
    return net("Cos", net("Mul", angle, net.held(degrees)))


def read(net: Network, functions: str, many: int, x: Array, spelled: str = "einsum") -> list[str]:
    return operators_of(net.model(net.layer(functions, many, spelled)), {"x": x})


@pytest.mark.parametrize("spelled", ["last", "first", "repeated"])
@pytest.mark.parametrize("degree", [2, 3, 4, 8])
@pytest.mark.parametrize("many", [3, NUMBERS])
def test_no_angle_is_computed(spelled: str, degree: int, many: int) -> None:
    net = Network(ROWS, many)
    functions = chebyshev(net, list(range(degree + 1)), spelled)
    assert not {"Acos", "Cos"} & set(read(net, functions, degree + 1, numbers(-1, 1, many=many)))


def test_degrees_may_come_in_any_order() -> None:
    net = Network(ROWS, NUMBERS)
    assert "Cos" not in read(net, chebyshev(net, [3, 0, 0, 2, 5]), 5, numbers(-1, 1))


@pytest.mark.parametrize("degrees", [[0.0, 1.0], [0.0, 0.5, 2.0], [1.0, 2.0, 9.0], [-1.0, 2.0, 3.0]])
def test_other_multiples_are_computed(degrees: list[float]) -> None:
    net = Network(ROWS, NUMBERS)
    assert "Cos" in read(net, chebyshev(net, degrees), len(degrees), numbers(-1, 1))


def test_functions_of_few_numbers_are_computed() -> None:
    net = Network(2, 8)
    functions = [chebyshev(net, [1, 2, 3]), fourier(net, [1, 2, 3]), net("Pow", net.at_end(), net.held([1, 2, 3]))]
    layers = [net.layer(f, many) for f, many in zip(functions, (3, 6, 3), strict=True)]
    kinds = operators_of(net.model(net("Sum", *layers)), {"x": numbers(-1, 1, 2, 8)})
    assert (kinds.count("Cos"), kinds.count("Sin"), kinds.count("Pow")) == (2, 1, 1)


def test_what_is_no_cosine_is_no_number() -> None:
    net, x = Network(ROWS, NUMBERS), numbers(-1, 1)
    x[1, 4], x[3, 2] = 1.0000001, -5.0
    kinds = read(net, chebyshev(net, [0, 1, 2, 3]), 4, x)  # which also compares where numbers are none
    assert "Sqrt" in kinds


def test_what_is_clipped_is_a_cosine() -> None:
    net = Network(ROWS, NUMBERS)
    kinds = read(net, chebyshev(net, [0, 1, 2, 3], bounds=0.999), 4, numbers(-3, 3))
    assert not {"Acos", "Sqrt"} & set(kinds)


def wide(net: Network, functions: str, many: int) -> onnx.ModelProto:
    """A model that gives the first number's functions, as the results of a layer."""
    ones = np.zeros((net.numbers * many, many))
    ones[:many] = np.eye(many)
    flat = net("Reshape", functions, net.held([-1, net.numbers * many], "int64"))
    return net.model(net("MatMul", flat, net.held(ones)), shapes=[(net.rows, many)])


@pytest.mark.parametrize("degree", [4, 8])
def test_polynomials_lose_no_digits(degree: int) -> None:
    x = numbers(-1, 1, 400)
    x[:200, 0] = 1 - np.geomspace(1e-7, 1, 200)
    net = Network(400, NUMBERS)
    source = wide(net, chebyshev(net, list(range(degree + 1))), degree + 1)
    made = ir.to_proto(understand(load(source)).model)
    wanted = np.cos(np.arccos(x[:, :1].astype(np.float64)) * np.arange(degree + 1))
    ours, theirs = (np.abs(run(m, {"x": x})[0] - wanted).max() for m in (made, source))
    assert "Cos" not in {node.op_type for node in made.graph.node}
    assert ours <= 4 * theirs + 1e-6, (ours, theirs)


def fourier(net: Network, degrees: list[float], kinds: tuple[str, ...] = ("Cos", "Sin")) -> str:
    """Waves of multiples of numbers, all cosines and then all sines."""
    angles = net("Mul", net.at_end(), net.held(degrees))
    return net("Concat", *(net(kind, angles) for kind in kinds), axis=-1)


def test_waves_are_those_of_one_angle() -> None:
    net = Network(ROWS, NUMBERS)
    kinds = read(net, fourier(net, [1, 2, 3, 4, 5]), 10, numbers(-4, 4))
    assert kinds.count("Cos") == kinds.count("Sin") == 1


@pytest.mark.parametrize("degrees", [[1.0, 2.0], [1.0, 2.5, 3.0], [1.0, 2.0, 16.0]])
def test_other_waves_stay(degrees: list[float]) -> None:
    net = Network(ROWS, NUMBERS)
    kinds = read(net, fourier(net, degrees), 2 * len(degrees), numbers(-4, 4), "gemm")
    assert kinds.count("Mul") < 3


@pytest.mark.parametrize("reach", [1e-3, 3.0, 30.0])
def test_waves_lose_no_digits(reach: float) -> None:
    x, degrees = numbers(-reach, reach, 400), np.arange(1, 9)
    net = Network(400, NUMBERS)
    source = wide(net, fourier(net, degrees.tolist()), 16)
    made = ir.to_proto(understand(load(source)).model)
    angles = x[:, :1].astype(np.float64) * degrees
    wanted = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    ours, theirs = (np.abs(run(m, {"x": x})[0] - wanted).max() for m in (made, source))
    assert sum(node.op_type == "Sin" for node in made.graph.node) == 1
    assert ours <= 4 * theirs + 1e-6, (ours, theirs)


@pytest.mark.parametrize("exponents", [[0, 1, 2, 3, 4, 5], [7, 0, 3], [1]])
@pytest.mark.parametrize("many", [3, NUMBERS])
def test_whole_powers_are_products(exponents: list[int], many: int) -> None:
    net = Network(ROWS, many)
    functions = net("Pow", net.at_end(), net.held(exponents))
    kinds = read(net, functions, len(exponents), numbers(-2, 2, many=many), "gemm")
    assert ("Pow" in kinds) == (len(exponents) < 2)


@pytest.mark.parametrize("exponents", [[0.0, 0.5], [-1.0, 1.0], [0.0, 0.0], [1.0, 9.0]])
def test_other_powers_stay(exponents: list[float]) -> None:
    net = Network(ROWS, NUMBERS)
    functions = net("Pow", net.at_end(net("Abs", "x")), net.held(exponents))
    assert "Pow" in read(net, functions, len(exponents), numbers(0.5, 2))
