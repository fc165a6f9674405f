"""Rows of several tables that are joined are looked up at once: exactly, and what is past a table's end is refused."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.arithmetic.carrier import Array
from superopt.arithmetic.field import FIELD
from superopt.demands import assuming
from superopt.dim import symbol
from superopt.errors import SuperoptError
from superopt.evaluate import evaluate
from superopt.onnx_io import load, understand
from superopt.operators.layout import Concat, Reshape
from superopt.operators.lookups import Lookups
from superopt.operators.picks import Slice, Take
from superopt.operators.pointwise import Relu
from superopt.operators.rearrange import Gather
from superopt.search.cutting.pieces import cut_into_pieces
from superopt.search.rewriting.finders.tables import LEAST, LookingUp
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import Term, subterms, variable, variables
from tests.models import model, weight
from tests.onnx_io.networks import run

USERS, FEATURES, WIDTH = 3, 5, 4
ROWS = (7, 2, 9, 4, 5)
TABLES = [variable(f"t{i}", (rows, WIDTH), "float32", constant=True) for i, rows in enumerate(ROWS)]
INDICES = variable("i", (USERS, FEATURES), "int64")
DENSE = variable("d", (USERS, 6), "float32")


def column(i: int, of: Term = INDICES) -> Term:
    return Slice(1, i, i + 1)(of)


def flat(tables: list[Term], order: tuple[int, ...] = tuple(range(FEATURES)), of: Term = INDICES) -> list[Term]:
    """What is found for a feature each, for as many users as there are rows."""
    return [Gather(0)(t, Reshape((of.shape[0],))(column(i, of))) for t, i in zip(tables, order, strict=True)]


def joined(*parts: Term, axis: int = 1) -> Term:
    return reduce(Concat(axis), parts)


TAKEN = {
    "after what is no index": joined(DENSE, *flat(TABLES)),
    "before it": joined(*flat(TABLES), DENSE),
    "stacked": joined(*(Gather(0)(t, column(i)) for i, t in enumerate(TABLES))),
    "columns in another order": joined(*flat(TABLES, (4, 0, 1, 3, 2))),
    "one index twice": joined(*flat(TABLES, (0, 0, 1, 2, 3))),
    "indices that come apart": joined(
        *(Gather(0)(t, variable(f"i{k}", (USERS,), "int64")) for k, t in enumerate(TABLES))
    ),
    "indices of 32 bits": joined(*flat(TABLES, of=variable("i", (USERS, FEATURES), "int32"))),
    "one table for all": joined(*flat([TABLES[0]] * FEATURES)),
}
LEFT = {
    "few tables": joined(*flat(TABLES)[: LEAST - 1]),
    "what is found is changed first": joined(*(Relu()(f) for f in flat(TABLES))),
    "below each other": joined(*flat(TABLES), axis=0),
    "tables that are computed": joined(*flat([variable(t.label, t.shape, "float32") for t in TABLES])),
    "along another axis of the tables": joined(
        *(Gather(1)(variable("t", (USERS, 9), "float32", constant=True), variable("k", (2,), "int64")),) * FEATURES
    ),
    "tables of other widths": joined(
        *flat([variable(f"w{i}", (9, 3 + i), "float32", constant=True) for i in range(FEATURES)])
    ),
}  # fmt: skip


def fields(tables: list[Term], axis: int = 1, *, of: Term = INDICES) -> Term:
    """All indices looked up in each of several tables, one behind the other."""
    return joined(*(Gather(0)(t, of) for t in tables), axis=axis)


ALIKE = [variable(f"a{i}", (9, WIDTH), "float32", constant=True) for i in range(6)]
WIDER = {
    "one index a user": fields(ALIKE, 0, of=variable("i", (USERS,), "int64")),
    "several": fields(ALIKE),
    "several in rows": fields(ALIKE, 2, of=variable("i", (2, USERS, FEATURES), "int32")),
    "one table twice": fields([*ALIKE[:3], *ALIKE[:3]]),
}
NARROW = {
    "tables of other rows": fields(TABLES),
    "tables that are computed": fields([variable(t.label, t.shape, "float32") for t in ALIKE]),
    "along the rows of indices": fields(ALIKE, 0),
    "few tables": fields(ALIKE[: LEAST - 1]),
    "one index is another": joined(fields(ALIKE[1:]), fields(ALIKE[:1], of=variable("j", (USERS, FEATURES), "int64"))),
}


@pytest.mark.parametrize("term", WIDER.values(), ids=WIDER)
def test_tables_of_the_same_indices_are_one_of_wider_rows(term: Term) -> None:
    made = LookingUp().of(term)
    assert made is not None
    assert made.type == term.type
    assert [t.operator.name for t in subterms(made) if isinstance(t.operator, Gather | Take)] == ["gather", "take"]
    given = values(term)
    assert (evaluate(made, FIELD, given) == evaluate(term, FIELD, given)).all()


@pytest.mark.parametrize("term", NARROW.values(), ids=NARROW)
def test_tables_of_others_are_not(term: Term) -> None:
    assert LookingUp().of(term) is None


def indices(rows: tuple[int, ...] = ROWS, count: int = USERS) -> Array:
    """From either end of each table."""
    rng = np.random.default_rng(0)
    return np.stack([rng.integers(-size, size, count) for size in rows], axis=1)


def values(term: Term) -> dict[Term, Array]:
    rng, least = np.random.default_rng(1), min(ROWS)
    given = {}
    for v in variables(term):
        shape = [int(d) for d in v.shape]  # type: ignore[arg-type]
        given[v] = rng.integers(-least, least, shape) if "int" in v.type.dtype else FIELD.sample(shape, rng)
    return given


@pytest.mark.parametrize("term", TAKEN.values(), ids=TAKEN)
def test_many_tables_are_looked_up_at_once(term: Term) -> None:
    made = LookingUp().of(term)
    assert made is not None
    assert made.type == term.type
    assert [t.operator.name for t in subterms(made) if isinstance(t.operator, Gather | Lookups)] == ["lookups"]
    given = values(term)
    assert (evaluate(made, FIELD, given) == evaluate(term, FIELD, given)).all()


@pytest.mark.parametrize("term", LEFT.values(), ids=LEFT)
def test_others_are_left(term: Term) -> None:
    assert LookingUp().of(term) is None


def test_columns_that_follow_each_other_are_not_moved() -> None:
    made = LookingUp().of(TAKEN["after what is no index"])
    assert made is not None
    assert INDICES in next(t for t in subterms(made) if isinstance(t.operator, Lookups)).inputs


def test_how_many_users_there_are_may_stay_open() -> None:
    with assuming():
        term = joined(*flat(TABLES, of=variable("i", (symbol("users"), FEATURES), "int64")))
    made = LookingUp().of(term)
    assert made is not None
    assert made.type == term.type


def test_indices_of_an_open_number_are_looked_up_at_once_and_one_alone_is_left() -> None:
    """That there are none is not ruled out where only one is looked at: it raised what making a column of them does."""
    parts = [Gather(0)(t, variable(f"i{k}", (symbol("n"),), "int64")) for k, t in enumerate(TABLES)]
    made = LookingUp().of(joined(*parts))
    assert made is not None
    assert made.type == joined(*parts).type
    assert LookingUp().of(joined(Relu()(parts[0]), parts[1])) is None


@pytest.mark.parametrize("rows", [(), (0, 5), (2, 2)])
def test_tables_of_other_rows_than_there_are_are_refused(rows: tuple[int, ...]) -> None:
    with pytest.raises(SuperoptError, match="lookups"):
        Lookups(rows)(TABLES[2], variable("i", (2, 2), "int64"))


def test_it_is_done_where_definitions_are_unfolded() -> None:
    assert Less(LookingUp) in rewrites_of([], ["gelu"])
    assert Less(LookingUp) not in rewrites_of([], [])


def recommender(features: int = 24, width: int = 8) -> onnx.ModelProto:
    """Tables of several sizes, each looked up by a column of the indices, and two layers."""
    nodes = []
    for i in range(features):
        nodes += [
            helper.make_node("Gather", ["i", f"at{i}"], [f"c{i}"], axis=1),
            helper.make_node("Gather", [f"t{i}", f"c{i}"], [f"r{i}"]),
        ]
    nodes += [
        helper.make_node("Concat", [f"r{i}" for i in range(features)], ["x"], axis=1),
        helper.make_node("Gemm", ["x", "w", "b"], ["h"]),
        helper.make_node("Relu", ["h"], ["a"]),
        helper.make_node("MatMul", ["a", "v"], ["y"]),
    ]
    weights = {f"t{i}": weight(20 + i, width, seed=i) for i in range(features)}
    weights |= {f"at{i}": np.array(i) for i in range(features)}
    weights |= {"w": weight(features * width, 16), "b": weight(16), "v": weight(16, 1)}
    ends = [("i", TensorProto.INT64, ["users", features]), ("y", TensorProto.FLOAT, ["users", 1])]
    return model(nodes, ends[:1], ends[1:], weights)


def test_lookups_of_a_recommender_are_one_piece(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(recommender(), path)
    first, *_ = cut_into_pieces(understand(load(path)))
    assert sum(isinstance(t.operator, Gather) for t in subterms(*first.graph.outputs)) == 24


def test_a_recommender_is_faster_and_refuses_what_it_refused(options: Options) -> None:
    """It is the same from both ends of each table, and an index past one is an error though other tables are there."""
    given = recommender()
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    found = result.proto()
    assert sum(n.op_type == "Gather" for n in found.graph.node) == 1
    onnx.checker.check_model(found, full_check=True)
    feed = {"i": indices(tuple(range(20, 44)), 64)}
    for a, e in zip(run(found, feed), run(given, feed), strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-6)
    for feature, index in ((0, 20), (0, -21), (3, 23), (3, -24), (23, 43), (23, -44), (5, 10**6)):
        feed = {"i": np.zeros((2, 24), np.int64)}
        feed["i"][1, feature] = index
        for m in (given, found):
            with pytest.raises(Exception, match="indices element out of data bounds"):
                run(m, feed)
