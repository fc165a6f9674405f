"""Definitions read backwards: what unfolds folds, however it is written, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from superopt.api import definitions
from superopt.arithmetic.floats import FLOAT
from superopt.demands import assuming
from superopt.dim import symbol_name
from superopt.errors import SuperoptError
from superopt.evaluate import evaluate_all, sample
from superopt.operators.activations import Gelu, times
from superopt.operators.constant import filled
from superopt.operators.extrema import Max
from superopt.operators.functions import Sigmoid
from superopt.operators.meanings import SPELLINGS
from superopt.operators.norms import LayerNorm, RmsNorm
from superopt.operators.pointwise import Add, Mul, Relu, Sqrt
from superopt.operators.symbolic import all_symbols, resize
from superopt.search.rewriting.forms import Forms, single
from superopt.search.rewriting.rewrites import rewrites_of
from superopt.search.rewriting.templates import Template, templates
from superopt.term import Term, make, replace_all, subterms, variable
from tests.search.folding import folded, named, rules_in, terms
from tests.search.rewriting.not_folded import NOT_FOLDED


def test_the_form_of_a_long_chain_is_made_from_the_bottom() -> None:
    x = variable("x", (4,))
    chain: Term = x
    for i in range(800):
        chain = Add()(chain, variable(f"y{i}", (4,)))
    (poly,) = {Forms().of(chain)}
    assert len(poly) == 801


FOLDED = [n for n in (*definitions(), *SPELLINGS) if n not in NOT_FOLDED]

RANKS = range(5)


def unfolded(template: Template) -> tuple[Term, Term]:
    """The operator over variables, and what it means."""
    with assuming():
        made = make(template.operator, template.variables)
    meaning = template.meaning(template.operator, 1.0, template.variables)
    assert meaning is not None
    return made, meaning


def with_equal_sizes(made: Term, meaning: Term) -> tuple[Term, Term]:
    """Both, where sizes that have to be equal are of one name, and what has to be a multiple is twice as much."""
    with assuming() as needed:
        made.operator.type_of(tuple(i.type for i in made.inputs))
        for condition in needed:
            name, size = symbol_name(condition.right), condition.left
            if name is None and condition.relation == "=":
                name, size = symbol_name(condition.left), condition.right
            if condition.relation in ("=", "divides") and name is not None:
                size = size if condition.relation == "=" else 2 * size
                return with_equal_sizes(*resize((made, meaning), {name: size}))
    return made, meaning


def small_sizes(template: Template, made: Term) -> dict[str, int]:
    """Sizes of 3; where some count parts of the last axes, 2 of them, of two elements each."""
    parted = len(template.operator.sizes())
    if not parted:
        return dict.fromkeys(all_symbols(made), 3)
    wide = {symbol_name(d) for v in template.variables if v.type.rank == made.type.rank for d in v.shape[-parted:]}
    return {name: 4 if name in wide else 2 for name in all_symbols(made)}


@pytest.mark.parametrize("name", FOLDED)
def test_what_unfolds_folds_back_at_every_rank(name: str) -> None:
    seen = 0
    for rank in RANKS:
        for template in templates(name, rank):
            made, meaning = with_equal_sizes(*unfolded(template))
            found = folded(meaning, name)
            same = [t for t in found if t.inputs == made.inputs and t.operator.name == made.operator.name]
            assert same, f"{meaning} became {found}"
            seen += 1
    assert seen, "there is no template: it says nothing"


@pytest.mark.parametrize("name", NOT_FOLDED)
def test_what_does_not_fold_back_has_a_reason(name: str) -> None:
    found = [t for rank in RANKS for template in templates(name, rank) for t in folded(unfolded(template)[1], name)]
    assert not found, f"{name} folds by now: {NOT_FOLDED[name]}?"


@pytest.mark.parametrize("name", FOLDED)
def test_folding_never_changes_a_value(name: str) -> None:
    """By any definition: what it means may be more than one operator's meaning."""
    seen = 0
    for rank in RANKS:
        for template in templates(name, rank)[:6]:
            made, meaning = unfolded(template)
            try:
                (small,) = resize((meaning,), small_sizes(template, made))
            except SuperoptError:  # groups that do not divide
                continue
            found = folded(small)
            values = sample((small, *found), FLOAT, rank)
            with np.errstate(all="ignore"):
                expected, *others = evaluate_all((small, *found), FLOAT, {v: abs(a) + 0.5 for v, a in values.items()})
            for other in others:
                np.testing.assert_allclose(other, expected, rtol=1e-5, atol=1e-6)
                seen += 1
    assert seen, "nothing was folded: it says nothing"


SPELLED = """
(rule gelu-halved-first (given (?x m n))
  (from (mul (mul ?x (expand () (scalar 0.5))) (add (erf (div ?x (expand () (scalar 1.4142135381698608))))
    (expand () (scalar 1.0)))))
  (to (gelu ?x)))
(rule gelu-halved-last (given (?x m n))
  (from (mul (expand () (scalar 0.5)) (mul ?x (add (expand () (scalar 1.0))
    (erf (mul (expand () (scalar 0.7071067690849304)) ?x))))))
  (to (gelu ?x)))
(rule gelu-spread-out (given (?x m n))
  (from (add (mul ?x (expand () (scalar 0.5))) (mul (mul ?x (expand () (scalar 0.5)))
    (erf (mul (expand () (scalar 0.7071067690849304)) ?x)))))
  (to (gelu ?x)))
(rule gelu-by-a-power (given (?x m n))
  (from (mul (mul ?x (expand () (scalar 0.5))) (add (expand () (scalar 1.0))
    (tanh (mul (expand () (scalar 0.7978845834732056)) (add ?x (mul (expand () (scalar 0.044714998453855515))
      (pow ?x (expand () (scalar 3.0))))))))))
  (to (gelu :by_tanh 1 ?x)))
(rule gelu-by-a-square (given (?x m n))
  (from (mul (mul ?x (expand () (scalar 0.5))) (add (expand () (scalar 1.0))
    (tanh (mul (mul ?x (expand () (scalar 0.7978845834732056))) (add (expand () (scalar 1.0))
      (mul (mul (expand () (scalar 0.044714998453855515)) ?x) ?x)))))))
  (to (gelu :by_tanh 1 ?x)))
(rule gelu-of-a-sum (given (?x m n) (?y m n))
  (from (mul (mul (add ?x ?y) (expand () (scalar 0.5))) (add (expand () (scalar 1.0))
    (tanh (mul (expand () (scalar 0.7978845834732056)) (add (add ?x ?y)
      (mul (expand () (scalar 0.044714998453855515)) (pow (add ?x ?y) (expand () (scalar 3.0))))))))))
  (to (gelu :by_tanh 1 (add ?x ?y))))
(rule rms-norm-by-a-reciprocal (given (?x m n) (?w n))
  (from (mul (expand (1) ?w) (mul ?x (expand (0) (reciprocal (sqrt (add
    (mean (1) (pow ?x (expand () (m n) (scalar 2.0)))) (expand () (scalar 1e-05)))))))))
  (to (rmsnorm 1 :epsilon 9.999999747378752e-06 ?x ?w)))
(rule layer-norm-as-factor-and-summand (given (?x m n) (?w n) (?b n))
  (from (add
    (mul ?x (mul (expand (0) (m n) (reciprocal (sqrt (add (mean (1) (mul (sub ?x (expand (0) (mean (1) ?x)))
      (sub ?x (expand (0) (mean (1) ?x))))) (expand () (scalar 1e-05)))))) (expand (1) ?w)))
    (sub (expand (1) ?b) (mul (expand (0) (mean (1) ?x)) (mul (expand (0) (m n) (reciprocal (sqrt (add
      (mean (1) (mul (sub ?x (expand (0) (mean (1) ?x))) (sub ?x (expand (0) (mean (1) ?x)))))
      (expand () (scalar 1e-05)))))) (expand (1) ?w))))))
  (to (layernorm 1 :epsilon 9.999999747378752e-06 ?x ?w ?b)))
(rule hard-sigmoid-by-a-clip (given (?x m n))
  (from (div (clip (add ?x (expand () (scalar 3.0))) (scalar 0.0) (scalar 6.0)) (expand () (scalar 6.0))))
  (to (hard_sigmoid :alpha 0.1666666716337204 ?x)))
(rule hard-swish-divided-last (given (?x m n))
  (from (div (mul ?x (clip (add ?x (expand () (scalar 3.0))) (scalar 0.0) (scalar 6.0))) (expand () (scalar 6.0))))
  (to (mul (hard_sigmoid :alpha 0.1666666716337204 ?x) ?x)))
(rule log-softmax-in-steps (given (?x m n))
  (from (sub (sub ?x (expand (0) (largest (1) ?x))) (expand (0) (log (sum (1) (exp
    (sub ?x (expand (0) (largest (1) ?x)))))))))
  (to (log_softmax 1 ?x)))
(rule attention-of-scaled-queries (given (?q a b m n) (?k a b r n) (?v a b r s))
  (from (matmul (softmax 3 (matmul (div ?q (expand () (scalar 8.0))) (transpose (0 1 3 2) ?k))) ?v))
  (to (attention :scale 0.125 ?q ?k ?v)))
(rule attention-of-transposed-keys (given (?q a b m n) (?k a n b r) (?v a b r s))
  (from (matmul (softmax 3 (mul (matmul ?q (transpose (0 2 1 3) ?k)) (expand () (scalar 0.125)))) ?v))
  (to (attention :scale 0.125 ?q (transpose (0 2 3 1) ?k) ?v)))
"""

SOFTMAXES = """
(rule softmax-by-a-reciprocal (given (?x m n))
  (from (mul (exp (sub ?x (expand (0) (largest (1) ?x)))) (expand (0) (reciprocal
    (sum (1) (exp (sub ?x (expand (0) (largest (1) ?x)))))))))
  (to (softmax 1 ?x)))
(rule softmax-of-scaled-values-unshifted (given (?x m n))
  (from (div (exp (div ?x (expand () (scalar 8.0)))) (expand (0) (sum (1) (exp (div ?x (expand () (scalar 8.0))))))))
  (to (softmax 1 (div ?x (expand () (scalar 8.0))))))
"""

OTHERWISE = """
(rule another-factor (given (?x m n))
  (from (mul (mul ?x (expand () (scalar 0.5))) (add (erf (mul ?x (expand () (scalar 0.7071))))
    (expand () (scalar 1.0)))))
  (to (gelu ?x)))
(rule another-summand (given (?x m n))
  (from (mul (mul ?x (expand () (scalar 0.5))) (add (erf (div ?x (expand () (scalar 1.4142135381698608))))
    (expand () (scalar 1.0001)))))
  (to (gelu ?x)))
(rule of-two-values (given (?x m n) (?y m n))
  (from (mul (mul ?y (expand () (scalar 0.5))) (add (erf (div ?x (expand () (scalar 1.4142135381698608))))
    (expand () (scalar 1.0)))))
  (to (gelu ?x)))
(rule along-other-axes (given (?x m n))
  (from (div (sub ?x (expand (0) (mean (1) ?x))) (expand (1) (sqrt (add (mean (0) (mul ?x ?x))
    (expand () (scalar 1e-05)))))))
  (to (sub ?x ?x)))
(rule bounded-the-other-way (given (?x m n))
  (from (div (clip (add ?x (expand () (scalar 3.0))) (scalar 0.5) (scalar 6.0)) (expand () (scalar 6.0))))
  (to (hard_sigmoid ?x)))
"""


@pytest.mark.parametrize("text", rules_in(SPELLED), ids=named)
def test_however_it_is_written_it_folds(text: str) -> None:
    before, after = terms(text)
    found = folded(before)
    forms = Forms("float32")
    assert forms.of(after) == forms.of(before)
    like = [t for t in found if (t.operator.name, t.inputs[1:]) == (after.operator.name, after.inputs[1:])]
    assert any(forms.of(t) == forms.of(after) for t in like), found


@pytest.mark.parametrize("text", rules_in(SOFTMAXES), ids=named)
def test_shares_in_steps_are_a_softmax(text: str) -> None:
    before, after = terms(text)
    assert after in folded(before)


@pytest.mark.parametrize("text", rules_in(OTHERWISE), ids=named)
def test_what_means_something_else_does_not_fold(text: str) -> None:
    before, after = terms(text)
    forms = Forms("float32")
    assert forms.of(before) != forms.of(after)
    assert folded(before, "gelu", "layernorm", "rmsnorm", "hard_sigmoid") == []


def test_a_number_of_32_bits_is_not_near_enough_in_64() -> None:
    (short, _), doubles = terms(rules_in(SPELLED)[0]), variable("x", (2, 3), "float64")
    (wide,) = replace_all(resize((short,), {"m": 2, "n": 3}), {variable("x", (2, 3), "float32"): doubles})
    assert folded(wide) == []
    exact = Gelu(0).definition(doubles)
    assert folded(exact) == [Gelu(0)(doubles)]


def test_what_is_no_number_where_x_is_0_stays_so() -> None:
    before, after = terms("(rule p (given (?x n) (?y n)) (from (mul (div ?y ?x) ?x)) (to (add (mul ?x ?x) ?y)))")
    forms, y = Forms("float32"), variable("y", before.shape, "float32")
    assert forms.of(before) != forms.of(y)
    assert len(forms.of(after)) == 2


def test_a_definition_is_not_read_into_what_has_another_rank() -> None:
    """As EdgeNeXt has it: below axes of one place there is what no order of axes makes fit."""
    norm = "(reshape (1 4 12 1) (norm2 (3) (reshape (1 4 12 1024) ?x)))"
    before, _ = terms(f"(rule taller (given (?x 1 1 4 12 1024)) (from {norm}) (to {norm}))")
    forms = Forms("float32")
    assert all(forms.of(t) == forms.of(before) for t in folded(before))


@pytest.mark.parametrize("size", ["h", "7"])
def test_a_value_is_not_read_into_its_copies(size: str) -> None:
    """As squeeze and excitation has it: a symbol may be 1, where there would be a single copy."""
    hard = "(div (clip (add ?x (expand () (scalar 3.0))) (scalar 0.0) (scalar 6.0)) (expand () (scalar 6.0)))"
    copies = f"(expand (0 1) (n 5 {size} {size}) (reshape (n 5) {hard}))"
    before, _ = terms(f"(rule copies (given (?x n 5 1 1)) (from {copies}) (to {copies}))")
    assert folded(before.inputs[0].inputs[0], "hard_sigmoid")
    found = folded(before)
    assert all(str(t.shape) == str(before.shape) for t in found), found


CHAINS: dict[str, Callable[[Term], Term]] = {
    "swish": lambda x: Mul()(x, Sigmoid()(x)),
    "squares": lambda x: Add()(x, Mul()(x, x)),
    "leaky relu": lambda x: Max()(x, times(x, 0.25)),
    "gelu": lambda x: Gelu(0).definition(x),
    "normalized": lambda x: RmsNorm(3).definition(CHAINS["leaky relu"](x), filled(1.0, x.shape[3:])),
    "centred": lambda x: LayerNorm(3).definition(Add()(x, Relu()(x)), *[filled(1.0, x.shape[3:])] * 2),
}
"""Blocks that read their input more than once."""


@pytest.mark.parametrize("name", CHAINS)
def test_the_last_of_many_blocks_folds_as_a_single_one_does(name: str) -> None:
    """Written out, forty blocks have more than 2^40 parts."""
    x = variable("x", (2, 3, 4, 5), "float32")
    one, many = CHAINS[name](x), x
    for _ in range(40):
        many = CHAINS[name](many)
    assert {t.operator for t in folded(many)} == {t.operator for t in folded(one)}


@pytest.mark.parametrize("name", SPELLINGS)
def test_no_operator_is_unfolded_into_what_only_spells_it(name: str) -> None:
    made = [r for r in rewrites_of((), definitions(), SPELLINGS) if r.name == f"definition of {name}"]
    assert made == []


def test_an_operator_that_tells_the_form_is_its_one_atom() -> None:
    seen = set()
    for template in (t for name in definitions() for rank in RANKS for t in templates(name, rank)):
        forms = Forms("float32")
        with assuming():
            for term in subterms(*unfolded(template)):
                if (op := single(term)) is not None:
                    ((((atom, exponent),), _),) = forms.of(term)
                    assert (forms.atoms[atom].head, exponent) == (op, 1), term
                    seen.add(term.operator.name)
    assert seen > {"relu", "abs", "max", "matmul", "softmax", "conv", "tanh", "sum"}, seen


def test_what_a_fork_sees_those_that_it_came_from_do_not() -> None:
    forms, x = Forms("float32"), variable("x", (2, 3))
    forms.of(Mul()(x, x))
    fork, atoms = forms.forked(), list(forms.atoms)
    assert fork.of(Sqrt()(x)) != forms.of(x)
    assert forms.atoms == atoms
    assert fork.atoms[: len(atoms)] == atoms
    assert len(fork.atoms) > len(atoms)
