"""Values get names that nothing has, however many of one name there are, and are found by these."""

from __future__ import annotations

import onnx_ir as ir

from superopt.onnx_io import load
from superopt.onnx_io.naming import FEW, by_name, rename
from tests.onnx_io.models import model


def test_names_are_numbered_and_none_is_given_twice() -> None:
    taken = {"x", "y", "x_3"}
    values = [ir.Value(name="x") for _ in range(3 * FEW)]
    for value in values:
        rename(value, taken)
    assert [v.name for v in values[:2]] == ["x_2", "x_4"]
    assert len({v.name for v in values}) == len(values)
    assert taken == {"x", "y", "x_3", *(v.name for v in values)}


def test_values_are_looked_up_in_a_graph_and_not_within_it() -> None:
    graph = load(
        model("""g (float[2] x, bool c) => (float[2] z) {
            y = If(c) <then_branch = t () => (float[2] a) { a = Relu(x) },
                       else_branch = e () => (float[2] b) { b = Neg(x) }>
            a = Exp(y) z = Abs(a) }""")
    ).graph
    assert sorted(by_name(graph)) == ["a", "c", "x", "y", "z"]
    assert all(value.producer() is None or value.producer().graph is graph for value in by_name(graph).values())
