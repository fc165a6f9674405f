"""Random graphs over the whole catalogue keep their meaning on the way to ONNX, into terms, and back."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.random_graphs import OPSETS, Outcome, examined, has_all
from benchmarks.random_terms import NAMES, Sample, random_graph
from superopt.arithmetic.floats import FLOAT
from superopt.evaluate import evaluate
from superopt.onnx_io import check, standalone
from superopt.operators import NotUnderstood
from superopt.operators.activations import PRelu
from superopt.operators.layout import Expand
from superopt.operators.padding import Pad
from superopt.term import Graph, Term, subterms, variable

COUNT = 150
UNREACHED: dict[str, str] = {}
"""Operators that no random graph has, and why."""

seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    """What became of a sample: the same one in every run."""
    found: list[Outcome] = []

    @settings(max_examples=COUNT, derandomize=True, deadline=None, database=None, suppress_health_check=[*HealthCheck])
    @given(seeds)
    def draw(seed: int) -> None:
        found.append(examined(seed))

    draw()
    return found


def test_no_random_graph_changes_its_meaning(outcomes: list[Outcome]) -> None:
    failed = [
        f"python -m benchmarks.random_graphs --seed {o.seed} --count 1: {f}" for o in outcomes for f in o.failures
    ]
    assert not failed, "\n".join(failed)


def test_nearly_all_random_graphs_say_something(outcomes: list[Outcome]) -> None:
    assert len(outcomes) >= COUNT
    assert sum(o.says_something for o in outcomes) >= 0.9 * len(outcomes)


def test_nearly_all_random_models_were_run_and_in_both_opsets(outcomes: list[Outcome]) -> None:
    by = Counter(by for o in outcomes for by in o.run_by)
    assert by["onnxruntime"] >= 0.7 * by.total()
    assert by["nothing"] <= 0.05 * by.total()
    opsets = Counter(opset for o in outcomes for opset in o.opsets)
    assert opsets[OPSETS[0]] == len(outcomes)
    assert opsets[OPSETS[1]] >= 0.5 * len(outcomes)


@pytest.fixture(scope="module")
def drawn() -> list[Sample]:
    """Graphs of four hundred seeds."""
    return [random_graph(seed) for seed in range(400)]


def test_every_operator_occurs_in_random_graphs(drawn: list[Sample]) -> None:
    occurred = {name for sample in drawn for name in sample.operators}
    assert occurred == set(NAMES) - set(UNREACHED)


def test_random_graphs_are_of_all_ranks_types_and_forms(drawn: list[Sample]) -> None:
    terms = [t for sample in drawn for t in subterms(*sample.graph.outputs)]
    assert {t.type.rank for t in terms} == set(range(6))
    assert {t.type.dtype for t in terms} == {"float32", "float64", "int64", "bool", "real"}
    assert any(len(sample.graph.outputs) > 2 for sample in drawn)
    assert any(count > 1 for sample in drawn for count in _uses(sample.graph.outputs).values())


def _uses(outputs: tuple[Term, ...]) -> Counter[Term]:
    return Counter(i for t in subterms(*outputs) for i in t.inputs if i.inputs)


def test_only_the_slope_of_a_prelu_is_broadcast_by_onnx() -> None:
    x, slope = variable("x", (3,), "float32"), variable("s", (2, 3), "float32")
    model = standalone(Graph((), (PRelu()(Expand((1,), (2, 3))(x), slope),)), 17)
    check(model)
    assert [node.op_type for node in model.graph.node] == ["Expand", "PRelu"]


def test_a_number_is_padded_to_itself() -> None:
    x = variable("x", (), "float32")
    assert evaluate(Pad(())(x), FLOAT, {x: np.asarray(2.5)}) == 2.5


def test_a_seed_always_gives_the_same_graph(drawn: list[Sample]) -> None:
    for seed in range(20):
        assert random_graph(seed).graph == drawn[seed].graph
        assert all((a == b).all() for a, b in zip(random_graph(seed).values, drawn[seed].values, strict=True) if a.size)


def test_what_an_older_opset_lacks_is_what_cannot_be_written_in_it(drawn: list[Sample]) -> None:
    lacking = [sample.graph for sample in drawn if not has_all(sample.graph, 17)]
    assert lacking
    for graph in lacking:
        with np.errstate(all="ignore"), pytest.raises(NotUnderstood):  # weights as drawn may have no root or logarithm
            standalone(graph, 17)
