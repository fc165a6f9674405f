"""Functions of numbers are laid out with those that are alike beside each other, where nothing but a sum reads them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from superopt.onnx_io import load, understand
from tests.onnx_io.networks import assert_close, run
from tests.onnx_io.otherwise.functions import Array, Network
from tests.onnx_io.otherwise.reading import operators_of

ROWS, NUMBERS, MANY = 4, 20, 6
GRID = np.linspace(-2, 2, MANY)


def numbers(rows: int = ROWS, many: int = NUMBERS) -> Array:
    return np.random.default_rng(0).standard_normal((rows, many)).astype(np.float32)


def bells(net: Network, grid: object = GRID, x: str = "x") -> str:
    """Bells around the places of a grid."""
    far = net("Sub", net.at_end(x), net.held(grid))
    return net("Exp", net("Neg", net("Mul", far, far)))


def shapes(source: onnx.ModelProto, op_type: str) -> list[list[int | str]]:
    """The shapes of what nodes of an operator give as a model is read."""
    made = onnx.shape_inference.infer_shapes(ir.to_proto(understand(load(source)).model))
    names = {node.output[0] for node in made.graph.node if node.op_type == op_type}
    told = [v for v in (*made.graph.value_info, *made.graph.output) if v.name in names]
    return [[d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in told]


def is_laid(source: onnx.ModelProto, x: Array | None = None) -> bool:
    """Whether functions stand before numbers, in a model that computes the same."""
    operators_of(source, {"x": numbers() if x is None else x})
    return [shape[-2:] for shape in shapes(source, "Exp")] == [[MANY, NUMBERS]]


@pytest.mark.parametrize("spelled", ["gemm", "matmul", "einsum", "apart"])
def test_functions_stand_before_numbers(spelled: str) -> None:
    net = Network(ROWS, NUMBERS)
    assert is_laid(net.model(net.layer(bells(net), MANY, spelled)))


@pytest.mark.parametrize("spelled", ["gemm", "matmul", "einsum", "apart"])
@pytest.mark.parametrize("rows", [1, 5])
def test_any_number_of_rows(spelled: str, rows: int) -> None:
    net = Network("rows", NUMBERS)
    assert is_laid(net.model(net.layer(bells(net), MANY, spelled)), numbers(rows))


@pytest.mark.parametrize("steps", [1, 3])
def test_rows_may_have_steps_of_any_number(steps: int) -> None:
    net = Network("rows", NUMBERS, more=("steps",))
    x = np.random.default_rng(0).standard_normal((2, steps, NUMBERS)).astype(np.float32)
    assert is_laid(net.model(net.layer(bells(net), MANY, "matmul")), x)


def test_each_number_may_have_a_grid_of_its_own() -> None:
    net = Network(ROWS, NUMBERS)
    assert is_laid(net.model(net.layer(bells(net, net.draw.standard_normal((NUMBERS, MANY))), MANY)))


def test_few_numbers_stay_before_many_functions() -> None:
    net = Network(ROWS, 5)
    source = net.model(net.layer(bells(net), MANY))
    operators_of(source, {"x": numbers(many=5)})
    assert shapes(source, "Exp") == [[ROWS, 5, MANY]]


def test_functions_that_are_given_stay() -> None:
    net = Network(ROWS, NUMBERS)
    functions = bells(net)
    y = net.layer(functions, MANY)
    assert not is_laid(net.model(y, functions, shapes=[(ROWS, 3), (ROWS, NUMBERS, MANY)]))


def test_functions_that_something_else_reads_stay() -> None:
    net = Network(ROWS, NUMBERS)
    functions = bells(net)
    most = net("ReduceMax", functions, axes=[-1], keepdims=0)
    y = net.layer(functions, MANY)
    assert not is_laid(net.model(y, most, shapes=[(ROWS, 3), (ROWS, NUMBERS)]))


def test_functions_that_two_layers_sum_up_are_laid_out_for_both() -> None:
    net = Network(ROWS, NUMBERS)
    functions = bells(net)
    kinds = operators_of(
        net.model(net("Add", net.layer(functions, MANY), net.layer(functions, MANY, "einsum"))), {"x": numbers()}
    )
    assert "Einsum" not in kinds


def test_what_mixes_numbers_stays() -> None:
    net = Network(ROWS, NUMBERS)
    functions = net("Softmax", bells(net), axis=1)
    assert not is_laid(net.model(net.layer(functions, MANY)))


def test_sizes_of_functions_may_be_read() -> None:
    net = Network("rows", NUMBERS)
    functions = bells(net)
    rows = net("Slice", net("Shape", functions), net.held([0], "int64"), net.held([1], "int64"))
    flat = net("Reshape", functions, net("Concat", rows, net.held([-1], "int64"), axis=0))
    source = net.model(net("MatMul", flat, net.weights(NUMBERS * MANY, 3)))
    assert is_laid(source)


def test_functions_of_very_many_steps_stay() -> None:
    net = Network(ROWS, NUMBERS)
    functions = bells(net)
    for _ in range(400):
        functions = net("Sin", functions)
    assert not is_laid(net.model(net.layer(functions, MANY)))


def recursion(net: Network, join: Callable[[Network, list[str]], str]) -> str:
    """Polynomials, each of the two before it."""
    made = [net("Mul", "x", net.held(0.0)), "x"]
    made[0] = net("Add", made[0], net.held(1.0))
    while len(made) < MANY:
        made.append(net("Sub", net("Mul", net("Mul", "x", net.held(1.5)), made[-1]), made[-2]))
    return join(net, made)


def test_functions_that_are_stacked_are_not_copied_twice() -> None:
    net = Network(ROWS, NUMBERS)
    functions = recursion(net, lambda net, made: net("Concat", *map(net.at_end, made), axis=-1))
    kinds = operators_of(net.model(net.layer(functions, MANY)), {"x": numbers()})
    assert kinds.count("Concat") == 1
    assert "Unsqueeze" not in kinds


def assigned(net: Network, made: list[str]) -> str:
    """Functions that are put into ones one after the other."""
    size, whole = [net.rows, net.numbers, len(made)], net.held(np.ones((ROWS, NUMBERS, MANY)))
    for i, function in enumerate(made[1:], 1):
        places = net.held(np.full((*size[:2], 1), i), "int64")
        whole = net("ScatterElements", whole, places, net.at_end(function), axis=2)
    return whole


def test_functions_that_are_assigned_are_beside_each_other_and_ones_are_added_up_before() -> None:
    net = Network(ROWS, NUMBERS)
    functions = recursion(net, assigned)
    source = net.model(net.layer(functions, MANY, "einsum"))
    kinds = operators_of(source, {"x": numbers()})
    assert not {"Einsum", "ScatterElements"} & set(kinds)
    assert [NUMBERS * (MANY - 1), 3] in shapes(source, "Reshape")


def test_kinds_of_functions_that_are_summed_up_one_behind_the_other_are_beside_each_other() -> None:
    net = Network(ROWS, NUMBERS)
    angles = net("Mul", net("Reshape", "x", net.held([ROWS, 1, NUMBERS, 1], "int64")), net.held(GRID))
    sizes = net.held([1, ROWS, NUMBERS, MANY], "int64")
    both = net("Concat", *(net("Reshape", net(kind, angles), sizes) for kind in ("Cos", "Sin")), axis=0)
    y = net("Einsum", both, net.weights(2, 3, NUMBERS, MANY), equation="dbik,djik->bj")
    kinds = operators_of(net.model(y), {"x": numbers()})
    assert "Einsum" not in kinds
    assert kinds.count("Cos") == kinds.count("Sin") == 1


@pytest.mark.parametrize("axis", [1, -4, 4])
def test_what_is_joined_along_another_axis_than_is_summed_up_first_stays(axis: int) -> None:
    net = Network(ROWS, NUMBERS, more=(2,))
    sizes = net.held([1, ROWS, 2, NUMBERS, MANY], "int64")
    both = net("Concat", *(net("Reshape", f(net), sizes) for f in (bells, bells)), axis=axis)
    y = net("Einsum", both, net.weights(1, 3, NUMBERS, MANY * (2 if axis == 4 else 1)), equation="gabik,gjik->abj")
    source = net.model(y, shapes=[(ROWS if axis == 4 else 2 * ROWS, 2, 3)])
    x = np.random.default_rng(0).standard_normal((ROWS, 2, NUMBERS)).astype(np.float32)
    assert "Einsum" in operators_of(source, {"x": x})


def test_constants_that_are_repeated_for_each_number_stay() -> None:
    net = Network(ROWS, NUMBERS)
    functions = net("Pow", net.at_end(), net.held(np.arange(MANY)))
    y = net("Einsum", functions, net.weights(1, 3, MANY), equation="bid,iod->bo")
    assert "Einsum" in operators_of(net.model(y), {"x": numbers()})


def test_functions_times_constants_of_each_result_are_one_product() -> None:
    net = Network(ROWS, NUMBERS)
    angles = net("Mul", net("Reshape", "x", net.held([ROWS, 1, NUMBERS, 1], "int64")), net.held(GRID))
    axes = net.held([-2, -1], "int64")
    sums = [
        net("ReduceSum", net("Mul", net(kind, angles), net.weights(1, 3, NUMBERS, MANY)), axes, keepdims=0)
        for kind in ("Cos", "Sin")
    ]
    assert "ReduceSum" not in operators_of(net.model(net("Add", *sums)), {"x": numbers()})


@pytest.mark.parametrize("seed", range(12))
def test_functions_that_are_drawn(seed: int) -> None:
    draw = np.random.default_rng(seed)
    many, count = int(draw.integers(1, 9)), int(draw.integers(2, 9))
    net = Network([3, "rows"][seed % 2], many, seed)
    values = [net.at_end(), net.at_end(net("Tanh", "x"))]
    ranks = [(), (1,), (count,), (many, count), (many, 1), (1, many, count)]
    for _ in range(int(draw.integers(3, 9))):
        held = net.held(draw.uniform(0.5, 2.0, ranks[draw.integers(len(ranks))]))
        pair = [values[draw.integers(len(values))], values[-1]]
        kind = ["Add", "Sub", "Mul", "Div", "Max", "Sin", "Neg", "Exp", "Add2", "Less"][draw.integers(10)]
        if kind in ("Sin", "Neg"):
            values.append(net(kind, pair[0]))
        elif kind == "Exp":
            values.append(net("Exp", net("Neg", net("Abs", pair[0]))))
        elif kind == "Less":
            values.append(net("Where", net("Less", pair[0], held), pair[1], net.held(0.5)))
        else:
            values.append(net("Add", *pair) if kind == "Add2" else net(kind, pair[0], held))
    whole = net("Add", values[-1], net.held(draw.standard_normal((many, count))))
    source = net.model(net.layer(whole, count, ["gemm", "matmul", "einsum", "apart"][seed % 4]))
    made = ir.to_proto(understand(load(source)).model)
    x = draw.standard_normal((3, many)).astype(np.float32)
    assert_close(run(made, {"x": x}), run(source, {"x": x}))
