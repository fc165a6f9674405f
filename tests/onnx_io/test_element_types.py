"""Element types that are not computed with: moved without loss, refused by a reason elsewhere, never a crash."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from superopt.cost.bench import Bench
from superopt.cost.measured import MeasuredCost
from superopt.cost.ort import OnnxRuntime
from superopt.cost.table import Table
from superopt.onnx_io import check, load, rewritten, understand
from superopt.operators.casts import Cast
from superopt.operators.constant import Count
from superopt.operators.declared import Declared
from superopt.operators.pointwise import Add
from superopt.operators.rearrange import Gather
from superopt.rules.format import parse_file
from superopt.rules.match import rewrites
from superopt.term import Graph, variable
from tests.onnx_io.models import model, terms
from tests.onnx_io.networks import run

TYPES = [n for n, _ in TensorProto.DataType.items() if not n.startswith(("UNDEFINED", "FLOAT6"))]
MOVED = ("FLOAT", "DOUBLE", "FLOAT16", "BOOL", *(f"{u}INT{b}" for u in ("", "U") for b in (8, 16, 32, 64)))


def transposed(name: str) -> onnx.ModelProto:
    kind = TensorProto.DataType.Value(name)
    given = [helper.make_tensor_value_info(n, kind, s) for n, s in (("x", [2, 3]), ("y", [3, 2]))]
    graph = helper.make_graph([helper.make_node("Transpose", ["x"], ["y"])], "g", given[:1], given[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)


@pytest.mark.parametrize("name", TYPES)
def test_any_element_type_is_moved_or_opaque_by_its_name(name: str) -> None:
    program = understand(load(transposed(name)))
    (step,) = program.steps
    assert (step.reason == "") == (name in MOVED)
    assert not step.reason or step.reason.startswith(("element type", "input 'x' is no tensor"))
    check(rewritten(program, terms(program), {}))


@pytest.mark.parametrize("name", MOVED)
def test_what_is_cast_to_its_own_type_is_as_it_is(name: str) -> None:
    source = transposed(name)
    source.graph.node[0].output[0] = "moved"
    source.graph.node.append(helper.make_node("Cast", ["moved"], ["y"], to=TensorProto.DataType.Value(name)))
    program = understand(load(source))
    assert program.steps[1].terms == (program.values["moved"],)


def test_a_rule_says_nothing_of_integers() -> None:
    text = "(rule r (given (?x n) (?y n)) (from (concat 0 (transpose (0) ?x) ?y)) (to (concat 0 ?x ?y)))"
    (rule,) = parse_file(f"(rules :format 1)\n{text}").rules
    found = {}
    for dtype in ("float32", "uint8"):
        x, y = variable("x", (3,), dtype), variable("y", (3,), dtype)
        (source,) = rule.source
        concat, moved = source.operator, source.inputs[0].operator
        assert isinstance(concat, Declared)
        assert isinstance(moved, Declared)
        found[dtype] = len(list(rewrites(rule, concat(moved(x), y))))
    assert found == {"float32": 1, "uint8": 0}


def test_a_range_is_computed_while_the_model_runs() -> None:
    assert not Add()(Cast()(Count(3)()), Cast()(Count(3)())).constant


@pytest.mark.parametrize("size", [1, 5])
def test_taking_rows_is_measured_whatever_their_number(size: int, table: Table, tmp_path: Path) -> None:
    rows, at = variable("t", (size, 4), "float32", constant=True), variable("i", (2, 3), "int64")
    cost = MeasuredCost(Bench(OnnxRuntime(), table, 17, lock_directory=tmp_path))
    assert 0 < cost.cost(Graph((rows, at), (Gather(0)(rows, at),))) < 1


def test_embeddings_and_positions_are_carried_through_as_terms() -> None:
    source = model(
        """g (int64[n, s] ids) => (float[n, s, 4] y)
      <int64 one = {1}, int64 zero = {0}, int64[1] at = {0}, float[9, 4] words = {WORDS}, float[7, 4] places = {PLACES}>
      { w = Gather(words, ids) sh = Shape(ids) n = Gather(sh, one) r = Range(zero, n, one) u = Unsqueeze(r, at)
        p = Gather(places, u) c = Cos(p) y = Add(w, c) }""".replace("WORDS", numbers(36)).replace("PLACES", numbers(28))
    )
    program = understand(load(source))
    assert program.summary.opaque == {}
    made = rewritten(program, terms(program), {})
    check(made)
    feed = {"ids": np.array([[3, -1, 8], [0, 2, -9]])}
    np.testing.assert_array_equal(run(ir.to_proto(made), feed)[0], run(source, feed)[0])


def numbers(count: int) -> str:
    return ", ".join(str(i / 8) for i in range(count))
