"""Growing in columns: the same values as evaluating each term, nothing left out, nothing twice."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import pytest

from superopt.arithmetic.carrier import Array
from superopt.demands import assuming
from superopt.enumerate.family import Family
from superopt.enumerate.family_text import load_family, read_family, shipped_families, with_operators
from superopt.enumerate.grow import Met, grow
from superopt.enumerate.represented import represented
from superopt.enumerate.table import Table
from superopt.evaluate import evaluate
from superopt.operators.symbolic import resize
from superopt.term import Term, make, replace_all, subterms, variable

TINY = """(family tiny (sizes (n 2 3 5)) (given (?x n n) (?y n n))
  (operators (add ?a ?b) (matmul ?a ?b) (relu ?a) (concat 0 ?a ?b) (slice 0 0 n ?a)))"""


def grown(family: Family, levels: int, seed: int = 0) -> tuple[Table, list[Met]]:
    table = Table(family, seed, levels)
    return table, [grow(table, level, level == levels) for level in range(levels + 1)]


def value(table: Table, term: Term, n: int) -> Array:
    """A term's value for one of the table's inputs, evaluated alone."""
    on = table.values.inputs[n]
    (sized,) = resize((term,), table.family.numbers(on.choice))
    return evaluate(sized, on.ring, given(table)[n])


@lru_cache(maxsize=1)
def given(table: Table) -> list[dict[Term, Array]]:
    """The values of a table's variables, for each of its inputs."""
    leaves = [(leaf, table.values.of_leaf(leaf, i)) for i, leaf in enumerate(table.leaves) if leaf.is_variable]
    found = []
    for n, on in enumerate(table.values.inputs):
        sized = resize(tuple(leaf for leaf, _ in leaves), table.family.numbers(on.choice))
        found.append({v: a[n].reshape(v.shape) for v, (_, a) in zip(sized, leaves, strict=True)})  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("name", shipped_families())
def test_columns_have_the_values_that_terms_have(name: str) -> None:
    table, _ = grown(load_family(name), 3 if name == "attention" else 2)
    rng = np.random.default_rng(0)
    terms = range(len(table)) if len(table) < 100 else rng.choice(len(table), 100, replace=False).tolist()
    for i in map(int, terms):
        for n in range(len(table.values.inputs)):
            column = table.values._columns[int(table.type[i]), n][:, table.row[i]]
            alone = value(table, table.term(i), n)
            assert np.array_equal(column, alone.ravel()), (table.term(i), n)


def all_terms(family: Family, most: int) -> Iterator[Term]:
    """Every term of up to so many different operators, one by one."""
    known: dict[Term, int] = dict.fromkeys(family.given, 0)
    for _ in range(most):
        for pattern in family.operators:
            for inputs in itertools.product(list(known), repeat=len(pattern.holes)):
                (made,) = pattern.over([i.shape for i in inputs])
                if made is None or not family.fits(made):
                    continue
                op = made.operator
                with assuming():
                    term = make(op, inputs)
                count = sum(not t.is_variable for t in subterms(term))
                if count <= most:
                    known[term] = count
    yield from known


def test_no_value_of_any_graph_is_left_out_and_none_is_kept_twice() -> None:
    family = read_family(TINY, "tiny")
    table, _ = grown(family, 3)
    wanted: dict[tuple[bytes, ...], int] = {}
    for term in all_terms(family, 2):
        key = tuple(value(table, term, n).tobytes() for n in range(2))
        count = sum(not t.is_variable for t in subterms(term))
        wanted[key] = min(count, wanted.get(key, count))
    found = {
        tuple(value(table, table.term(i), n).tobytes() for n in range(2)): int(table.level[i])
        for i in range(len(table))
    }
    assert len(found) == len(table) > 50
    # The field tells apart what order does not: relu of a square is one thing there, and two here.
    assert found.keys() <= wanted.keys()
    assert len(wanted) - len(found) <= 6
    assert all(level == wanted[key] for key, level in found.items())


def test_an_operator_with_two_users_counts_once() -> None:
    table, _ = grown(read_family(TINY, "tiny"), 3)
    shared = [i for i in range(len(table)) if str(table.term(i)) == "(add (matmul ?x ?y) (matmul ?x ?y))"]
    assert [int(table.level[i]) for i in shared] == [2]


def test_at_the_last_level_one_of_all_renamings_is_met() -> None:
    family = with_operators(load_family("taso-matrices"), ["matmul", "add"])
    whole, canonical = grown(family, 3)[1][2], grown(family, 2)[1][2]
    table = grown(family, 3)[0]
    fits = table.canonical(whole.rows)
    assert 0 < len(canonical.rows) < len(whole.rows) / 4
    assert set(canonical.rows.keys().tolist()) == set(whole.rows.at(np.flatnonzero(fits)).keys().tolist())


def test_a_renaming_of_a_term_has_the_value_of_the_term_renamed() -> None:
    table, _ = grown(read_family(TINY, "tiny"), 3)
    swapped = table.renamed((1, 0))
    assert (swapped >= 0).all()
    x, y = table.leaves
    aside = variable("aside", x.shape)
    for i in range(2, len(table), 7):
        with assuming():
            (by_hand,) = replace_all(replace_all((table.term(i),), {x: aside}), {y: x})
            (by_hand,) = replace_all((by_hand,), {aside: y})
        assert np.array_equal(value(table, by_hand, 0), value(table, table.term(int(swapped[i])), 0))


def test_as_many_graphs_are_represented_as_there_are_trees() -> None:
    text = "(family f (sizes (n 2 3 5)) (given (?x n) (?y n)) (operators (add ?a ?b) (relu ?a)))"
    table, _ = grown(read_family(text, "f"), 2)
    # 2 leaves; 4 + 2 trees of one operator; of two: add over a leaf and one of 6, either way (24), relu of 6.
    assert represented(table, 2) == 2 + 6 + 30


def test_another_seed_grows_the_same_terms() -> None:
    one, other = (grown(read_family(TINY, "tiny"), 3, seed)[0] for seed in (0, 1))
    assert [str(one.term(i)) for i in range(len(one))] == [str(other.term(i)) for i in range(len(other))]
