"""Softplus, mish and elu in the steps that runtimes compute fast."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.arithmetic.floats import FLOAT
from superopt.evaluate import evaluate
from superopt.operators.activations import Elu, Mish
from superopt.operators.definitions.exponents import elu_by_a_maximum, mish_by_an_exponential, softplus_in_steps
from superopt.operators.functions import Softplus
from superopt.term import Term, variable
from tests.models import assert_same, model, weight

X = variable("x", (401,))


def some(term: Term | None) -> Term:
    assert term is not None
    return term


STEPS: dict[str, tuple[Term, Term]] = {
    "softplus": (softplus_in_steps(Softplus(), X), Softplus()(X)),
    "elu": (some(elu_by_a_maximum(Elu(), X)), Elu()(X)),
    "elu of half": (some(elu_by_a_maximum(Elu(0.5), X)), Elu(0.5)(X)),
    "mish": (mish_by_an_exponential(Mish(), X), Mish()(X)),
}


def values(term: Term, x: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(all="ignore"):
        return evaluate(term, FLOAT, {X: x})


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e3, 1e30])
def test_the_steps_are_the_function_where_its_exponential_overflows_too(name: str, scale: float) -> None:
    steps, function = STEPS[name]
    x = np.linspace(-scale, scale, 401)
    found, wanted = values(steps, x), values(function, x)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", STEPS)
def test_what_is_infinite_or_no_number_stays_so(name: str) -> None:
    steps, function = STEPS[name]
    x = np.resize([np.inf, -np.inf, np.nan], 401)
    np.testing.assert_array_equal(values(steps, x), values(function, x))


def test_an_elu_steeper_than_its_line_is_no_maximum_with_it() -> None:
    assert elu_by_a_maximum(Elu(1.5), X) is None


@pytest.mark.parametrize(
    "spelled", [["Softplus"], ["Softplus", "Tanh", "Mul"], ["Elu"]], ids=["softplus", "mish", "elu"]
)
def test_activations_of_a_network_are_computed_faster_and_are_the_same(spelled: list[str], options: Options) -> None:
    """Mish as exporters write it out, for operator sets that have none. The products are narrow, so that the activation
    is what takes time wherever they are fast or slow.
    """
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h0"])]
    nodes += [helper.make_node(op, [f"h{i}"], [f"h{i + 1}"]) for i, op in enumerate(spelled) if op != "Mul"]
    if spelled[-1] == "Mul":
        nodes.append(helper.make_node("Mul", ["h0", f"h{len(nodes) - 1}"], [f"h{len(nodes)}"]))
    nodes.append(helper.make_node("MatMul", [nodes[-1].output[0], "v"], ["y"]))
    ends = [(name, TensorProto.FLOAT, [2048, 8]) for name in "xy"]
    given = model(nodes, ends[:1], ends[1:], {"w": weight(8, 128), "v": weight(128, 8)})
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert not {"Softplus", "Elu"} & {n.op_type for n in result.proto().graph.node}
    assert_same(result.proto(), given)
