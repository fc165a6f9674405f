"""Which inner values keep their names in a candidate, as labels are made of them."""

from __future__ import annotations

import pytest

from superopt.onnx_io import Program, load, understand
from superopt.operators.differences import Neg
from superopt.operators.functions import Sigmoid, Tanh
from superopt.operators.pointwise import Relu
from superopt.search.accepting.labels import with_named
from superopt.search.replay import Placement
from superopt.term import Term, make
from tests.onnx_io.models import model

TEXT = """g (float[2,5] x) => (float[2,5] s, int64[2] label)
    {{ h = Sigmoid(x) n = Neg(h) s = {scores} label = ArgMax<axis=1, keepdims=0>(n) }}"""
BOTH = understand(load(model(TEXT.format(scores="Tanh(n)"))))
ABOVE = understand(load(model(TEXT.format(scores="Tanh(h)"))))
X = BOTH.values["x"]
OTHER = Neg()(Sigmoid()(Relu()(X)))
"""What stands for the logits in a candidate."""


def largest(program: Program, logits: Term) -> Term:
    (op,) = (
        t.operator for step in program.steps for n, t in zip(step.outputs, step.terms, strict=True) if n == "label"
    )
    return make(op, (logits,))


def named(program: Program, new: dict[str, Term], origins: dict[Term, str] | None = None) -> Placement:
    return with_named(program, Placement(new, origins or {}))


def test_logits_that_scores_and_label_are_made_of_keep_their_name() -> None:
    new = {"s": Tanh()(OTHER), "label": largest(BOTH, OTHER)}
    found = named(BOTH, new)
    assert found.new == new | {"n": OTHER}
    assert found.supposed == {"n"}


@pytest.mark.parametrize(
    ("program", "new", "origins"),
    [
        (BOTH, {"label": largest(BOTH, OTHER)}, {}),
        (ABOVE, {"label": largest(ABOVE, Relu()(ABOVE.values["n"]))}, {}),
        (BOTH, {"s": Tanh()(OTHER)}, {}),
        (BOTH, {"n": OTHER, "label": largest(BOTH, Relu()(OTHER))}, {}),
        (BOTH, {"s": Tanh()(OTHER), "label": largest(BOTH, OTHER)}, {OTHER: "n"}),
        (BOTH, {"s": Tanh()(OTHER), "label": largest(BOTH, BOTH.values["n"])}, {}),
    ],
    ids=["read by others", "read by what would have it", "of scores", "there already", "its own", "not rewritten"],
)
def test_no_other_value_gets_a_name(program: Program, new: dict[str, Term], origins: dict[Term, str]) -> None:
    assert named(program, new, origins) == Placement(new, origins)
