"""Models of functions are optimized as if these were written out; where nothing is faster they come back with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx
from onnx import helper

import superopt
from superopt.api import Options, replay
from superopt.inspection import inspect_model
from tests.models import assert_same, detector, normalized, one_relu


def in_a_function(given: onnx.ModelProto, operators: Sequence[str]) -> onnx.ModelProto:
    """The model, whose first nodes of these operators, a chain, are a function."""
    nodes = list(given.graph.node)
    own = [next(n for n in nodes if n.op_type == operator) for operator in operators]
    start, end = own[0].input[0], own[-1].output[0]
    call = helper.make_node("layer", [start], [end], name="called", domain="own")
    rest = [n for n in nodes if n not in own]
    rest.insert(nodes.index(own[0]), call)
    imports = [helper.make_opsetid("", given.opset_import[0].version)]
    given.functions.append(helper.make_function("own", "layer", [start], [end], own, imports))
    given.opset_import.append(helper.make_opsetid("own", 1))
    del given.graph.node[:]
    given.graph.node.extend(rest)
    onnx.checker.check_model(given, full_check=True)
    return given


def test_what_is_in_a_function_is_optimized(options: Options) -> None:
    given = in_a_function(normalized(), ["Relu", "LRN"])
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert "definition of lrn" in [r.name for r in result.report.rewrites]  # others where they are timed as faster
    assert "LRN" not in [n.op_type for n in result.proto().graph.node]
    assert result.report.original.nodes == {"Conv": 2, "own.layer": 1}
    assert not result.proto().functions
    assert_same(result.proto(), given)
    again = replay(result.report, given, options)
    assert again.report.outcome == "faster"
    assert_same(again.proto(), given)


def test_a_function_is_compared_within_where_outputs_show_nothing(options: Options) -> None:
    given = in_a_function(detector(), ["LRN"])
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert result.report.compared is not None
    assert (result.report.compared.inner, result.report.compared.examined) == (True, True)


def test_where_nothing_is_faster_functions_come_back(options: Options) -> None:
    given = in_a_function(one_relu(), ["Relu"])
    result = superopt.optimize(given, options)
    assert result.report.outcome == "original"
    assert result.proto() == given


def test_what_is_in_a_function_is_inspected_and_timed(tmp_path: Path) -> None:
    onnx.save(in_a_function(normalized(), ["Relu", "LRN"]), tmp_path / "m.onnx")
    found = inspect_model(tmp_path / "m.onnx")
    assert {g.operator for g in found.groups} == {"Conv", "Relu", "LRN"}
    assert (found.whole.nodes, found.known.nodes, found.not_timed) == (4, 4, None)
    assert (next(g for g in found.groups if g.operator == "LRN").seconds or 0.0) > 0.0
