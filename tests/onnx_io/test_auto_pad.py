"""What `auto_pad` adds along axes of open sizes: known where it is the same for all."""

from __future__ import annotations

import itertools

import numpy as np
import onnx_ir as ir
import pytest

from superopt.onnx_io import load, rewritten, understand
from tests.onnx_io.models import model, terms
from tests.onnx_io.networks import assert_close, run

OPERATORS = {
    "Conv": "y = Conv<{how}>(x, k)",
    "MaxPool": "y = MaxPool<{how}, kernel_shape = [{window}]>(x)",
    "AveragePool": "y = AveragePool<{how}, kernel_shape = [{window}]>(x)",
}


def text(operator: str, mode: str, window: int, step: int) -> str:
    how = f'auto_pad = "{mode}", strides = [{step}]'
    numbers = ", ".join(str(i % 5 - 2) for i in range(9 * window))
    inside = OPERATORS[operator].format(how=how, window=window)
    return f"g (float[n, 3, w] x) => (float[n, 3, v] y) <float[3, 3, {window}] k = {{{numbers}}}> {{ {inside} }}"


KNOWN = [("Conv", 1, 2), *((o, w, 1) for o, w in itertools.product(OPERATORS, (1, 2, 3, 4)))]


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("operator", "window", "step"), KNOWN)
def test_pads_that_are_the_same_for_all_sizes_are_known(operator: str, window: int, step: int, mode: str) -> None:
    source = model(text(operator, mode, window, step))
    program = understand(load(source))
    assert program.summary.opaque == {}
    made = ir.to_proto(rewritten(program, terms(program), {}))
    for size in range(1, 8):
        given = {"x": np.random.default_rng(size).standard_normal((2, 3, size)).astype(np.float32)}
        assert_close(run(made, given), run(source, given))


@pytest.mark.parametrize(("window", "step"), [(3, 2), (2, 2), (1, 3)])
def test_pads_that_depend_on_the_size_leave_a_convolution_as_it_is(window: int, step: int) -> None:
    assert list(understand(load(model(text("Conv", "SAME_UPPER", window, step)))).summary.opaque) == ["Conv"]
