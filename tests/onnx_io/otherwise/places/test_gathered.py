"""Rows that are taken one number after the other are taken as rows."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from superopt.onnx_io import load, understand
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

DRAWN = np.random.default_rng(0)
DTYPES = {"float": np.float32, "double": np.float64, "int64": np.int64}


def gathering(
    x: str,
    i: str,
    unsqueezed: str,
    to: str,
    axis: int = 1,
    kind: str = "float",
    repeat: str = "Expand",
) -> str:
    """A model that takes rows where i says, as DETR's followers do it."""
    rank = len(to.split(","))
    return f"""g ({kind}[{x}] x, int64[{i}] i) => ({kind}[{", ".join(f"d{a}" for a in range(rank))}] y) {{
        new = Constant<value_ints = [{unsqueezed}]>() to = Constant<value_ints = [{to}]>()
        u = Unsqueeze(i, new) rows = {repeat}(u, to) y = GatherElements<axis = {axis}>(x, rows) }}"""


CASES = {
    "of each of a batch": (gathering("2, 5, 4", "2, 3", "2", "2, 3, 4"), "GatherND", (2, 5, 4), (2, 3)),
    "of tiles": (gathering("2, 5, 4", "2, 3", "2", "1, 1, 4", repeat="Tile"), "GatherND", (2, 5, 4), (2, 3)),
    "of an open batch": (gathering("n, 5, 4", "n, 3", "2", "1, 1, 4", repeat="Tile"), "GatherND", (2, 5, 4), (2, 3)),
    "open rows": (gathering("n, m, 4", "n, k", "2", "1, 1, 4", repeat="Tile"), "GatherND", (2, 5, 4), (2, 3)),
    "no rows": (gathering("n, m, 4", "n, k", "2", "1, 1, 4", repeat="Tile"), "GatherND", (2, 5, 4), (2, 0)),
    "of a batch of one": (gathering("1, 5, 4", "1, 3", "2", "1, 3, 4"), "Gather", (1, 5, 4), (1, 3)),
    "along the first axis": (gathering("5, 4", "3", "1", "3, 4", 0), "Gather", (5, 4), (3,)),
    "none along the first axis": (gathering("5, 4", "k", "1", "1, 4", 0, repeat="Tile"), "Gather", (5, 4), (0,)),
    "of two axes": (gathering("2, 5, 4, 3", "2, 6", "2, 3", "2, 6, 4, 3"), "GatherND", (2, 5, 4, 3), (2, 6)),
    "behind two axes": (gathering("2, 3, 5, 4", "2, 3, 6", "3", "2, 3, 6, 4", 2), "GatherND",
                        (2, 3, 5, 4), (2, 3, 6)),
    "the same everywhere": (gathering("2, 5, 4", "3", "0, 2", "2, 3, 4"), "Gather", (2, 5, 4), (3,)),
    "integers, counted from the end": (gathering("2, 5, 4", "2, 3", "2", "2, 3, 4", -2, "int64"), "GatherND",
                                       (2, 5, 4), (2, 3)),
    "of 64 bits": (gathering("2, 5, 4", "2, 3", "2", "2, 3, 4", kind="double"), "GatherND", (2, 5, 4), (2, 3)),
}  # fmt: skip
STAYS = {
    "along the last axis": gathering("5, 4", "3", "0", "5, 3"),
    "of a part of each row": gathering("2, 5, 4", "2, 3", "2", "2, 3, 2"),
    "of a part of the batch": gathering("3, 5, 4", "2, 3", "2", "2, 3, 4"),
    "where numbers differ along rows": gathering("2, 5, 4", "2, 4", "1", "2, 3, 4"),
    "booleans": gathering("2, 5, 4", "2, 3", "2", "2, 3, 4", kind="bool"),
}


@pytest.mark.parametrize(("text", "kind", "x", "i"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("opset", [13, 18])
def test_rows_are_taken_as_rows(text: str, kind: str, x: tuple[int, ...], i: tuple[int, ...], opset: int) -> None:
    given = model(text, opset)
    made = ir.to_proto(understand(load(given)).model)
    onnx.checker.check_model(made, full_check=True)
    kinds = {n.op_type for n in made.graph.node}
    assert kind in kinds
    assert not kinds & {"GatherElements", "Expand", "Tile"}
    assert (made.graph.input, made.graph.output) == (given.graph.input, given.graph.output)
    numbers = DRAWN.integers(-5, 5, i)
    feeds = {"x": (9 * DRAWN.standard_normal(x)).astype(DTYPES[text[3 : text.index("[")]]), "i": numbers}
    np.testing.assert_array_equal(run(given, feeds)[0], run(made, feeds)[0])


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_others_stay(text: str) -> None:
    assert not understand(load(model(text, 18))).otherwise


def test_rows_of_single_numbers_stay() -> None:
    """Their places are repeated once, which is left out."""
    given = load(model(gathering("2, 5, 1", "2, 3", "2", "2, 3, 1"), 18))
    assert [n.op_type for n in understand(given).model.graph] == ["Constant", "Unsqueeze", "GatherElements"]


def of_constants(index: np.ndarray, opset: int = 13) -> onnx.ModelProto:
    """A model that takes what is written out for each number."""
    given = model("g (float[2, 5, 4] x) => (float[a, b, c] y) { y = GatherElements<axis = 1>(x, rows) }", opset)
    given.graph.initializer.append(numpy_helper.from_array(index, "rows"))
    return given


EVERYWHERE = np.array([0, -1, 3, -5, 3, 4])
EACH = np.array([[0, -1, 3], [-5, 3, 3]])
CONSTANT = {
    "the same everywhere": (np.broadcast_to(EVERYWHERE[:, None], (2, 6, 4)), "Gather"),
    "of 32 bits": (np.broadcast_to(EVERYWHERE[:, None], (2, 6, 4)).astype(np.int32), "Gather"),
    "of each of a batch": (np.broadcast_to(EACH[:, :, None], (2, 3, 4)), "GatherND"),
}


@pytest.mark.parametrize(("index", "kind"), CONSTANT.values(), ids=CONSTANT)
def test_constant_rows_are_taken_as_rows(index: np.ndarray, kind: str) -> None:
    given = of_constants(np.ascontiguousarray(index))
    made = ir.to_proto(understand(load(given)).model)
    onnx.checker.check_model(made, full_check=True)
    assert [n.op_type for n in made.graph.node] == ["Constant", kind]
    feeds = {"x": DRAWN.standard_normal((2, 5, 4)).astype(np.float32)}
    np.testing.assert_array_equal(run(given, feeds)[0], run(made, feeds)[0])


def test_constants_that_differ_along_rows_stay() -> None:
    index = np.array(np.broadcast_to(EACH[:, :, None], (2, 3, 4)))
    index[1, 2, 3] = 0
    assert not understand(load(of_constants(index))).otherwise


def test_rows_of_each_of_a_batch_stay_in_an_opset_that_has_none() -> None:
    everywhere, each = CONSTANT["the same everywhere"][0], CONSTANT["of each of a batch"][0]
    assert understand(load(of_constants(np.ascontiguousarray(everywhere), 11))).otherwise
    assert not understand(load(of_constants(np.ascontiguousarray(each), 11))).otherwise
