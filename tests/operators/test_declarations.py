"""What every declaration states is true of what it computes, at small shapes of all ranks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from superopt.arithmetic.carrier import Array, Carrier
from superopt.arithmetic.exact import EXACT
from superopt.arithmetic.field import FIELD
from superopt.arithmetic.floats import FLOAT
from superopt.demands import assuming
from superopt.errors import ShapeError, SuperoptError
from superopt.evaluate import evaluate
from superopt.operators import CATALOGUE, Declared
from superopt.operators.declare import operator
from superopt.operators.layout import Expand
from superopt.operators.reader import read_term, term_sexp
from superopt.term import Term, Type, make, subterms, variables
from superopt.text import read, show
from tests.operators.general import examples, general_terms

CARRIERS = (*EXACT, FLOAT)
POINTWISE = [n for n, c in CATALOGUE.items() if c.pointwise]
COMMUTATIVE = [n for n, c in CATALOGUE.items() if c.commutative]
KEEP_ZERO = [n for n, c in CATALOGUE.items() if c.zero]
LINEAR = [(n, i) for n, c in CATALOGUE.items() for i in c.linear]
DEFINED = [n for n, c in CATALOGUE.items() if c.definition is not Declared.definition]


def cases(name: str, count: int = 4) -> list[Term]:
    """Terms of an operator at sizes; a test of none would examine nothing."""
    found = [e for term in general_terms(name) for e in examples(term, count)]
    assert found, name
    return found


def value(term: Term, ring: Carrier, inputs: Sequence[Array]) -> Array:
    return term.operator.eval(ring, *inputs)


def random_inputs(term: Term, ring: Carrier, seed: int = 0) -> list[Array]:
    """For the inputs of a term of variables; in floating point positive, so that there are roots."""
    rng = np.random.default_rng(seed)
    found = [ring.sample([int(d) for d in i.shape], rng) for i in term.inputs]  # type: ignore[arg-type]
    return [np.abs(a) for a in found] if ring is FLOAT else found


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_term_of_it_prints_and_reads_back(name: str) -> None:
    for term in (*general_terms(name), *cases(name, 2)):
        (sexp,) = read(show(term_sexp(term)))
        with assuming():
            assert read_term(sexp, {v.label: v for v in variables(term)}) is term


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_shape_rule_on_symbols_is_the_shape_of_the_value(name: str) -> None:
    for term in cases(name):
        for ring in CARRIERS:
            found = value(term, ring, random_inputs(term, ring))
            assert found.shape == term.shape, (term, ring.name)
            assert found.dtype == ring.dtype, (term, ring.name)


OF_ANY_RANK = ("gather", "lookups")
"""Operators whose last input may have any number of axes."""


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_wrong_number_of_inputs_is_refused(name: str) -> None:
    (term, *_) = cases(name, 1)
    with pytest.raises(SuperoptError, match=f"{name}: takes {len(term.inputs)} inputs"):
        term.operator.type_of((*(i.type for i in term.inputs), Type("real", (1,))))


@pytest.mark.parametrize("name", [n for n, c in CATALOGUE.items() if c.arity > 1 and n not in OF_ANY_RANK])
def test_a_last_input_with_an_axis_too_many_is_refused(name: str) -> None:
    for term in cases(name, 1):
        *types, last = (i.type for i in term.inputs)
        with pytest.raises(ShapeError, match=name):
            term.operator.type_of((*types, Type("real", (*last.shape, 2))))


@pytest.mark.parametrize("name", ["conv", "maxpool", "avgpool", "global_avgpool", "lrn", "gemm", "batchnorm"])
def test_inputs_of_no_axes_are_refused(name: str) -> None:
    for term in cases(name, 1):
        with pytest.raises(ShapeError, match=name):
            term.operator.type_of(tuple(Type("real", ()) for _ in term.inputs))


@pytest.mark.parametrize(("name", "at"), LINEAR)
def test_a_linear_input_is_additive_and_homogeneous_in_the_field(name: str, at: int) -> None:
    for term in cases(name):
        inputs, other = random_inputs(term, FIELD), random_inputs(term, FIELD, seed=1)[at]
        factor = FIELD.sample((), np.random.default_rng(2))

        def of(x: Array, term: Term = term, inputs: list[Array] = inputs) -> Array:
            return value(term, FIELD, [*inputs[:at], x, *inputs[at + 1 :]])

        assert (of(FIELD.add(inputs[at], other)) == FIELD.add(of(inputs[at]), of(other))).all(), term
        assert (of(FIELD.mul(inputs[at], factor)) == FIELD.mul(of(inputs[at]), factor)).all(), term


@pytest.mark.parametrize("name", [n for n, c in CATALOGUE.items() if not c.linear and c.arity and not c.of_weights])
def test_an_input_not_declared_linear_is_not(name: str) -> None:
    """The reverse, so that a fact left out by mistake is found: what these compute is no sum of multiples."""
    term = max(cases(name), key=lambda t: np.prod(t.inputs[0].shape))
    inputs, other = random_inputs(term, FIELD), random_inputs(term, FIELD, seed=1)[0]
    total = value(term, FIELD, [FIELD.add(inputs[0], other), *inputs[1:]])
    parts = FIELD.add(value(term, FIELD, inputs), value(term, FIELD, [other, *inputs[1:]]))
    assert (total != parts).any(), term


@pytest.mark.parametrize("name", POINTWISE)
def test_pointwise_each_element_depends_on_the_same_elements_only(name: str) -> None:
    for term, ring in itertools.product(cases(name), CARRIERS):
        inputs = random_inputs(term, ring)
        together = value(term, ring, inputs)
        for place in np.ndindex(together.shape):
            alone = value(term, ring, [np.asarray(i[place]) for i in inputs])
            assert np.array_equal(alone, together[place], equal_nan=True), (term, ring.name, place)


@pytest.mark.parametrize("name", COMMUTATIVE)
def test_commutative_the_inputs_may_be_swapped(name: str) -> None:
    for term, ring in itertools.product(cases(name), CARRIERS):
        inputs = random_inputs(term, ring)
        assert (value(term, ring, inputs) == value(term, ring, inputs[::-1])).all(), (term, ring.name)


@pytest.mark.parametrize("name", [n for n, c in CATALOGUE.items() if c.arity == 2 and not c.commutative])
def test_not_commutative_the_inputs_may_not_be_swapped(name: str) -> None:
    differ = 0
    for term in cases(name, 8):
        inputs = random_inputs(term, FIELD)
        try:
            swapped = make(term.operator, term.inputs[::-1])
        except ShapeError:
            differ += 1
            continue
        a, b = value(term, FIELD, inputs), value(swapped, FIELD, inputs[::-1])
        differ += a.shape != b.shape or bool((a != b).any())
    assert differ


@pytest.mark.parametrize("name", KEEP_ZERO)
def test_of_zeros_it_is_zero(name: str) -> None:
    # Where a carrier has a hash in its place, nothing is known of it.
    exact = [ring for ring in CARRIERS if CATALOGUE[name].pointwise or CATALOGUE[name].needs <= ring.has]
    assert exact
    for term, ring in itertools.product(cases(name), exact):
        zeros = [np.zeros_like(i) for i in random_inputs(term, ring)]
        assert (value(term, ring, zeros) == 0).all(), (term, ring.name)


@pytest.mark.parametrize("name", DEFINED)
def test_every_definition_of_it_has_its_type_and_value(name: str) -> None:
    for term in cases(name, 3):
        op = term.operator
        assert isinstance(op, Declared)
        for meaning in op.definitions(*term.inputs):
            assert meaning.type == term.type
            assert all(isinstance(t.operator, Declared) or t.is_variable for t in subterms(meaning))
            for ring in (FIELD, FLOAT):
                values = dict(zip(term.inputs, random_inputs(term, ring, seed=3), strict=True))
                found, expected = evaluate(meaning, ring, values), evaluate(term, ring, values)
                close = np.array_equal(found, expected) if ring is FIELD else np.allclose(found, expected)
                assert close, (term, meaning, ring.name)


@pytest.mark.parametrize("name", CATALOGUE)
def test_its_values_do_not_depend_on_how_an_input_lies_in_memory(name: str) -> None:
    for term in cases(name, 2):
        inputs = random_inputs(term, FIELD)
        apart = [np.asfortranarray(np.repeat(i[None], 2, axis=0))[1] for i in inputs]
        assert (value(term, FIELD, inputs) == value(term, FIELD, apart)).all(), term


def test_an_expand_whose_axes_do_not_increase_is_refused() -> None:
    (x, *_) = examples(general_terms("transpose")[1], 1)[0].inputs
    with pytest.raises(ShapeError, match="do not increase"):
        Expand((1, 0), x.shape[::-1])(x)


@pytest.mark.parametrize("name", ["maxpool", "avgpool"])
def test_no_sample_of_a_pool_sees_only_padding(name: str) -> None:
    """That would be the least of nothing, or its mean: such windows are refused."""
    terms = cases(name, 20)
    assert any(max(t.operator.pads) > 0 for t in terms)
    for term in terms:
        inputs = [np.ones_like(i) for i in random_inputs(term, FLOAT)]
        assert np.isfinite(value(term, FLOAT, inputs)).all(), term


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"__doc__": "`y`."}, "take different numbers of inputs"),
        ({"__doc__": "No formula."}, "opens with its formula"),
    ],
)
def test_a_declaration_that_contradicts_itself_is_refused(body: dict[str, object], complaint: str) -> None:
    def shape(self: object, x: object) -> object:
        return x

    def evaluate_two(self: object, ring: object, x: object, y: object) -> object:
        return x

    def evaluate_one(self: object, ring: object, x: object) -> object:
        return x

    how = evaluate_two if "numbers" in complaint else evaluate_one
    cls = type("Wrong", (Declared,), {**body, "shape": shape, "eval": how, "__module__": __name__})
    with pytest.raises(SuperoptError, match=complaint):
        operator("wrong")(cls)
    assert "wrong" not in CATALOGUE
