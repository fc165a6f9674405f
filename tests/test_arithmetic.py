"""Carriers: the field is exact at true sizes, hashes know their argument, the ordered integers order."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.random import default_rng

from superopt.arithmetic import EXACT, FIELD, FLOAT, ORDER, PRIME, Array, Carrier, Function, keyed_hash
from superopt.evaluate import evaluate, sample
from superopt.operators.layout import Expand
from superopt.operators.linear import Conv
from superopt.operators.transposed import ConvTranspose
from superopt.term import variable

CARRIERS = (*EXACT, FLOAT)


def _exact_product(x: Array, y: Array) -> Array:
    """With Python's integers, which do not overflow."""
    return ((x.astype(object) @ y.astype(object)) % PRIME).astype(np.int64)


@pytest.mark.parametrize("k", [1, 3, 256, 4096])
@pytest.mark.parametrize("near", [0, PRIME - 3])
def test_the_field_multiplies_matrices_exactly(k: int, near: int) -> None:
    rng = default_rng(k)
    x, y = rng.integers(near, PRIME, (5, k)), rng.integers(near, PRIME, (k, 4))
    assert (FIELD.matmul(x, y) == _exact_product(x, y)).all()


def test_the_field_multiplies_the_largest_elements_exactly_at_the_longest_axis() -> None:
    k = 2**21 - 1
    largest = np.full((1, k), PRIME - 1)
    assert FIELD.matmul(largest, largest.T).item() == k * (PRIME - 1) ** 2 % PRIME


def test_the_field_multiplies_batches_of_matrices() -> None:
    rng = default_rng(0)
    x, y = FIELD.sample((3, 2, 7), rng), FIELD.sample((3, 7, 5), rng)
    together = FIELD.matmul(x, y)
    assert all((together[i] == _exact_product(x[i], y[i])).all() for i in range(3))


@pytest.mark.parametrize("operation", ["add", "mul"])
def test_the_field_adds_and_multiplies_as_integers_modulo_p(operation: str) -> None:
    rng = default_rng(1)
    x, y = rng.integers(0, PRIME, 1000), rng.integers(PRIME - 1000, PRIME, 1000)
    exact = x.astype(object) + y if operation == "add" else x.astype(object) * y
    assert (getattr(FIELD, operation)(x, y) == exact % PRIME).all()


def test_the_field_sums_as_integers_modulo_p() -> None:
    x = default_rng(2).integers(PRIME - 1000, PRIME, (9, 1000, 3))
    assert (FIELD.total(x, (1, 2)) == x.astype(object).sum(axis=(1, 2)) % PRIME).all()


def test_division_in_the_field_undoes_multiplication() -> None:
    rng = default_rng(3)
    x, y = FIELD.sample((500,), rng), FIELD.sample((500,), rng)
    assert (FIELD.div(FIELD.mul(x, y), y) == x).all()
    assert (FIELD.mul(FIELD.div(x, y), y) == x).all()


@pytest.mark.parametrize(("value", "times"), [(0.5, 2), (-0.25, 4), (3.0, 1), (0.1, 2**55), (-7.0, 1)])
def test_a_number_has_its_exact_image_in_the_field(value: float, times: int) -> None:
    whole = int(value * times)
    assert whole == value * times
    assert FIELD.mul(FIELD.constant(value), np.asarray(times % PRIME)) == whole % PRIME


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


def test_softmax_in_the_field_sums_to_one() -> None:
    x = FIELD.sample((4, 7), default_rng(8))
    assert (FIELD.total(FIELD.softmax(x, 1), (1,)) == 1).all()


@pytest.mark.parametrize("ring", CARRIERS, ids=lambda r: r.name)
def test_softmax_moves_with_its_axis(ring: Carrier) -> None:
    x = ring.sample((4, 7), default_rng(9))
    assert np.allclose(ring.softmax(x, 1), ring.softmax(x.T, 0).T, rtol=1e-12, atol=0)


def test_one_matrix_for_all_in_a_batch_is_widened_once() -> None:
    """As exporters of attention leave it: weights of 32 bits for each of hundreds of rows."""
    rng = default_rng(0)
    x, one = rng.standard_normal((300, 1, 64)), rng.standard_normal((64, 1024)).astype(np.float32)
    tracemalloc.start()
    found = FLOAT.matmul(x, np.broadcast_to(one, (300, 64, 1024)))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_allclose(found, x @ one.astype(np.float64))
    assert most < 3 * found.nbytes < 300 * one.nbytes


def test_a_batch_of_nothing_has_a_product_of_nothing() -> None:
    assert FLOAT.matmul(np.ones((0, 2, 3)), np.broadcast_to(np.ones((3, 4)), (0, 3, 4))).shape == (0, 2, 4)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ((1, 3, 4), (2, 4, 5)),
        ((3, 4), (2, 4, 5)),
        ((2, 3, 4), (1, 2, 4, 5)),
        ((2, 1, 3, 4), (2, 6, 4, 5)),
        ((4,), (2, 4, 5)),
    ],
)
def test_a_repeated_matrix_is_multiplied_by_as_many_as_there_are(x: tuple[int, ...], y: tuple[int, ...]) -> None:
    rng = default_rng(0)
    one, several = rng.standard_normal(x), np.broadcast_to(rng.standard_normal(y[-2:]), y)
    np.testing.assert_allclose(FLOAT.matmul(one, several), np.matmul(one, several))


@pytest.mark.parametrize("axes", [(1, 2, 3), (0, 2, 3), (1, 3), (2, 3)], ids=str)
@pytest.mark.parametrize("made", [Conv, ConvTranspose])
def test_images_that_are_repeated_are_convolved_as_others_are(
    made: type[Conv | ConvTranspose], axes: tuple[int, ...]
) -> None:
    op = made((1, 1), (0,) * 4, (1, 1), 1)
    shape = (3, 4, 5, 6)
    image, kernel = variable("x", tuple(shape[a] for a in axes)), variable("k", (4, 4, 1, 1))
    repeated = Expand(axes, shape)(image)
    values = sample((op(repeated, kernel),), FLOAT, 0)
    whole = variable("whole", shape)
    given = {whole: np.array(evaluate(repeated, FLOAT, values)), kernel: values[kernel]}
    found, wanted = evaluate(op(repeated, kernel), FLOAT, values), evaluate(op(whole, kernel), FLOAT, given)
    np.testing.assert_allclose(found, wanted)
