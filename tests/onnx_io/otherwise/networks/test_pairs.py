"""What is joined of pairs of few values is computed of all pairs at once."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.onnx_io import load, understand
from superopt.onnx_io.otherwise.networks.pairs import pairs
from tests.models import model, weight
from tests.onnx_io import models
from tests.onnx_io.networks import run

X = np.random.default_rng(0).standard_normal((3, 8, 4)).astype(np.float32)
PAIRS = list(combinations(range(8), 2))


def joined(
    take: str, each: str, axis: int = 1, of: list[tuple[int, int]] = PAIRS, more: str = "", rows: str = "3"
) -> onnx.ModelProto:
    """A model that takes eight values, computes `each` of pairs of them, and joins what it makes."""
    taken = " ".join(take.format(i=i) for i in range(8))
    made = " ".join(each.format(a=f"t{a}", b=f"t{b}", i=i) for i, (a, b) in enumerate(of))
    names = ", ".join(f"p{i}" for i in range(len(of)))
    nodes = f"{more} {taken} {made} y = Concat<axis = {axis}>({names})"
    return models.model(f"g (float[{rows}, 8, 4] x) => (float[m, n, k] y) {{ {nodes} }}", 17)


GATHERED = "n{i} = Constant<value_int = {i}>() t{i} = Gather<axis = 1>(x, n{i})"
SPLIT = "s0, s1, s2, s3, s4, s5, s6, s7 = Split<axis = 1>(x)"
ONE = "one = Constant<value_ints = [1]>() "
HALF = "half = Constant<value_float = 0.5>() "
NEW = "m{i} = Mul({a}, {b}) p{i} = Unsqueeze(m{i}, one)"
CASES = {
    "products of what is gathered": joined(GATHERED, NEW, more=ONE),
    "of any number of rows": joined(GATHERED, NEW, more=ONE, rows="n"),
    "products of what is split": joined("t{i} = Identity(s{i})", "p{i} = Mul({a}, {b})", more=SPLIT),
    "several steps": joined(
        "t{i} = Identity(s{i})", "d{i} = Sub({b}, {a}) q{i} = Mul(d{i}, d{i}) p{i} = Add(q{i}, half)", more=SPLIT + HALF
    ),
    "of what is computed of each": joined("t{i} = Softmax<axis = 2>(s{i})", "p{i} = Max({a}, {b})", more=SPLIT),
    "of what is computed of each, with a new axis": joined(
        f"{GATHERED.replace('t{i}', 'g{i}')} t{{i}} = Softmax(g{{i}})", NEW, more=ONE
    ),
    "with an axis from behind": joined(GATHERED, NEW, axis=-2, more=ONE),
}


@pytest.mark.parametrize("given", CASES.values(), ids=CASES)
def test_pairs_are_computed_at_once(given: onnx.ModelProto) -> None:
    program = understand(load(given))
    made = ir.to_proto(program.model)
    onnx.checker.check_model(made, full_check=True)
    counts = Counter(n.op_type for n in made.graph.node)
    assert max(counts[kind] for kind in ("Mul", "Max", "Sub", "Add")) == 1
    assert (made.graph.input, made.graph.output) == (given.graph.input, given.graph.output)
    for x in (X, np.zeros_like(X)):
        np.testing.assert_array_equal(*(run(m, {"x": x})[0] for m in (given, made)))


def others(made: onnx.ModelProto, **of_node: str) -> onnx.ModelProto:
    """The same with other operators for some nodes, by what these give."""
    for node in made.graph.node:
        node.op_type = of_node.get(node.output[0], node.op_type)
    return made


STAYS = {
    "few": joined(GATHERED, NEW, of=PAIRS[:11], more=ONE),
    "of nearly as many values": joined(
        "t{i} = Softmax<axis = 2>(s{i})", "p{i} = Mul({a}, {b})", of=[(i % 8, i % 8) for i in range(12)], more=SPLIT
    ),
    "joined along another axis": joined(
        GATHERED, NEW.replace("one", "two"), axis=2, more=ONE.replace("one", "two").replace("1", "2")
    ),
    "one of which is computed otherwise": others(joined(GATHERED, NEW, more=ONE), m5="Add"),
    "of many elements": joined(GATHERED, NEW, more=ONE, rows="2000"),
    "that are moved by a row": joined(
        "t{i} = Identity(s{i})",
        "p{i} = Add({a}, row)",
        more=SPLIT + "row = Constant<value_floats = [1.0, 2.0, 3.0, 4.0]>()",
    ),
    "one of which is an output itself": joined(GATHERED, NEW, more=ONE),
}
STAYS["one of which is an output itself"].graph.output.append(
    helper.make_tensor_value_info("m3", TensorProto.FLOAT, [3, 4])
)


@pytest.mark.parametrize("given", STAYS.values(), ids=STAYS)
def test_others_stay(given: onnx.ModelProto) -> None:
    assert not pairs(understand(load(given), plainly=True))


def field_aware(rows: int, count: int = 10, width: int = 8, size: int = 500) -> onnx.ModelProto:
    """A field-aware factorization machine (Juan et al. 2016), as scripts write it: a table for each of the features."""
    every = range(count)
    nodes = [helper.make_node("Gather", [f"table{i}", "x"], [f"t{i}"]) for i in every]
    for i, (a, b) in enumerate(both := list(combinations(every, 2))):
        nodes += [helper.make_node("Gather", [f"t{b}", f"n{a}"], [f"a{i}"], axis=1)]
        nodes += [helper.make_node("Gather", [f"t{a}", f"n{b}"], [f"b{i}"], axis=1)]
        nodes += [helper.make_node("Mul", [f"a{i}", f"b{i}"], [f"m{i}"])]
        nodes += [helper.make_node("Unsqueeze", [f"m{i}", "one"], [f"p{i}"])]
    nodes += [helper.make_node("Concat", [f"p{i}" for i in range(len(both))], ["p"], axis=1)]
    nodes += [helper.make_node("ReduceSum", ["p", "one"], ["s"], keepdims=0)]
    nodes += [helper.make_node("ReduceSum", ["s", "one"], ["y"])]
    weights = {f"table{i}": weight(size, width, seed=i) for i in every} | {f"n{i}": np.int64(i) for i in every}
    ends = [("x", TensorProto.INT64, [rows, count])], [("y", TensorProto.FLOAT, [rows, 1])]
    return model(nodes, *ends, weights | {"one": np.array([1])})


@pytest.mark.parametrize("rows", [1, 32])
def test_a_field_aware_factorization_machine_is_faster_and_the_same(rows: int, options: Options) -> None:
    given = field_aware(rows)
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    counts = Counter(node.op_type for node in result.proto().graph.node)
    assert counts["Mul"] == 1
    assert counts["Gather"] <= 4
    x = np.random.default_rng(0).integers(0, 500, (rows, 10))
    np.testing.assert_allclose(*(run(m, {"x": x})[0] for m in (given, result.proto())), rtol=1e-5, atol=1e-6)
