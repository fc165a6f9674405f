"""Terms: interned, typed when made, and equal exactly where they are one object."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys

import pytest

from superopt.demands import assuming
from superopt.dim import symbol
from superopt.errors import ShapeError, Undecided
from superopt.operators.conv import Conv
from superopt.operators.layout import Concat
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.term import REAL, Term, made_over, make, replace, replace_all, size_symbols, subterms, variable, variables

M, K, N = map(symbol, "mkn")
X, Y = variable("x", (M, K)), variable("y", (K, N))


def test_equal_terms_are_one_object() -> None:
    assert MatMul()(X, Y) is MatMul()(variable("x", (M, K)), variable("y", (K, N)))
    assert Concat(1)(X, X) is not Concat(0)(X, X)
    assert variable("x", (M, K), constant=True) is not X


@pytest.mark.parametrize("dtype", [REAL, "float16", "float32", "float64", "bfloat16"])
def test_pickling_keeps_identity(dtype: str) -> None:
    x = variable("x", (3, 4, 8, 8), dtype)
    term = Relu()(Conv((2, 2), (1, 1, 1, 1))(x, variable("k", (6, 4, 3, 3), dtype, constant=True)))
    assert pickle.loads(pickle.dumps(term)) is term


def test_a_term_pickled_elsewhere_is_the_one_here() -> None:
    program = (
        "import pickle, sys; from superopt.dim import symbol; from superopt.term import variable;"
        "from superopt.operators.pointwise import Relu;"
        "sys.stdout.buffer.write(pickle.dumps(Relu()(variable('x', (symbol('m'), symbol('k'))))))"
    )
    written = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
    assert pickle.loads(written) is Relu()(X)


def test_terms_that_nothing_holds_are_forgotten() -> None:
    gc.collect()  # what others left must not go meanwhile
    before = len(Term._interned)
    made = [variable(f"forgotten{i}", (i + 1,)) for i in range(100)]
    assert len(Term._interned) >= before + 100
    del made
    gc.collect()
    assert len(Term._interned) <= before


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_a_made_constant_joins_any_float_type(dtype: str) -> None:
    x, real = variable("x", (2, 3), dtype), variable("c", (2, 3))
    assert Add()(x, real).type.dtype == Add()(real, x).type.dtype == dtype
    assert Add()(real, real).type.dtype == REAL


def test_different_float_types_do_not_join() -> None:
    with pytest.raises(ShapeError, match="float32 and float64"):
        Add()(variable("x", (2,), "float32"), variable("y", (2,), "float64"))


def test_an_ill_typed_term_quotes_the_shapes() -> None:
    with pytest.raises(ShapeError, match=r"\(2, 3\) and \(4, 5\)"):
        MatMul()(variable("x", (2, 3)), variable("y", (4, 5)))


def test_a_term_whose_type_symbols_leave_open_is_not_made() -> None:
    with pytest.raises(Undecided, match="inner sizes differ"):
        MatMul()(X, X)


def test_what_was_assumed_to_make_a_term_is_noted_for_whoever_makes_it_again() -> None:
    x, y = variable("x", (symbol("n"),)), variable("y", (symbol("m"),))
    with assuming() as first:
        kept = Add()(x, y)
    with assuming() as again:
        assert make(Add(), (x, y)) is kept
    with assuming() as over_others:
        assert made_over(Add()(x, x), (x, y)) is kept
    with assuming() as of_its_own:
        made_over(kept, (x, y))
    assert first == again == over_others != []
    assert of_its_own == [], "what a term was made under is nothing new"


def test_subterms_come_before_their_users_and_once() -> None:
    xy = MatMul()(X, Y)
    root = Add()(Relu()(xy), xy)
    order = list(subterms(root))
    assert len(order) == len(set(order)) == 5
    assert all(order.index(i) < order.index(t) for t in order for i in t.inputs)


def test_a_chain_of_thousands_of_operators_needs_no_recursion() -> None:
    term = X
    for _ in range(5000):
        term = Relu()(term)
    assert sum(1 for _ in subterms(term)) == 5001
    assert replace(term, {X: variable("z", X.shape)}).shape == X.shape


def test_variables_are_listed_by_first_use() -> None:
    assert variables(Add()(MatMul()(X, Y), MatMul()(X, Y))) == [X, Y]
    assert size_symbols(MatMul()(X, Y)) == {"m", "k", "n"}


def test_replacing_renews_only_what_stands_above() -> None:
    shared, z = Relu()(X), variable("z", (K, N))
    root = Mul()(MatMul()(shared, Y), MatMul()(shared, Y))
    other = replace(root, {Y: z})
    assert variables(other) == [X, z]
    assert shared in set(subterms(other))
    assert replace_all((root, shared), {z: Y}) == (root, shared)


def test_a_term_is_constant_where_all_its_leaves_are() -> None:
    w = variable("w", (K, N), constant=True)
    assert Relu()(w).constant
    assert not MatMul()(X, w).constant
    assert make(Relu(), (w,)) is Relu()(w)


def test_an_operator_over_other_inputs_has_the_type_that_it_gets_anew() -> None:
    a, b = (variable(name, (2, 3), "float32") for name in "ab")
    known = Add()(a, b)
    for inputs in ((b, a), (Relu()(a), b), (variable("c", (2, 3)), variable("d", (2, 3), "float32"))):
        made = made_over(known, inputs)
        assert made is make(Add(), inputs)
        assert made.type == Add().type_of(tuple(i.type for i in inputs))
    assert made_over(known, (variable("c", (4,)), variable("d", (4,)))).shape == (4,)
    with pytest.raises(ShapeError):
        made_over(known, (a, variable("c", (4,), "float32")))
