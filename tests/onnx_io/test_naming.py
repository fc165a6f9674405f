"""Values get names that nothing has, however many of one name there are."""

from __future__ import annotations

import onnx_ir as ir

from superopt.onnx_io.naming import FEW, rename


def test_names_are_numbered_and_none_is_given_twice() -> None:
    taken = {"x", "y", "x_3"}
    values = [ir.Value(name="x") for _ in range(3 * FEW)]
    for value in values:
        rename(value, taken)
    assert [v.name for v in values[:2]] == ["x_2", "x_4"]
    assert len({v.name for v in values}) == len(values)
    assert taken == {"x", "y", "x_3", *(v.name for v in values)}
