"""Proofs element by element: what operators declare of elements is what they compute, and nothing wrong proves."""

from __future__ import annotations

import re

import numpy as np
import pytest
import z3

from superopt.arithmetic.floats import FLOAT
from superopt.operators.declare import CATALOGUE
from superopt.operators.declared import Declared
from superopt.operators.facts import known_facts, supposing
from superopt.operators.pointwise import Relu
from superopt.rules.format import parse_file
from superopt.rules.rule import Rule
from superopt.term import Fact, variable
from superopt.verify.check import verify
from superopt.verify.conditions import suppose
from superopt.verify.elements import elements_problem, filled, solved
from superopt.verify.prove import Proved, Unknown, prove

Z3 = z3
DECLARED = {name: cls for name, cls in CATALOGUE.items() if cls.element}
SHAPES = {"x": "m n", "y": "m n", "z": "m n", "u": "n", "v": "m", "p": "m k", "q": "k n"}

TRUE = {
    "max-add": "(from (max ?x (add ?x ?y))) (to (add ?x (relu ?y)))",
    "min-as-max": "(from (sub ?x (min ?x ?y))) (to (relu (sub ?x ?y)))",
    "magnitude": "(from (add ?x (abs ?x))) (to (add (relu ?x) (relu ?x)))",
    "square": "(from (mul (abs ?x) (abs ?x))) (to (mul ?x ?x))",
    "broadcast": "(from (max ?x (add ?x (expand (1) ?u)))) (to (add ?x (expand (1) (relu ?u))))",
    "number": "(from (sub ?x (neg (mul ?x (expand () (scalar 0.5)))))) (to (mul ?x (expand () (scalar 1.5))))",
    "function": "(from (tanh (max ?x ?y))) (to (tanh (max ?y (max ?y ?x))))",
    "quotients": "(from (div (div ?x ?y) ?z)) (to (div ?x (mul ?y ?z)))",
    "a product of matrices is any": "(from (max (matmul ?p ?q) (abs (matmul ?p ?q)))) (to (abs (matmul ?p ?q)))",
}

WRONG = {
    "another sign": "(from (max ?x (add ?x ?y))) (to (add ?x (neg (relu ?y))))",
    "another factor": "(from (add ?x (expand (0) (mul ?v ?v)))) (to (add ?x (expand (0) ?v)))",
    "a function is not another": "(from (tanh ?x)) (to (erf ?x))",
    "only for whole numbers": "(from (relu (add ?x (mul ?x ?x)))) (to (add ?x (mul ?x ?x)))",
    "undefined at 0": "(from (mul ?x (div ?y ?x))) (to ?y)",
    "defined at 0, but not before": "(from (add ?x ?y)) (to (add ?x (div (mul ?y ?y) ?y)))",
    "an infinity is lost": "(from (add ?y (mul ?x (expand () (scalar 0.0))))) (to ?y)",
    "an infinity comes": "(from (sub (softmax 1 ?x) (softmax 1 ?x))) (to (sub ?x ?x))",
    "an infinite number": "(from (add ?x (expand () (scalar inf)))) (to (add (relu ?x) (expand () (scalar inf))))",
    "undefined below 0": "(from (mul (sqrt ?x) (sqrt ?x))) (to ?x)",
}


def rule(text: str) -> Rule:
    """The rule over the variables that it uses."""
    given = " ".join(f"(?{name} {shape})" for name, shape in SHAPES.items() if f"?{name}" in text)
    (found,) = parse_file(f"(rule r (given {given}) {text})").rules
    return found


@pytest.mark.parametrize("text", TRUE.values(), ids=TRUE)
def test_what_holds_for_real_numbers_proves_for_all_shapes(text: str) -> None:
    given = rule(text)
    assert isinstance(verify(given), Proved)


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_what_does_not_hold_for_all_real_numbers_does_not_prove(text: str) -> None:
    given = rule(text)
    assert not isinstance(verify(given), Proved)
    problem = elements_problem(given.source, given.target)
    assert problem is None or not solved(problem, 1_000_000)


@pytest.mark.parametrize("name", DECLARED)
def test_what_is_declared_of_an_element_is_what_is_computed(name: str) -> None:
    cls = DECLARED[name]
    op, rng = cls(), np.random.default_rng(0)
    arrays = [rng.integers(-8, 9, 24) / 4 for _ in range(cls.arity)]
    with np.errstate(all="ignore"):
        computed = np.asarray(op.eval(FLOAT, *arrays), np.float64)
    examined = 0
    for *given, result in zip(*arrays, computed, strict=True):
        assert _holds(op, given, 0.0, None) == bool(np.isfinite(result))
        if np.isfinite(result):
            examined += 1
            close, off = (_holds(op, given, result, by) for by in (0.0, 0.25))
            assert close
            assert not off or re.search(r"\bf\b", cls.element), "it determines the result"
    assert examined >= len(computed) // 4


def _holds(op: Declared, given: list[float], result: float, by: float | None) -> bool:
    """Whether what is declared can hold of these numbers, with a result that is so far off; by None, whether there is
    a result.
    """
    names = {
        **dict.fromkeys("xyz", "0.0"),
        **{n: _exact(x) for n, x in zip("xyz", given, strict=False)},
        "r": "r",
        "f": "f",
    }
    solver = Z3.Solver()
    near = (
        "" if by is None else f"(assert (and (<= {_exact(result + by - 1e-9)} r) (<= r {_exact(result + by + 1e-9)})))"
    )
    asserted = filled(op.defined if by is None else op.element, names)
    solver.from_string(f"(declare-const r Real)(declare-fun f (Real) Real){near}(assert {asserted})")
    return bool(solver.check() == Z3.sat)


def _exact(value: float) -> str:
    top, bottom = float(value).as_integer_ratio()
    return f"(/ {top}.0 {bottom}.0)" if top >= 0 else f"(- (/ {-top}.0 {bottom}.0))"


def test_facts_without_which_a_rule_has_no_proof_are_found_and_no_others() -> None:
    found = suppose(rule("(from (mul ?x (div ?y ?x))) (to ?y)"))
    assert found is not None
    assert [str(f) for f in found.facts] == ["(nonzero ?x)"]
    assert isinstance(verify(found), Proved)
    root = suppose(rule("(from (mul (sqrt ?x) (sqrt ?x))) (to ?x)"))
    assert root is not None
    assert [f.kind for f in root.facts] == ["nonnegative"]


def test_no_facts_make_a_wrong_rule_right() -> None:
    assert suppose(rule("(from (div ?x ?y)) (to (div ?y ?x))")) is None


def test_facts_are_known_while_they_are_supposed() -> None:
    x = variable("x", (2,))
    with supposing([Fact("nonnegative", x)]):
        assert known_facts(x) == {"nonnegative"}
    assert known_facts(x) == set()
    assert "nonnegative" in known_facts(Relu()(x))


def test_work_that_the_solver_does_not_count_ends_too() -> None:
    """It went on for minutes, at 7,511 of its resource units."""
    (endless,) = parse_file("""
      (rule endless (given (?x n c) (?y c))
        (from (relu (mul ?x (expand (1) (relu ?y)))))
        (to (mul (sin ?x) (expand (1) (relu ?y)))))
    """).rules
    assert isinstance(prove(endless.source, endless.target), Unknown)
