"""Powers by a number in the steps that runtimes compute fast."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.arithmetic.floats import FLOAT
from superopt.evaluate import evaluate
from superopt.operators.constant import filled
from superopt.operators.definitions.powers import by_an_exponential, by_products_and_roots
from superopt.operators.functions import Pow
from superopt.operators.powers import LARGEST
from superopt.term import Term, subterms, variable
from tests.models import assert_same, model, weight

X = variable("x", (404,))
QUARTERS = [q / 4 for q in range(-13, 26) if q]
"""From −3.25 to 6.25."""
OTHERS = [-1.1, -1 / 3, 0.1, 0.3, 1 / 2.92, 2.2, 2.4, 2.92]
EDGES = [0.0, np.inf, np.nan]
Definition = Callable[[Pow, Term, Term], "Term | None"]


def steps(define: Definition, exponent: float) -> Term:
    found = define(Pow(), X, filled(exponent, X.shape))
    assert found is not None
    assert not any(isinstance(t.operator, Pow) for t in subterms(found))
    return found


def values(term: Term, x: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(all="ignore"):
        return evaluate(term, FLOAT, {X: x})


CASES = [(by_products_and_roots, q) for q in QUARTERS]
CASES += [(by_an_exponential, q) for q in [*OTHERS, *QUARTERS] if not q.is_integer()]


@pytest.mark.parametrize(("define", "exponent"), CASES)
def test_the_steps_are_the_power_of_any_finite_number_and_of_what_is_none(define: Definition, exponent: float) -> None:
    x = np.concatenate([np.linspace(-50.0, 50.0, 401), EDGES])
    found, wanted = values(steps(define, exponent), x), values(Pow()(X, filled(exponent, X.shape)), x)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("exponent", [0.0, 1 / 3, LARGEST + 1.0, np.inf, np.nan])
def test_what_is_no_small_number_of_quarters_has_no_roots(exponent: float) -> None:
    assert by_products_and_roots(Pow(), X, filled(exponent, X.shape)) is None


@pytest.mark.parametrize("exponent", [0.0, 2.0, -3.0, 100.0, np.inf, np.nan])
def test_whole_powers_and_what_is_not_finite_have_no_logarithms(exponent: float) -> None:
    """A negative number has whole powers, and no logarithm."""
    assert by_an_exponential(Pow(), X, filled(exponent, X.shape)) is None


def test_an_exponent_that_is_no_number_of_the_model_has_no_steps() -> None:
    y = variable("y", X.shape)
    assert by_products_and_roots(Pow(), X, y) is None
    assert by_an_exponential(Pow(), X, y) is None


@pytest.mark.parametrize("exponent", [np.float32(4), np.float32(-0.5), np.float32(2.4), np.int64(4), np.float64(5)])
def test_powers_in_a_network_are_computed_faster_and_are_the_same(exponent: np.generic, options: Options) -> None:
    """As pooling by powers has them: of what is positive, up to a bound."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Clip", ["a", "least"], ["b"]),
        helper.make_node("Pow", ["b", "p"], ["c"]),
        helper.make_node("MatMul", ["c", "w"], ["y"]),
    ]
    ends = [(name, TensorProto.FLOAT, [512, 128]) for name in "xy"]
    constants = {"w": weight(128, 128), "least": np.array(0.01, np.float32), "p": np.array(exponent)}
    given = model(nodes, ends[:1], ends[1:], constants)
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert "Pow" not in {n.op_type for n in result.proto().graph.node}
    assert_same(result.proto(), given)
