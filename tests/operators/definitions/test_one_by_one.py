"""What picks short rows means the same number by number; of longer rows, and of what holds no numbers, nothing does."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.demands import assuming
from superopt.dim import Dim, Shape, symbol
from superopt.operators.columns import Columns, Elements
from superopt.operators.declared import Declared
from superopt.operators.definitions.one_by_one import (
    FEW,
    SHORT,
    along_the_last_axis,
    every_as_columns,
    of_numbers,
    slice_as_columns,
    take_as_columns,
)
from superopt.operators.nodes import ML_DOMAIN
from superopt.operators.picks import Every, Slice, Take
from superopt.operators.rearrange import Gather
from superopt.term import Term, subterms, variable
from tests.models import assert_same, model
from tests.operators.definitions.equality import assert_equal

N = symbol("n")


def picks(n: Dim) -> dict[str, Term]:
    return {
        "take of columns": Take(1, (3, 0, 3))(variable("x", (n, 4), "float32")),
        "take of short rows": Take(1, (2, 0))(variable("x", (n, 3, 2), "float32")),
        "take with an axis of one place behind": Take(1, (2, 0))(variable("x", (n, 3, 1), "int64")),
        "slice": Slice(2, 1, 3)(variable("x", (2, n, 4), "float64")),
        "every": Every(1, 2)(variable("x", (n, 7), "float32")),
        "every of short rows": Every(1, 3)(variable("x", (n, 7, 2), "int32")),
        "every of a slice": Every(1, 2)(Slice(1, 1, 6)(variable("x", (n, 7), "float32"))),
    }


PICKS = picks(5)
MEANINGS = {Take: take_as_columns, Slice: slice_as_columns, Every: every_as_columns}
LEFT: dict[str, Term] = {
    "long rows": Take(1, (2, 0))(variable("x", (N, 3, SHORT + 1), "float32")),
    "one row": Take(1, (2, 0))(variable("x", (1, 3), "float32")),
    "many columns": Slice(1, 0, FEW + 1)(variable("x", (N, 20), "float32")),
    "rows": Slice(0, 0, 2)(variable("x", (9, 4), "float32")),
    "16 bits": Take(1, (3, 0))(variable("x", (N, 4), "float16")),
    "truth values": Take(1, (3, 0))(variable("x", (N, 4), "bool")),
    "constants": Take(1, (3, 0))(variable("x", (5, 4), "float32", constant=True)),
}


def meaning(term: Term) -> Term | None:
    return MEANINGS[type(term.operator)](term.operator, *term.inputs)  # type: ignore[index]


def assert_picked(found: Term | None, wanted: Term, which: type[Declared]) -> None:
    made = assert_equal(found, wanted)
    assert any(isinstance(t.operator, which) for t in subterms(made))


@pytest.mark.parametrize("name", PICKS)
def test_as_columns_the_same_is_picked(name: str) -> None:
    assert_picked(meaning(PICKS[name]), PICKS[name], Columns)


@pytest.mark.parametrize("name", PICKS)
def test_of_any_number_of_rows_columns_are_picked(name: str) -> None:
    wanted = picks(N)[name]
    with assuming():
        found = meaning(wanted)
    assert found is not None
    assert found.type == wanted.type


@pytest.mark.parametrize("name", LEFT)
def test_of_others_no_columns_are_picked(name: str) -> None:
    assert meaning(LEFT[name]) is None


@pytest.mark.parametrize("shape", [(7,), (7, 1)], ids=str)
@pytest.mark.parametrize("indices", [(3,), (2, 3), ()], ids=str)
def test_numbers_of_a_table_are_picked_as_elements(shape: Shape, indices: Shape) -> None:
    """By integers of any sign: negative ones count from its end."""
    x, i = variable("x", shape, "float32", constant=True), variable("i", indices, "int64")
    assert_picked(of_numbers(Gather(0), x, i), Gather(0)(x, i), Elements)


def test_columns_whose_places_are_computed_are_picked_as_elements() -> None:
    x, i = variable("x", (2, 5, 7), "float32"), variable("i", (3,), "int64")
    assert_picked(along_the_last_axis(Gather(2), x, i), Gather(2)(x, i), Elements)


def test_rows_of_several_numbers_and_places_of_several_axes_are_left() -> None:
    i = variable("i", (N,), "int64")
    assert of_numbers(Gather(0), variable("x", (7, 2), "float32"), i) is None
    assert of_numbers(Gather(1), variable("x", (1, 7), "float32"), i) is None
    assert of_numbers(Gather(0), variable("x", (7,), "bool"), i) is None
    x = variable("x", (5, 7), "float32")
    assert along_the_last_axis(Gather(0), x, i) is None
    assert along_the_last_axis(Gather(1), x, variable("j", (2, 3), "int64")) is None


FASTER = {
    "columns in another order": ((512, 64), (512, 64), [helper.make_node("Gather", ["x", "order"], ["y"], axis=1)]),
    "every other column": (
        (4, 128, 64),
        (4, 128, 32),
        [helper.make_node("Slice", ["x", "first", "end", "last", "step"], ["y"])],
    ),
    "one of four coordinates": ((8400, 4), (8400,), [helper.make_node("Gather", ["x", "second"], ["y"], axis=1)]),
}
WEIGHTS = {
    "order": np.random.default_rng(0).permutation(64),
    "first": np.array([1]),
    "end": np.array([2**60]),
    "last": np.array([2]),
    "step": np.array([2]),
    "second": np.array(1),
}


@pytest.mark.parametrize("name", FASTER)
def test_such_models_are_faster_and_import_the_domain(name: str, options: Options) -> None:
    """Alone 17, 2 and 7 times."""
    shape, to, nodes = FASTER[name]
    read = {k: v for k, v in WEIGHTS.items() if k in nodes[0].input}
    whole = model(nodes, [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, to)], read)
    result = superopt.optimize(whole, options)
    assert result.report.outcome == "faster"
    assert [i.domain for i in result.proto().opset_import] == ["", ML_DOMAIN]
    assert_same(result.proto(), whole)
