"""Kernels are timed on integers as large as what they index allows, and no larger."""

from __future__ import annotations

import pytest

from superopt.cost.indices import indexed
from superopt.dim import symbol
from superopt.operators.casts import Cast
from superopt.operators.comparisons import Equal
from superopt.operators.layout import Concat, Reshape
from superopt.operators.lookups import Lookups
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Add
from superopt.operators.rearrange import Gather
from superopt.term import Graph, Term, variable, variables

TABLE, WIDE = variable("t", (64, 5), constant=True), variable("w", (9, 64))
I, J = variable("i", (4,), "int64"), variable("j", (4, 2), "int32")
ROWS = Gather(0)(TABLE, I)

INDEXED = {
    "rows of a table": (ROWS, 64),
    "columns": (Gather(1)(TABLE, I), 5),
    "of the shorter of two": (MatMul()(Gather(0)(WIDE, I), Gather(0)(TABLE, variable("k", (64,), "int64"))), 9),
    "reshaped and joined": (Gather(0)(TABLE, Concat(0)(Reshape((8,))(J), Reshape((8,))(J))), 64),
    "several tables": (Lookups((40, 24))(TABLE, J), 24),
    "constant indices": (Gather(0)(TABLE, variable("c", (4,), "int64", constant=True)), 1),
    "none": (MatMul()(WIDE, TABLE), 1),
    "of an open number of rows": (Gather(0)(variable("x", (symbol("n"), 5)), I), 1),
    "what is computed of indices": (Gather(0)(TABLE, Add()(I, I)), 1),
    "numbers that are no indices": (Cast("float32")(I), 1),
}


@pytest.mark.parametrize(("term", "below"), INDEXED.values(), ids=INDEXED)
def test_integers_are_below_what_they_index(term: Term, below: int) -> None:
    assert indexed([Graph(tuple(variables(term)), (term,))]) == below


def test_what_is_compared_as_well_may_be_anything() -> None:
    term = Equal()(I, I)
    assert indexed([Graph((I, TABLE), (ROWS, term))]) == 1


def test_of_two_graphs_integers_fit_both() -> None:
    graphs = [Graph(tuple(variables(t)), (t,)) for t in (ROWS, Gather(1)(TABLE, I))]
    assert indexed(graphs) == 5
