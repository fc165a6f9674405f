"""The shipped rules: they have what graphs are merged and folded by, in at most three directed steps each."""

from __future__ import annotations

from functools import cache

import pytest

from superopt.dim import assuming
from superopt.operators.reader import read_dim, read_term
from superopt.rules.derive import Rules
from superopt.rules.format import load_rules
from superopt.shipped import shipped_rules
from superopt.term import Term, variable
from superopt.text import Form, read

IMAGES = "(?x n c h w) (?y n c h w) (?k o c 3 3) (?l o c 3 3) (?p o c 1 1) (?q o c 1 1) (?s o) (?t o)"
MATRICES = "(?a m k) (?b m k) (?w k n) (?v k n) (?r k q) (?t q n) (?f)"
POOL = "(avgpool (3 3) :strides (2 2) :pads (1 1 1 1)"

FOUND = {
    "products with a common left factor": (MATRICES, "(add (matmul ?a ?w) (matmul ?a ?v))", "(matmul ?a (add ?w ?v))"),
    "products with a common right factor": (MATRICES, "(add (matmul ?a ?w) (matmul ?b ?w))", "(matmul (add ?a ?b) ?w)"),
    "products associate": (MATRICES, "(matmul (matmul ?a ?r) ?t)", "(matmul ?a (matmul ?r ?t))"),
    "an adapter of low rank": (
        MATRICES,
        "(add (matmul ?a ?w) (matmul (matmul ?a ?r) ?t))",
        "(matmul ?a (add ?w (matmul ?r ?t)))",
    ),
    "transposes through a product": (
        MATRICES,
        "(transpose (1 0) (matmul ?a ?w))",
        "(matmul (transpose (1 0) ?w) (transpose (1 0) ?a))",
    ),
    "transposes cancel": (MATRICES, "(transpose (1 0) (transpose (1 0) ?a))", "?a"),
    "a number moves through a product": (
        MATRICES,
        "(matmul (mul ?a (expand () ?f)) ?w)",
        "(mul (matmul ?a ?w) (expand () ?f))",
    ),
    "convolutions of one image": (
        IMAGES,
        "(add (conv :pads (1 1 1 1) ?x ?k) (conv :pads (1 1 1 1) ?x ?l))",
        "(conv :pads (1 1 1 1) ?x (add ?k ?l))",
    ),
    "a smaller kernel is enlarged": (
        IMAGES,
        "(add (conv :pads (1 1 1 1) ?x ?k) (conv ?x ?p))",
        "(conv :pads (1 1 1 1) ?x (add ?k (pad (0 0 1 1 0 0 1 1) ?p)))",
    ),
    "convolutions of summed images": (
        IMAGES,
        "(add (conv ?x ?p) (conv ?y ?p))",
        "(conv (add ?x ?y) ?p)",
    ),
    "summed convolutions of joined images": (
        IMAGES,
        "(conv (concat 1 ?x ?y) (concat 1 ?p ?q))",
        "(add (conv ?x ?p) (conv ?y ?q))",
    ),
    "a scale is folded into a kernel": (
        IMAGES,
        "(mul (conv :pads (1 1 1 1) ?x ?k) (expand (1) ?s))",
        "(conv :pads (1 1 1 1) ?x (mul ?k (expand (0) ?s)))",
    ),
    "a scale and a shift are folded": (
        IMAGES,
        "(mul (add (conv ?x ?p) (expand (1) ?t)) (expand (1) ?s))",
        "(add (conv ?x (mul ?p (expand (0) ?s))) (expand (1) (mul ?t ?s)))",
    ),
    "an average pool commutes with a 1x1 convolution": (IMAGES, f"(conv {POOL} ?x) ?p)", f"{POOL} (conv ?x ?p))"),
}


@cache
def shipped() -> Rules:
    return Rules([rule for path in shipped_rules() for rule in load_rules(path).rules])


@pytest.mark.parametrize("case", FOUND)
def test_in_three_steps_at_most(case: str) -> None:
    given, *sides = FOUND[case]
    names: dict[str, Term] = {}
    for sexp in read(given):
        assert isinstance(sexp, Form)
        names[sexp.head[1:]] = variable(sexp.head[1:], map(read_dim, sexp.items[1:]))
    with assuming():  # that windows fit
        source, target = (read_term(read(side)[0], names) for side in sides)
    steps = shipped().steps((source,), (target,))
    assert steps is not None
    assert 1 <= len(steps) <= 3


def test_two_products_that_share_a_factor_become_one_that_is_cut() -> None:
    pairs = [rule for path in shipped_rules() for rule in load_rules(path).rules if len(rule.source) == 2]
    merged = [
        rule
        for rule in pairs
        if all(s.operator.name == "matmul" for s in rule.source)
        and rule.source[0].inputs[0] is rule.source[1].inputs[0]
        and {t.operator.name for t in rule.target} == {"slice"}
        and {t.inputs[0].operator.name for t in rule.target} == {"matmul"}
    ]
    assert merged
