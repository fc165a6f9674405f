"""Splines over knots that are equally far apart are told by distances; others stay what they are."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import superopt
from superopt.api import Options
from superopt.onnx_io import load, understand
from tests.onnx_io.networks import assert_close, run
from tests.onnx_io.otherwise.functions import Array, Network, even, exact_splines, splines
from tests.onnx_io.otherwise.reading import operators_of

COMPARES = {"Greater", "GreaterOrEqual", "Less", "LessOrEqual"}
CELLS, NUMBERS = 5, 20


def numbers(rows: int, many: int, knots: Array, seed: int = 0) -> Array:
    """Numbers in all cells and beyond them, very large ones, and all knots."""
    draw = np.random.default_rng(seed)
    x = draw.uniform(-3, 3, (rows, many)).astype(np.float32)
    every = np.concatenate([knots.reshape(-1), [0.0, 1e30, -1e30]]).astype(np.float32)
    places = draw.permutation(x.size)[: min(every.size, x.size // 2)]
    x.reshape(-1)[places] = draw.permutation(every)[: len(places)]
    return x


def read(net: Network, knots: Array, degree: int, spelled: str = "gemm", rows: int = 6, **how: object) -> list[str]:
    """The operators of a layer of splines as it is read."""
    functions, many = splines(net, knots, degree, **how)  # type: ignore[arg-type]
    source = net.model(net.layer(functions, many, spelled))
    return operators_of(source, {"x": numbers(rows, net.numbers, knots)})


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("spelled", ["gemm", "matmul", "einsum", "apart"])
def test_nothing_is_compared_with_knots(degree: int, spelled: str) -> None:
    kinds = read(Network(6, NUMBERS), even(-1, 1, CELLS, degree), degree, spelled)
    assert not COMPARES & set(kinds)
    assert kinds.count("HardSigmoid") == degree // 2 + 1


@pytest.mark.parametrize("closed", ["low", "high"])
def test_a_knot_belongs_to_either_cell(closed: str) -> None:
    kinds = read(Network(6, NUMBERS), even(-1, 1, CELLS, 3), 3, closed=closed)
    assert not COMPARES & set(kinds)


def test_what_guards_from_numbers_that_are_none_goes() -> None:
    kinds = read(Network(6, NUMBERS), even(-1, 1, CELLS, 3), 3, guarded=True)
    assert not {"IsNaN", "IsInf", "Where"} & set(kinds)


@pytest.mark.parametrize("many", [1, 2, 7, 8, 9])
def test_any_number_of_numbers(many: int) -> None:
    assert "HardSigmoid" in read(Network(6, many), even(-1, 1, CELLS, 3), 3)


@pytest.mark.parametrize("rows", [1, 6])
def test_any_number_of_rows(rows: int) -> None:
    assert "HardSigmoid" in read(Network("rows", NUMBERS), even(-1, 1, CELLS, 3), 3, rows=rows)


def test_each_number_may_have_a_grid_of_its_own() -> None:
    knots = np.stack([even(-1 - i / 7, 1 + i / 3, CELLS, 3) for i in range(NUMBERS)])
    assert not COMPARES & set(read(Network(6, NUMBERS), knots, 3))


def test_a_grid_so_fine_that_its_knots_are_rounded_is_compared() -> None:
    assert COMPARES & set(read(Network(6, NUMBERS), even(-1, 1, 300, 3), 3))


def test_an_uneven_grid_is_compared() -> None:
    knots = even(-1, 1, CELLS, 3)
    knots[4] += 0.01
    assert COMPARES & set(read(Network(6, NUMBERS), knots, 3))


def test_cells_that_share_a_knot_are_none() -> None:
    assert COMPARES & set(read(Network(6, NUMBERS), even(-1, 1, CELLS, 2), 2, closed="both"))


def test_weights_that_are_no_recursion_stay() -> None:
    assert COMPARES & set(read(Network(6, NUMBERS), even(-1, 1, CELLS, 3), 3, factor=1.01))


def test_steps_are_compared() -> None:
    assert COMPARES & set(read(Network(6, NUMBERS), even(-1, 1, CELLS, 0), 0))


def test_of_high_degrees_no_more_than_the_last_steps_are_written_out() -> None:
    kinds = read(Network(6, NUMBERS), even(-1, 1, CELLS, 6), 6)
    assert kinds.count("HardSigmoid") == 3
    assert kinds.count("Slice") == 2


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("cells", [3, 8, 20])
def test_no_digits_are_lost(degree: int, cells: int) -> None:
    knots = even(-1, 1, cells, degree)
    net = Network(300, 40)
    functions, many = splines(net, knots, degree)
    source = net.model(net("Reshape", functions, net.held([-1, 40 * many], "int64")), shapes=[(300, 40 * many)])
    layer = Network(300, 40)
    weighed, _ = splines(layer, knots, degree)
    ones = np.zeros((40 * many, 3))
    ones[:many, 0] = np.arange(1, many + 1)  # of the first number
    held = layer.held(ones)
    flat = layer("Reshape", weighed, layer.held([-1, 40 * many], "int64"))
    made = ir.to_proto(understand(load(layer.model(layer("MatMul", flat, held)))).model)
    x = np.random.default_rng(0).uniform(-1.5, 1.5, (300, 40)).astype(np.float32)
    wanted = exact_splines(x, knots, degree)
    theirs = np.abs(run(source, {"x": x})[0].reshape(wanted.shape) - wanted).max()
    ours = np.abs(run(made, {"x": x})[0][:, 0] - wanted[:, 0] @ np.arange(1, many + 1)).max() / many
    assert any(node.op_type == "HardSigmoid" for node in made.graph.node)
    assert ours <= 4 * theirs + 2e-6, (ours, theirs)


def test_a_value_that_is_also_given_stays() -> None:
    net = Network(6, NUMBERS)
    functions, many = splines(net, even(-1, 1, CELLS, 3), 3)
    y = net.layer(functions, many)
    source = net.model(y, functions, shapes=[(6, 3), (6, NUMBERS, many)])
    assert COMPARES & set(operators_of(source, {"x": numbers(6, NUMBERS, even(-1, 1, CELLS, 3))}))


def test_splines_of_two_inputs_are_none() -> None:
    net = Network(6, NUMBERS)
    knots = even(-1, 1, CELLS, 1)
    x3, other = net.at_end(), net.at_end(net("Neg", "x"))
    cells = net("And", net("GreaterOrEqual", x3, net.held(knots[:-1])), net("Less", other, net.held(knots[1:])))
    flat = net("Reshape", net("Cast", cells, to=1), net.held([6, -1], "int64"))
    y = net("MatMul", flat, net.weights(NUMBERS * (len(knots) - 1), 3))
    assert COMPARES & set(operators_of(net.model(y), {"x": numbers(6, NUMBERS, knots)}))


def test_opsets_before_an_operator_do_not_get_it() -> None:
    net = Network(6, NUMBERS)
    functions, many = splines(net, even(-1, 1, CELLS, 3), 3)
    source = net.model(net.layer(functions, many), opset=13)
    made = ir.to_proto(understand(load(source)).model)
    onnx.checker.check_model(made, full_check=True)
    assert [o.version for o in made.opset_import] == [13]


def test_a_layer_of_splines_is_computed_faster_and_is_the_same(options: Options) -> None:
    net = Network(2, 150)
    functions, many = splines(net, even(-1, 1, CELLS, 3), 3)
    source = net.model(net.layer(functions, many))
    result = superopt.optimize(source, options)
    assert result.report.outcome == "faster"
    assert result.report.measured is not None
    assert result.report.measured.speedup > 1.5
    assert_close(run(result.proto()), run(source))
