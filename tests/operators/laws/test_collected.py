"""Every law holds at small shapes, in all carriers that can express it; a law that fits no shape says nothing."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from dataclasses import replace

import pytest

from superopt.operators.laws.collected import Law, laws_in, scope_of, written_laws
from superopt.operators.layout import Reshape, Transpose
from superopt.operators.reader import read_term
from superopt.rules.format import load_rules
from superopt.shipped import shipped_rules
from superopt.term import subterms, variable
from superopt.text import Form, read
from superopt.verify.check import execute
from superopt.verify.law_scope import wide_scope

WIDE = replace(wide_scope(), reshapes=frozenset(itertools.product((1, 2, 3), repeat=2)))
SHAPES = 6
"""On how many shapes each law is executed. A law that is wrong only where three sizes differ needs more than three."""

BY_NAME: dict[str, list[Law]] = defaultdict(list)
for _law in laws_in(WIDE):
    BY_NAME[_law.name].append(_law)


@pytest.mark.parametrize("name", BY_NAME)
def test_law_holds_on_small_shapes(name: str) -> None:
    """At some of its ranks and axes; `superopt laws check` takes all."""
    for law in random.Random(0).sample(BY_NAME[name], min(8, len(BY_NAME[name]))):
        done = execute([law.left], [law.right], law.conditions, SHAPES, seed=0, facts=law.facts)
        # Up to rank 1 there are not as many shapes as that; what has the shape of a number has one element.
        terms = list(subterms(law.left, law.right))
        enough = {0: 1, 1: 4}.get(max(t.type.rank for t in terms), SHAPES)
        to_number = any(isinstance(t.operator, Reshape) and 0 in (t.type.rank, t.inputs[0].type.rank) for t in terms)
        enough = 1 if to_number else enough
        assert isinstance(done, int), f"{law}: {done}"
        assert done >= enough, f"{law} was executed on {done} shapes"


def test_every_written_law_is_in_the_wide_scope() -> None:
    written = {name for name, _ in written_laws()}
    assert len(written) >= 8
    assert written <= set(BY_NAME)


def test_the_laws_of_one_scope_are_found_in_a_wider_one() -> None:
    narrow = scope_of(read_term(read("(matmul ?x ?y)")[0], {n: variable(n, (4, 4)) for n in "xy"}))
    laws = laws_in(narrow)
    assert laws
    assert set(map(str, laws)) <= set(map(str, laws_in(WIDE)))


def test_a_law_prints_as_a_form_that_names_its_tensors_and_equation() -> None:
    for law in itertools.chain.from_iterable(BY_NAME.values()):
        (sexp,) = read(str(law))
        assert isinstance(sexp, Form)
        asked = ["if"] if law.conditions or law.facts else []
        assert [i.head for i in sexp.items[2:] if isinstance(i, Form)] == ["given", *asked, "="]


def test_scopes_are_closed_under_composition_of_permutations() -> None:
    x = variable("x", (2, 3, 4))
    scope = scope_of(Transpose((1, 2, 0))(x))
    assert {(1, 2, 0), (2, 0, 1)} <= scope.perms


def test_every_law_that_proves_a_shipped_rule_is_tested_here() -> None:
    used = {law for path in shipped_rules() for rule in load_rules(path).rules for law in rule.by}
    assert used
    assert {law for law in used if not law.endswith("-element")} <= set(BY_NAME)
