"""What the original's own steps still make in a candidate, of values that were compared."""

from __future__ import annotations

from superopt.onnx_io import Program, load, understand
from superopt.operators.differences import Neg
from superopt.operators.functions import Sigmoid, Tanh
from superopt.operators.pointwise import Relu
from superopt.search.accepting.own import Own
from superopt.search.replay import Placement
from superopt.term import Term, make
from tests.onnx_io.models import model

TEXT = """g (float[2,5] x) => (float[2,5] s, int64[2] label)
    { h = Sigmoid(x) s = Relu(h) n = Neg(s) label = ArgMax<axis=1, keepdims=0>(n) }"""
PROGRAM = understand(load(model(TEXT)))
H, S, N, X = (PROGRAM.values[name] for name in "hsnx")
OTHER = Sigmoid()(Tanh()(X))
"""What stands for the scores in a candidate, whether it equals them or not."""


def steps(program: Program) -> dict[str, Term]:
    return {n: t for step in program.steps for n, t in zip(step.outputs, step.terms, strict=True)}


def largest(scores: Term) -> Term:
    """The place of the largest, by the operator that the model has for it."""
    return make(steps(PROGRAM)["label"].operator, (scores,))


def own(new: dict[str, Term], origins: dict[Term, str] | None = None, anew: dict[str, Term] | None = None) -> Own:
    return Own(PROGRAM, Placement(new, origins or {}), anew or {})


def test_what_was_not_rewritten_is_made_of_what_was() -> None:
    found = own({"s": OTHER})
    assert found.is_made_of("label", {"s"})
    assert not found.is_made_of("label", {"x"})


def test_the_same_operators_of_what_was_compared_are_the_original_s() -> None:
    found = own({"s": OTHER, "label": largest(Neg()(OTHER))})
    assert found.is_made_of("label", {"s"})
    assert not found.is_made_of("label", {"h"})


def test_what_has_scores_of_its_own_is_not_told_of_by_those_that_were_compared() -> None:
    assert not own({"s": OTHER, "label": largest(Neg()(Tanh()(OTHER)))}).is_made_of("label", {"s"})
    assert not own({"s": OTHER, "label": largest(Relu()(OTHER))}).is_made_of("label", {"s"})
    assert not own({"s": OTHER, "label": largest(OTHER)}).is_made_of("label", {"s"})


def test_other_values_that_were_compared_do_not_stand_for_what_a_value_is_made_of() -> None:
    assert not own({"h": OTHER, "s": Relu()(H), "label": largest(Neg()(OTHER))}).is_made_of("label", {"h", "s"})


def test_what_the_original_s_own_node_makes_is_made_of_that_node_s_inputs() -> None:
    found = own({"h": OTHER, "label": largest(Neg()(Relu()(Sigmoid()(X))))}, {Relu()(Sigmoid()(X)): "s"})
    assert found.is_made_of("label", {"h"})
    assert not found.is_made_of("label", {"x"})


def test_what_is_written_in_another_form_is_told_of_by_itself_alone() -> None:
    for name in ("label", "n"):
        found = own({"s": OTHER}, anew={name: steps(PROGRAM)[name]})
        assert not found.is_made_of("label", {"s"})
        assert found.is_made_of("label", {"s", name})
