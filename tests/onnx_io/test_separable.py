"""Convolutions of each channel by a column times a row are read as one axis after the other."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.arithmetic.floats import FLOAT
from superopt.evaluate import evaluate, sample
from superopt.onnx_io import Program, load, understand
from superopt.onnx_io.separable import factors
from superopt.operators.conv import Conv
from superopt.term import Term, subterms, variable
from tests.models import assert_same, model, weight

FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "pads of each side": {"pads": [1, 2, 3, 0]},
    "steps": {"strides": [2, 3], "pads": [2, 2, 2, 2]},
    "gaps": {"dilations": [1, 2], "pads": [0, 4, 0, 4]},
    "two of each channel": {"twice": True},
}
LARGE = 5, 7


def products(channels: int, rows: int, columns: int) -> NDArray[np.float32]:
    column, row = weight(channels, rows), weight(channels, columns, seed=1)
    return (column[:, None, :, None] * row[:, None, None, :]).astype(np.float32)


def convolution(k: NDArray[Any], channels: int = 3, times: int = 1, **attributes: Any) -> onnx.ModelProto:
    """Each channel of a picture by itself, as often as asked for, by one kernel."""
    names = ["x", *(f"y{i}" for i in range(times))]
    nodes = [
        helper.make_node("Conv", [a, "k"], [b], group=channels, **attributes) for a, b in itertools.pairwise(names)
    ]
    of = helper.np_dtype_to_tensor_dtype(k.dtype)
    return model(nodes, [("x", of, [1, channels, 24, 27])], [(names[-1], of, ["a", "b", "c", "d"])], {"k": k})


def convs(program: Program) -> list[Term]:
    terms = [t for step in program.steps for t in step.terms]
    return [t for t in subterms(*filter(None, terms)) if isinstance(t.operator, Conv)]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_along_one_axis_and_then_the_other_it_is_the_same(form: dict[str, Any]) -> None:
    """In numbers of 64 bits: by as much as the products of columns and rows were rounded."""
    attributes, k = dict(form), products(6 if "twice" in form else 3, *LARGE)
    attributes.pop("twice", None)
    program = understand(load(convolution(k, **attributes)))
    (read,) = (s.terms[0] for s in program.steps)
    assert isinstance(read, Term)
    first, second = (t for t in subterms(read) if isinstance(t.operator, Conv))
    assert [first.inputs[1].shape[2:], second.inputs[1].shape[2:]] == [(5, 1), (1, 7)]
    assert isinstance(first.operator, Conv)
    kernel = variable("k", k.shape, "float32", constant=True)
    whole = Conv(
        tuple(attributes.get("strides", (1, 1))),
        tuple(attributes.get("pads", (0, 0, 0, 0))),
        tuple(attributes.get("dilations", (1, 1))),
        3,
    )(first.inputs[0], kernel)
    assert whole.type == read.type
    values = {**sample((first.inputs[0],), FLOAT, 0), kernel: k.astype(np.float64)}
    values |= {t.inputs[1]: program.constants.data(t.inputs[1].label) for t in (first, second)}
    np.testing.assert_allclose(evaluate(read, FLOAT, values), evaluate(whole, FLOAT, values), rtol=0, atol=1e-6)


def test_columns_and_rows_are_the_same_for_all_that_read_a_kernel() -> None:
    read = convs(understand(load(convolution(products(3, *LARGE), times=2))))
    assert len(read) == 4
    assert len({t.inputs[1] for t in read}) == 2


@pytest.mark.parametrize(
    "k",
    [
        pytest.param(weight(3, 1, *LARGE), id="no product"),
        pytest.param(products(3, 3, 3), id="small"),
        pytest.param(products(3, 1, 9), id="one row"),
        pytest.param(products(3, *LARGE).astype(np.float16), id="of 16 bits"),
        pytest.param(np.full((3, 1, *LARGE), np.inf, np.float32), id="infinite"),
    ],
)
def test_others_are_read_as_they_are(k: NDArray[Any]) -> None:
    program = understand(load(convolution(k)))
    assert all(t.inputs[1].label == "k" for t in convs(program))


def test_one_element_that_differs_is_no_rounding() -> None:
    k = products(3, *LARGE)
    assert factors(k) is not None
    k[1, 0, 2, 3] += np.float32(2e-6) * np.abs(k[1]).max()
    assert factors(k) is None


def test_zeros_are_zeros_times_zeros() -> None:
    k = products(3, *LARGE)
    k[1] = 0
    found = factors(k)
    assert found is not None
    assert not (found[0][1] * found[1][1]).any()


def test_how_alike_images_are_is_told_faster_and_the_same(options: Options) -> None:
    """Their local means and products, blurred by a Gaussian bell, as SSIM has them."""
    bell = np.exp(-((np.arange(11) - 5) ** 2) / 4.5)
    k = np.broadcast_to((np.outer(bell, bell) / bell.sum() ** 2).astype(np.float32), (3, 1, 11, 11))
    nodes = [
        helper.make_node("Mul", ["x", "z"], ["xz"]),
        helper.make_node("Conv", ["x", "k"], ["mx"], group=3),
        helper.make_node("Conv", ["z", "k"], ["mz"], group=3),
        helper.make_node("Conv", ["xz", "k"], ["mxz"], group=3),
        helper.make_node("Mul", ["mx", "mz"], ["both"]),
        helper.make_node("Sub", ["mxz", "both"], ["y"]),
    ]
    ends = [(name, TensorProto.FLOAT, [1, 3, 96, 96]) for name in "xz"]
    given = model(nodes, ends, [("y", TensorProto.FLOAT, [1, 3, 86, 86])], {"k": k})
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert result.report.measured is not None
    assert result.report.measured.speedup > 3
    assert_same(result.proto(), given)
