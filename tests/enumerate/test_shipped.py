"""The shipped rules: they have what graphs are merged and folded by, in at most three directed steps each."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from superopt.demands import assuming
from superopt.enumerate.prune import STEPS, replayed, replaying, steps_for
from superopt.operators.reader import read_dim, read_term
from superopt.rules.derive import Rules
from superopt.rules.exchange.taso import rules_of
from superopt.rules.exchange.taso_messages import decode
from superopt.rules.format import load_rules
from superopt.shipped import shipped_rules
from superopt.term import Term, variable
from superopt.text import Form, read
from superopt.verify.conditions import learn

IMAGES = (
    "(?x n c h w) (?y n c h w) (?k o c 3 3) (?l o c 3 3) (?p o c 1 1) (?q o c 1 1) (?s o) (?t o) (?u c) "
    "(?j c c 3 3) (?i c c 1 1)"
)
SHUFFLED = "(?x n (* g e) h w) (?p o (* g e) 1 1) (?q (* g e) c 1 1) (?y n c h w)"
UNIT = "(reshape (c c 1 1) (band c))"
MATRICES = "(?a m k) (?b m k) (?w k n) (?v k n) (?r k q) (?t q n) (?f)"
POOL = "(avgpool (3 3) :strides (2 2) :pads (1 1 1 1)"

FOUND = {
    "products with a common left factor": (MATRICES, "(add (matmul ?a ?w) (matmul ?a ?v))", "(matmul ?a (add ?w ?v))"),
    "products with a common right factor": (MATRICES, "(add (matmul ?a ?w) (matmul ?b ?w))", "(matmul (add ?a ?b) ?w)"),
    "summed products": (
        MATRICES,
        "(add (matmul ?a ?w) (matmul ?b ?v))",
        "(matmul (concat 1 ?a ?b) (concat 0 ?w ?v))",
    ),
    "products associate": (MATRICES, "(matmul (matmul ?a ?r) ?t)", "(matmul ?a (matmul ?r ?t))"),
    "an adapter of low rank": (
        MATRICES,
        "(add (matmul ?a ?w) (matmul (matmul ?a ?r) ?t))",
        "(matmul ?a (add ?w (matmul ?r ?t)))",
    ),
    "a linear layer of rows that were stacked": (
        "(?x b m k) (?w k n)",
        "(matmul (reshape ((* b m) k) ?x) ?w)",
        "(reshape ((* b m) n) (matmul ?x (expand (1 2) (b k n) ?w)))",
    ),
    "the bias of rows that are stacked": (
        "(?x (* b m) k) (?w k n) (?t n)",
        "(add (reshape (b m n) (matmul ?x ?w)) (expand (2) ?t))",
        "(reshape (b m n) (add (matmul ?x ?w) (expand (1) ?t)))",
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
    "a kernel of 5x5 is enlarged beside one of 13x13, in groups and with strides": (
        "(?x n (* 2 c) h w) (?k o c 13 13) (?l o c 5 5)",
        "(add (conv :strides (2 2) :pads (6 6 6 6) :group 2 ?x ?k)"
        " (conv :strides (2 2) :pads (2 2 2 2) :group 2 ?x ?l))",
        "(conv :strides (2 2) :pads (6 6 6 6) :group 2 ?x (add ?k (pad (0 0 4 4 0 0 4 4) ?l)))",
    ),
    "a row and a column are enlarged beside a square": (
        "(?x n c h w) (?k o c 5 5) (?l o c 1 5) (?r o c 5 1)",
        "(add (add (conv :pads (2 2 2 2) ?x ?k) (conv :pads (0 2 0 2) ?x ?l)) (conv :pads (2 0 2 0) ?x ?r))",
        "(conv :pads (2 2 2 2) ?x (add (add ?k (pad (0 0 2 0 0 0 2 0) ?l)) (pad (0 0 0 2 0 0 0 2) ?r)))",
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
    "an image added to its convolution": (
        IMAGES,
        "(add (conv :pads (1 1 1 1) ?x ?j) ?x)",
        f"(conv :pads (1 1 1 1) ?x (add ?j (pad (0 0 1 1 0 0 1 1) {UNIT})))",
    ),
    "an image added to its 1x1 convolution": (IMAGES, "(add (conv ?x ?i) ?x)", f"(conv ?x (add ?i {UNIT}))"),
    "1x1 convolutions associate": (
        "(?x n c h w) (?p o c 1 1) (?q r o 1 1)",
        "(conv (conv ?x ?p) ?q)",
        "(conv ?x (reshape (r c 1 1) (matmul (reshape (r o) ?q) (reshape (o c) ?p))))",
    ),
    "an average pool is a convolution": (
        IMAGES,
        "(avgpool (4 5) ?x)",
        "(conv :group c ?x (expand (2 3) (c 1 4 5) (reshape (4 5) (mean (0) (band 20)))))",
    ),
    "shuffled channels are shuffled weights": (
        SHUFFLED,
        "(conv (reshape (n (* g e) h w) (transpose (0 2 1 3 4) (reshape (n g e h w) ?x))) ?p)",
        "(conv ?x (reshape (o (* g e) 1 1) (transpose (0 2 1 3 4) (reshape (o e g 1 1) ?p))))",
    ),
    "channels shuffled afterwards are weights shuffled": (
        SHUFFLED,
        "(reshape (n (* g e) h w) (transpose (0 2 1 3 4) (reshape (n g e h w) (conv ?y ?q))))",
        "(conv ?y (reshape ((* g e) c 1 1) (transpose (1 0 2 3 4) (reshape (g e c 1 1) ?q))))",
    ),
    "a resize commutes with a 1x1 convolution": (
        IMAGES,
        "(conv (interpolate ((* 2 h) (* 2 w)) ?x) ?p)",
        "(interpolate ((* 2 h) (* 2 w)) (conv ?x ?p))",
    ),
    "so does one from corner to corner": (
        IMAGES,
        "(conv (interpolate (u v) :by align_corners ?x) ?p)",
        "(interpolate (u v) :by align_corners (conv ?x ?p))",
    ),
    "so does one to the nearest": (IMAGES, "(conv (nearest (u v) ?x) ?p)", "(nearest (u v) (conv ?x ?p))"),
    "joined maps that are resized alike are resized once": (
        "(?x n c h w) (?y n d h w)",
        "(concat 1 (nearest (u v) ?x) (nearest (u v) ?y))",
        "(nearest (u v) (concat 1 ?x ?y))",
    ),
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


PUBLISHED = Path(__file__).parents[1] / "rules" / "cases" / "taso-published.pb"


def test_what_taso_publishes_takes_three_steps_at_most() -> None:
    """Every fifth; `make taso` takes them all. Some hold under a condition only."""
    forms = [r for i, p in enumerate(decode(PUBLISHED.read_bytes(), "it")) for r in rules_of(p, f"taso-{i}")][::5]
    assert len(forms) == 80
    for form in forms:
        if shipped().steps(form.source, form.target) is None:
            learned = learn(form)
            assert learned is not None, form.name
            held = learned.rule
            assert shipped().steps(held.source, held.target, facts=held.facts) is not None, form.name


@pytest.mark.parametrize("operator", ["matmul", "conv"])
def test_two_that_share_an_input_become_one_that_is_cut(operator: str) -> None:
    pairs = [rule for path in shipped_rules() for rule in load_rules(path).rules if len(rule.source) == 2]
    merged = [
        rule
        for rule in pairs
        if all(s.operator.name == operator for s in rule.source)
        and rule.source[0].inputs[0] is rule.source[1].inputs[0]
        and {t.operator.name for t in rule.target} == {"slice"}
        and {t.inputs[0].operator.name for t in rule.target} == {operator}
    ]
    assert merged


def test_no_rule_is_replayed_by_those_of_another_file_without_much_more_work() -> None:
    """What is an instance of another file's rule was left out when its own was made."""
    files = [list(load_rules(path).rules) for path in shipped_rules()]
    assert len(files) > 4
    core = next(replaying(rules) for path, rules in zip(shipped_rules(), files, strict=True) if path.stem == "core")
    others = [rule for path, rules in zip(shipped_rules(), files, strict=True) if path.stem != "core" for rule in rules]
    assert len(others) > 100
    twice = [r.name for r in others if replayed(core, r.source, r.target, steps_for(r.source, r.target, STEPS))]
    assert twice == []
