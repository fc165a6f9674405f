"""What holds in every carrier: samples, hashes that know their argument, reductions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng

from superopt.arithmetic.carrier import Carrier, Function
from superopt.arithmetic.exact import EXACT
from superopt.arithmetic.field import FIELD
from superopt.arithmetic.floats import FLOAT
from superopt.arithmetic.hashes import keyed_hash
from superopt.arithmetic.order import ORDER

CARRIERS = (*EXACT, FLOAT)


@pytest.mark.parametrize("ring", CARRIERS, ids=lambda r: r.name)
def test_a_carrier_samples_the_same_for_the_same_seed_and_no_zeros(ring: Carrier) -> None:
    x = ring.sample((50, 20), default_rng(4))
    assert x.shape == (50, 20)
    assert x.dtype == ring.dtype
    assert (x == ring.sample((50, 20), default_rng(4))).all()
    assert (x != 0).all()
    assert len(np.unique(x)) > 10


@pytest.mark.parametrize("name", ["sqrt", "erf", "exp"])
@pytest.mark.parametrize("ring", EXACT, ids=lambda r: r.name)
def test_a_hashed_function_gives_equal_values_for_equal_arguments_only(ring: Carrier, name: str) -> None:
    function = Function(name, np.exp)
    x = np.arange(1, 401)
    values = ring.apply(function, x)
    assert (values == ring.apply(function, x.copy())).all()
    shuffled = default_rng(5).permutation(400)
    assert (ring.apply(function, x[shuffled]) == values[shuffled]).all()
    assert len(np.unique(values)) == 400 if ring is FIELD else len(np.unique(values)) > 250
    assert (values != ring.apply(Function("another", np.exp), x)).mean() > 0.99


@pytest.mark.parametrize("ring", CARRIERS, ids=lambda r: r.name)
def test_a_function_that_keeps_zero_does_so_in_every_carrier(ring: Carrier) -> None:
    function = Function("sqrt", np.sqrt, zero=True)
    assert (ring.apply(function, np.zeros(3, dtype=ring.dtype)) == 0).all()


def test_a_hash_knows_the_place_of_each_argument() -> None:
    x, y = np.arange(100), np.arange(100, 200)
    assert (keyed_hash("f", x, y) != keyed_hash("f", y, x)).all()
    assert (keyed_hash("f", x, y) != keyed_hash("g", x, y)).all()
    assert (keyed_hash("f", x, y) >= 0).all()


def test_hashes_do_not_depend_on_the_process() -> None:
    assert keyed_hash("sqrt", np.arange(3)).tolist() == [1447646280617195218, 6038023358977482829, 6715903470450702147]


@pytest.mark.parametrize("ring", CARRIERS, ids=lambda r: r.name)
def test_the_largest_ignores_what_is_absent_and_the_order(ring: Carrier) -> None:
    rng = default_rng(6)
    x, present = ring.sample((6, 5), rng), rng.random((6, 5)) < 0.6
    present[0] = True
    there = ring.largest(x, (0,), present)
    turned = rng.permutation(6)
    assert (ring.largest(x[turned], (0,), present[turned]) == there).all()
    changed = np.where(present, x, ring.sample((6, 5), rng))
    assert (ring.largest(changed, (0,), present) == there).all()
    if "order" in ring.has:
        assert there.tolist() == [x[present[:, j], j].max() for j in range(5)]


@pytest.mark.parametrize("ring", [ORDER, FLOAT], ids=lambda r: r.name)
def test_what_order_defines_is_exact_where_there_is_an_order(ring: Carrier) -> None:
    x = ring.sample((100,), default_rng(7))
    relu = Function("relu", lambda x: np.maximum(x, 0), ordered=True)
    assert (ring.apply(relu, x) == np.where(x > 0, x, 0)).all()


@pytest.mark.parametrize("ring", EXACT, ids=lambda r: r.name)
def test_arguments_of_a_hash_may_be_swapped_where_the_function_says_so_only(ring: Carrier) -> None:
    x, y = ring.sample((200,), default_rng(8)), ring.sample((200,), default_rng(9))
    fair, unfair = Function("f", np.hypot, commutative=True), Function("f", np.arctan2)
    assert (ring.apply(fair, x, y) == ring.apply(fair, y, x)).all()
    assert (ring.apply(unfair, x, y) != ring.apply(unfair, y, x)).mean() > 0.8


@pytest.mark.parametrize("ring", CARRIERS, ids=lambda r: r.name)
def test_softmax_moves_with_its_axis(ring: Carrier) -> None:
    x = ring.sample((4, 7), default_rng(9))
    assert np.allclose(ring.softmax(x, 1), ring.softmax(x.T, 0).T, rtol=1e-12, atol=0)
