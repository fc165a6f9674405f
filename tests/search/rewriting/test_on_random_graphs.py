"""Whatever rewrites, on random graphs over the whole catalogue: terms keep their values, to rounding in 64 bits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.random_terms import Sample, random_graph
from superopt.api import definitions
from superopt.arithmetic.carrier import Array
from superopt.arithmetic.floats import FLOAT
from superopt.evaluate import evaluate_all
from superopt.onnx_io import random_weights
from superopt.operators.meanings import SPELLINGS
from superopt.operators.reductions import Largest, Mean, Smallest, Sum
from superopt.rules.format import load_rules
from superopt.search.rewriting.finders import FINDERS
from superopt.search.rewriting.finders.monotone import Extremes
from superopt.search.rewriting.finders.placewise import Placewise
from superopt.search.rewriting.finders.repeated import Repeating
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import rewrites_of
from superopt.shipped import shipped_rules
from superopt.term import REAL, Graph, Term, subterms

COUNT = 800
SLACK = 1e-7
"""What is allowed, of the largest value or 0.01: sums of the same numbers in another order."""


@pytest.fixture(scope="module")
def drawn() -> list[Sample]:
    """Graphs of as many seeds."""
    return [random_graph(seed) for seed in range(COUNT)]


def feed(sample: Sample) -> dict[Term, Array]:
    """The data of its inputs and weights, what is of floats in 64 bits."""
    given = sample.feed | random_weights(sample.graph)
    return {x: data.astype(np.float64) if data.dtype.kind == "f" else data for x, data in given.items()}


def same(old: Term, new: Term, sample: Sample) -> bool:
    """Whether two terms have one value, where that is finite."""
    with np.errstate(all="ignore"):
        before, after = (np.asarray(v, np.float64) for v in evaluate_all((old, new), FLOAT, feed(sample)))
    if not np.isfinite(before).all():
        return True
    return bool((abs(before - after) <= SLACK * max(0.01, abs(before).max(initial=0.0))).all())


@pytest.fixture(scope="module")
def everything() -> Matching:
    """All shipped rules and all definitions."""
    rules = [r for path in shipped_rules() for r in load_rules(path).rules]
    return Matching(rewrites_of(rules, definitions(), SPELLINGS))


def test_no_rewrite_changes_the_value_of_a_random_graph(everything: Matching, drawn: list[Sample]) -> None:
    applied, wrong = Counter[str](), []
    for seed, sample in enumerate(drawn):
        everything.forget_terms()
        for application in everything.applications(sample.graph):
            name = application.template.rewrite.name
            for old, new in application.new.items():
                applied[name] += 1
                if new.type not in (old.type, replace(old.type, dtype=REAL)) or not same(old, new, sample):
                    wrong.append(f"graph {seed}: {name}: {old} became {new}")
    assert not wrong, "\n".join(wrong)
    assert len(applied) >= 100
    assert applied.total() >= COUNT


def reduced(sample: Sample, rng: np.random.Generator) -> Iterator[Term]:
    """What its graph computes, and that reduced in each way along some axes."""
    for term in subterms(*sample.graph.outputs):
        yield term
        if term.type.rank and "float" in term.type.dtype:
            count = int(rng.integers(1, term.type.rank + 1))
            axes = tuple(sorted(rng.choice(term.type.rank, count, replace=False).tolist()))
            yield from (kind.of(axes)(term) for kind in (Largest, Smallest, Sum, Mean))


def test_no_finder_changes_the_value_of_what_is_reduced_in_a_random_graph(drawn: list[Sample]) -> None:
    made, wrong = Counter[type](), []
    for seed, sample in enumerate(drawn):
        roots = Graph(sample.graph.inputs, tuple(reduced(sample, np.random.default_rng(seed)))).outputs
        for finder in (kind() for kind in FINDERS):
            for old in (term for term in dict.fromkeys(subterms(*roots)) if not term.is_variable):
                if (new := finder.of(old)) is not None:
                    made[type(finder)] += 1
                    if new.type != old.type or not same(old, new, sample):
                        wrong.append(f"graph {seed}: {finder.name}: {old} became {new}")
    assert not wrong, "\n".join(wrong)
    assert min(made[kind] for kind in (Extremes, Placewise, Repeating)) >= 20, made
