"""Windows: equal for terms that rewrites cannot tell apart, and only for those; what is below comes back."""

from __future__ import annotations

import gc
import random
import weakref

import pytest

from superopt.operators.layout import Expand
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.search.rewriting.window import Windows, below, placed, window
from superopt.term import Term, variable

X, Y = (variable(name, (2, 3), "float32") for name in "xy")
W = variable("w", (3,), "float32", constant=True)
SPREAD = Expand((1,), (2, 3))(W)


def drawn(seed: int) -> Term:
    """A term of a few point-wise operators."""
    rng, terms = random.Random(seed), [X, Y, SPREAD]
    for _ in range(rng.randint(2, 7)):
        op = rng.choice([Add(), Mul(), Relu()])
        terms.append(op(*(rng.choice(terms) for _ in range(op.arity))))
    return terms[-1]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_keys_are_equal_where_windows_are(depth: int) -> None:
    windows, found = Windows(), set()
    for seed in range(300):
        root = drawn(seed)
        if not root.constant:
            seen = window((root,), depth)
            found.add((windows.key((root,), depth), seen.roots, seen.facts))
    assert len(found) > 20
    assert len({key for key, *_ in found}) == len({(roots, facts) for _, roots, facts in found}) == len(found)


@pytest.mark.parametrize("seed", range(20))
def test_what_a_window_shows_is_put_back_in_its_place(seed: int) -> None:
    root = drawn(seed)
    for depth in (1, 2, 9):
        seen = window((root,), depth)
        assert placed(seen.roots, seen.leaves, below((root,), depth)) == (root,)


def test_what_lies_deeper_makes_no_difference() -> None:
    windows = Windows()
    near, far = (Add()(Relu()(deep), Y) for deep in (X, Mul()(X, X)))
    assert windows.key((near,), 2) == windows.key((far,), 2)
    assert windows.key((near,), 3) != windows.key((far,), 3)


def test_whether_inputs_are_the_same_is_seen() -> None:
    windows = Windows()
    assert windows.key((Add()(Relu()(X), Relu()(X)),), 1) != windows.key((Add()(Relu()(X), Relu()(Y)),), 1)


def test_terms_that_are_forgotten_are_not_kept_but_their_keys_are() -> None:
    windows = Windows()
    term = Relu()(Add()(X, Mul()(X, variable("only here", (2, 3), "float32"))))
    keys, seen = [windows.key((term,), depth) for depth in (0, 3)], weakref.ref(term)  # at the edge, and within
    windows.forget_terms()
    assert [windows.key((term,), depth) for depth in (0, 3)] == keys
    windows.forget_terms()
    del term
    gc.collect()
    assert seen() is None
