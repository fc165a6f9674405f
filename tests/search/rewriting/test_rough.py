"""What terms take, roughly."""

from __future__ import annotations

from superopt.demands import assuming
from superopt.dim import symbol
from superopt.operators.conv import Conv
from superopt.operators.pointwise import Relu
from superopt.search.rewriting.rough import Rough
from superopt.term import Graph, variable


def test_symbols_have_the_sizes_that_they_are_said_to_have() -> None:
    x = variable("x", (symbol("n"), 64, symbol("h"), symbol("h")), "float32")
    k = variable("k", (64, 64, 1, 1), "float32", constant=True)
    with assuming():  # that a window fits
        graph = Graph((x,), (Relu()(Conv()(x, k)),))
    small, large = Rough({}), Rough({"h": 224})
    assert large.whole(graph) > 100 * small.whole(graph) > 0
    assert large.whole(graph) == sum(large.each(graph.outputs).values())
    large.forget_terms()
    assert large.whole(graph) > 100 * small.whole(graph)
