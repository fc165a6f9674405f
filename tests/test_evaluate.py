"""Evaluation: a chain of one operator is evaluated at once, and its value is that of its steps."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.arithmetic.carrier import Array, Carrier
from superopt.arithmetic.field import FIELD
from superopt.arithmetic.floats import FLOAT
from superopt.evaluate import evaluate_all, sample
from superopt.operators.layout import Concat
from superopt.operators.pointwise import Add, Relu
from superopt.term import Term, variable

X, Y, Z = (variable(name, (2, n)) for name, n in zip("xyz", (3, 1, 4), strict=True))
LONG = Concat(1)(Concat(1)(X, Y), Concat(1)(Z, X))
TWICE = Concat(0)(Concat(0)(X, X), Concat(0)(X, X))
SHARED = Concat(1)(Y, Z)
CASES: dict[str, tuple[Term, ...]] = {
    "a chain": (LONG,),
    "one part twice": (TWICE,),
    "along two axes": (Concat(0)(LONG, LONG),),
    "a part that is needed alone": (Concat(1)(X, SHARED), Relu()(SHARED)),
    "a part that is an output": (Concat(1)(X, SHARED), SHARED),
    "parts of sums": (Add()(Concat(1)(X, SHARED), Concat(1)(SHARED, X)),),
}


def in_steps(term: Term, ring: Carrier, values: dict[Term, Array]) -> Array:
    if term in values:
        return values[term]
    return term.operator.eval(ring, *(in_steps(i, ring, values) for i in term.inputs))


@pytest.mark.parametrize("ring", [FIELD, FLOAT], ids=lambda r: r.name)
@pytest.mark.parametrize("case", CASES)
def test_a_chain_gives_what_its_steps_give(case: str, ring: Carrier) -> None:
    roots = CASES[case]
    values = sample(roots, ring, 0)
    for root, found in zip(roots, evaluate_all(roots, ring, values), strict=True):
        assert np.array_equal(found, in_steps(root, ring, values))


def test_a_chain_is_evaluated_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    whole = Concat.eval_chain

    def counted(self: Concat, ring: Carrier, *arrays: Array) -> Array:
        counts.append(len(arrays))
        return whole(self, ring, *arrays)

    monkeypatch.setattr(Concat, "eval_chain", counted)
    evaluate_all((LONG,), FLOAT, sample((LONG,), FLOAT, 0))
    assert counts == [4]


def test_a_part_whose_value_is_given_is_taken_as_given() -> None:
    given = sample((LONG,), FLOAT, 0) | {Concat(1)(X, Y): np.zeros((2, 4))}
    (found,) = evaluate_all((LONG,), FLOAT, given)
    assert not found[:, :4].any()
    assert found[:, 4:].all()
