"""A value that is cut, merged and moved from another one is told by places of that."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.onnx_io.otherwise.maps.laid import Digit, Laid, laid
from superopt.operators.layout import Reshape, Transpose
from superopt.operators.picks import Slice
from superopt.term import Operator, Term, make, variable

CHAINS: dict[str, tuple[tuple[int, ...], list[Operator]]] = {
    "an axis": ((4, 6), [Slice(1, 2, 5)]),
    "parts of it": ((2, 12, 4), [Slice(1, 3, 9), Reshape((2, 2, 3, 4)), Transpose((0, 3, 1, 2)), Reshape((8, 2, 3))]),
    "heads": ((1, 10, 8), [Reshape((1, 10, 2, 4)), Transpose((0, 2, 3, 1)), Reshape((2, 4, 10)), Slice(2, 4, 10)]),
    "two axes as one": ((3, 4, 5), [Transpose((1, 0, 2)), Reshape((12, 5)), Reshape((2, 6, 5)), Reshape((4, 3, 5))]),
    "axes of one": ((1, 3, 1, 2), [Reshape((3, 2)), Transpose((1, 0)), Reshape((1, 2, 3, 1))]),
}


def of(shape: tuple[Dim, ...], chain: list[Operator]) -> Laid:
    """Where what a chain of operators makes of a value lies, each step by a name of its own."""
    value, made = variable("x", shape, "float32"), dict[str, Term]()
    for i, operator in enumerate(chain):
        made[f"y{i}"] = make(operator, (value,))
        value = variable(f"y{i}", made[f"y{i}"].shape, "float32")
    return laid(value, made)


@pytest.mark.parametrize(("shape", "chain"), CHAINS.values(), ids=CHAINS)
def test_places_are_those_of_the_elements(shape: tuple[int, ...], chain: list[Operator]) -> None:
    expected = np.arange(np.prod(shape)).reshape(shape)
    for operator in chain:
        expected = operator.eval(None, expected)  # type: ignore[arg-type]
    found = of(shape, chain)
    digits = [digit for axis in found.axes for digit in axis]
    steps = [[i * digit.stride for i in range(int(digit.size))] for digit in digits]  # type: ignore[call-overload]
    assert [found.start + sum(each) for each in product(*steps)] == expected.reshape(-1).tolist()
    sizes = [int(np.prod([digit.size for digit in axis])) for axis in found.axes]  # type: ignore[arg-type]
    assert sizes == list(expected.shape)


def test_an_open_size_is_one_digit() -> None:
    n = symbol("n")
    with assuming():
        found = of((n, 10, 8), [Reshape((n, 10, 2, 4)), Transpose((0, 2, 3, 1)), Reshape((2 * n, 4, 10))])
    assert found.of == "x"
    assert found.axes == ((Digit(n, 80), Digit(2, 4)), (Digit(4, 1),), (Digit(10, 8),))


@pytest.mark.parametrize(
    "chain",
    [
        [Transpose((1, 0)), Reshape((4, 6)), Slice(0, 1, 3)],  # an axis of two strides is not cut
        [Transpose((1, 0)), Reshape((8, 3))],  # nor one of four in parts of three
    ],
)
def test_what_is_not_told_lies_in_itself(chain: list[Operator]) -> None:
    assert of((4, 6), chain).of != "x"
