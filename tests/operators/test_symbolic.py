"""Terms over symbols say what they ask of them, and are made anew at other sizes."""

from __future__ import annotations

from superopt.demands import assuming
from superopt.dim import Condition, symbol
from superopt.operators.layout import Concat
from superopt.operators.matmul import MatMul
from superopt.operators.picks import Slice
from superopt.operators.symbolic import all_symbols, conditions, resize
from superopt.term import Term, variable

M, K, N, R = map(symbol, "mknr")


def test_what_the_inputs_must_meet_is_told() -> None:
    x, y = variable("x", (M, K)), variable("y", (N, R))
    with assuming():
        term = MatMul()(x, y)
    assert conditions(term) == [Condition("=", K, N)]
    assert all_symbols(term) == ["m", "k", "n", "r"]


def test_resizing_renews_variables_and_attributes() -> None:
    x, small = (variable("x", shape, constant=True) for shape in ((M, N), (2, 5)))
    with assuming():
        term: Term = Concat(1)(Slice(1, 0, K)(x), x)
    (sized,) = resize((term,), {"m": 2, "n": 5, "k": 3})
    assert sized.shape == (2, 8)
    assert sized is Concat(1)(Slice(1, 0, 3)(small), small)
