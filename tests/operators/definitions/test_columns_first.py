"""What is convolved along rows and then summed over columns is summed first, or both at once: exactly."""

from __future__ import annotations

import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.arithmetic.field import FIELD
from superopt.demands import assuming
from superopt.dim import Shape, symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.conv import Conv
from superopt.operators.definitions.columns_first import columns_first
from superopt.operators.layout import Expand
from superopt.operators.pointwise import Add
from superopt.operators.symbolic import resize
from superopt.term import Term, subterms, variable
from tests.models import assert_same, model, weight

PLAIN = Conv()
TAKEN = {
    "two sums of each filter": (PLAIN, (1, 1, 5, 16), (3, 1, 1, 4), Conv(group=3), (6, 1, 5, 1)),
    "one of each": (PLAIN, (2, 1, 5, 16), (3, 1, 1, 4), Conv(group=3), (3, 1, 5, 1)),
    "sums of all": (PLAIN, (2, 1, 5, 16), (3, 1, 1, 4), PLAIN, (4, 3, 5, 1)),
    "one filter": (PLAIN, (1, 1, 5, 16), (1, 1, 1, 4), PLAIN, (4, 1, 5, 1)),
    "pads, steps and gaps": (
        Conv((1, 2), (0, 3, 0, 2), (1, 2)),
        (1, 1, 5, 16),
        (3, 1, 1, 4),
        Conv(group=3),
        (6, 1, 5, 1),
    ),
    "and of all": (Conv((1, 3), (0, 1, 0, 2), (1, 2)), (1, 1, 5, 16), (3, 1, 1, 4), PLAIN, (4, 3, 5, 1)),
}
LEFT = {
    "no whole columns": (PLAIN, (1, 1, 5, 16), (3, 1, 1, 4), Conv(group=3), (6, 1, 4, 1)),
    "zeros around columns": (PLAIN, (1, 1, 5, 16), (3, 1, 1, 4), Conv((1, 1), (1, 0, 0, 0), group=3), (6, 1, 6, 1)),
    "along rows as well": (PLAIN, (1, 1, 5, 16), (3, 1, 1, 4), Conv(group=3), (6, 1, 5, 2)),
    "several channels": (PLAIN, (1, 2, 5, 16), (3, 2, 1, 4), Conv(group=3), (6, 1, 5, 1)),
    "along columns before": (PLAIN, (1, 1, 6, 16), (3, 1, 2, 4), Conv(group=3), (6, 1, 5, 1)),
    "single places": (PLAIN, (1, 1, 5, 16), (3, 1, 1, 1), Conv(group=3), (6, 1, 5, 1)),
    "channels in groups": (PLAIN, (1, 1, 5, 16), (4, 1, 1, 4), Conv(group=2), (6, 2, 5, 1)),
    "rows with zeros around": (Conv((1, 1), (1, 0, 1, 0)), (1, 1, 3, 16), (3, 1, 1, 4), Conv(group=3), (6, 1, 5, 1)),
}


def given(conv: Conv, x: Shape, k: Shape) -> Term:
    return conv(variable("x", x, "float32"), variable("k", k, "float32", constant=True))


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(("rows", "x", "k", "columns", "sums"), TAKEN.values(), ids=TAKEN)
def test_it_is_the_same(rows: Conv, x: Shape, k: Shape, columns: Conv, sums: Shape, biased: bool) -> None:
    """And of no more than as many channels as there are sums."""
    inner = given(rows, x, k)
    inner = Add()(inner, variable("b", inner.shape, "float32", constant=True)) if biased else inner
    weights = variable("l", sums, "float32", constant=True)
    meaning, direct = columns_first(columns, inner, weights), columns(inner, weights)
    assert meaning is not None
    assert meaning.type == direct.type
    values = sample((direct,), FIELD, 0)
    assert (evaluate(meaning, FIELD, values) == evaluate(direct, FIELD, values)).all()
    computed = [t for t in subterms(meaning) if isinstance(t.operator, Conv) and not t.constant]
    assert {t.shape[1:3] for t in computed} == {(sums[0], 1)}
    assert len(computed) == (2 if columns.group == k[0] else 1)


@pytest.mark.parametrize(("rows", "x", "k", "columns", "sums"), LEFT.values(), ids=LEFT)
def test_others_are_left(rows: Conv, x: Shape, k: Shape, columns: Conv, sums: Shape) -> None:
    assert columns_first(columns, given(rows, x, k), variable("l", sums, "float32", constant=True)) is None


def test_what_is_added_while_the_model_runs_is_left() -> None:
    inner = given(PLAIN, (1, 1, 5, 16), (3, 1, 1, 4))
    sums = variable("l", (6, 1, 5, 1), "float32", constant=True)
    assert columns_first(Conv(group=3), Add()(inner, variable("b", inner.shape, "float32")), sums) is None


def test_there_may_be_any_number_of_pictures() -> None:
    sums, columns = variable("l", (6, 1, 5, 1), "float32", constant=True), Conv(group=3)
    with assuming():
        any_number = columns_first(columns, given(PLAIN, (symbol("n"), 1, 5, 16), (3, 1, 1, 4)), sums)
    assert any_number is not None
    assert resize((any_number,), {"n": 2}) == (columns_first(columns, given(PLAIN, (2, 1, 5, 16), (3, 1, 1, 4)), sums),)


def test_sums_of_all_are_left_where_constant_pictures_would_be_computed_as_the_model_runs() -> None:
    sums, n = variable("l", (4, 3, 5, 1), "float32", constant=True), symbol("n")
    with assuming():
        inner = given(PLAIN, (n, 1, 5, 16), (3, 1, 1, 4))
        bias = Expand((1,), inner.shape)(variable("b", (3,), "float32", constant=True))
        assert columns_first(PLAIN, inner, sums) is not None
        assert columns_first(PLAIN, Add()(inner, bias), sums) is None


@pytest.mark.parametrize(
    ("filters", "window", "group", "sums", "batch"), [(16, 64, 16, 32, 1), (16, 64, 16, 32, "n"), (40, 25, 1, 40, 1)]
)
def test_electrodes_are_read_faster_and_the_same(
    filters: int, window: int, group: int, sums: int, batch: int | str, options: Options
) -> None:
    """As EEGNet begins, and ShallowConvNet."""
    nodes = [
        helper.make_node("Conv", ["x", "k", "b"], ["c"], pads=[0, window // 2, 0, (window - 1) // 2]),
        helper.make_node("Conv", ["c", "l", "e"], ["d"], group=group),
        helper.make_node("Relu", ["d"], ["y"]),
    ]
    ends = [("x", TensorProto.FLOAT, [batch, 1, 22, 500]), ("y", TensorProto.FLOAT, [batch, sums, 1, 500])]
    kernels = {"k": weight(filters, 1, 1, window), "b": weight(filters)}
    kernels |= {"l": weight(sums, filters // group, 22, 1), "e": weight(sums)}
    original = model(nodes, ends[:1], ends[1:], kernels)
    result = superopt.optimize(original, options)
    assert result.report.outcome == "faster"
    assert result.report.measured is not None
    assert result.report.measured.speedup > 1.5
    assert_same(result.proto(), original, (1, 1, 22, 500))
