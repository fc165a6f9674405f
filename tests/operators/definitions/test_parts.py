"""One part of rows is cut out of them before they are moved, where parts stand beside each other, and only there."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from superopt.arithmetic.floats import FLOAT
from superopt.demands import assuming
from superopt.dim import symbol
from superopt.evaluate import evaluate
from superopt.operators.definitions.parts import of_parts
from superopt.operators.layout import Reshape, Transpose
from superopt.operators.picks import Slice
from superopt.term import Term, subterms, variable, variables

ROWS = {
    "queries, keys and values": ((2, 5, 24), (2, 5, 3, 4, 2), 2),
    "rows of one axis": ((10, 24), (2, 5, 3, 4, 2), 2),
    "halves of channels": ((2, 6, 4), (2, 2, 3, 4), 1),
    "one batch": ((1, 6, 4), (1, 6, 2, 2), 2),
}
"""What rows are, what they are taken apart into, and which axis of it counts the parts."""

OTHERS = {
    "parts within heads": ((2, 5, 24), (2, 5, 4, 3, 2), 3),
    "parts across two axes": ((2, 6, 4), (2, 3, 8), 1),
}


def test_a_slice_as_long_as_a_symbol_is_no_part() -> None:
    """Whether it is one place long depends on the sizes."""
    parted = Reshape((2, 3, 4))(variable("x", (2, 12)))
    assert of_parts(Slice(1, 0, symbol("n")), parted) is None


def value(term: Term) -> np.ndarray:
    (x,) = variables(term)
    shape = tuple(int(str(d)) for d in x.shape)
    return evaluate(term, FLOAT, {x: np.arange(np.prod(shape), dtype=np.float64).reshape(shape)})


def one_part(rows: tuple[int, ...], parted: tuple[int, ...], perm: tuple[int, ...], at: int, part: int) -> Term:
    moved = Reshape(parted)(variable("x", rows))
    moved = moved if perm == tuple(sorted(perm)) else Transpose(perm)(moved)
    return Slice(perm.index(at), part, part + 1)(moved)


@pytest.mark.parametrize("name", ROWS)
def test_a_part_is_cut_out_of_the_rows_whatever_moves_it_afterwards(name: str) -> None:
    rows, parted, at = ROWS[name]
    for perm in itertools.permutations(range(len(parted))):
        for part in range(parted[at]):
            term = one_part(rows, parted, perm, at, part)
            made = of_parts(term.operator, term.inputs[0])
            assert made is not None, perm
            assert next(t for t in subterms(made) if isinstance(t.operator, Slice)).inputs[0].is_variable
            np.testing.assert_array_equal(value(made), value(term))


@pytest.mark.parametrize("name", OTHERS)
def test_parts_that_are_no_neighbours_in_the_rows_stay(name: str) -> None:
    rows, parted, at = OTHERS[name]
    term = one_part(rows, parted, tuple(range(len(parted))), at, 1)
    assert of_parts(term.operator, term.inputs[0]) is None


def test_several_parts_stay_and_so_do_rows_of_one_part() -> None:
    parted = Reshape((2, 5, 3, 4, 2))(variable("x", (2, 5, 24)))
    assert of_parts(Slice(2, 0, 2), parted) is None
    assert of_parts(Slice(2, 0, 1), variable("x", (2, 5, 3, 4, 2))) is None
    assert of_parts(Slice(2, 0, 1), parted) is not None


def test_how_many_images_there_are_may_be_a_symbol() -> None:
    n = symbol("n")
    with assuming():
        moved = Transpose((2, 0, 3, 1, 4))(Reshape((n, 5, 3, 4, 2))(variable("x", (n, 5, 24))))
        made = of_parts(Slice(0, 1, 2), moved)
    assert made is not None
    assert [t.operator for t in subterms(made) if isinstance(t.operator, Slice)] == [Slice(2, 8, 16)]
