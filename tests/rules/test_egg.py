"""Rules as text for egg: what a line says is what the rule says, and what cannot be said is named."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from superopt.demands import assuming
from superopt.operators.declared import Declared
from superopt.operators.instances import small_instances
from superopt.operators.symbolic import resize
from superopt.rules.exchange import egg
from superopt.rules.exchange.egg import NotInEgg, egg_line, egg_refusals, to_egg
from superopt.rules.format import load_rules
from superopt.rules.match import build, matches
from superopt.rules.rule import Rule
from superopt.term import FACTS, Term, subterms
from superopt.text import Atom, Form, Sexp, form, read, show, word
from tests.rules.shipped import at_some_ranks
from tests.rules.texts import rule_of

CASES = load_rules(Path(__file__).parents[1] / "verify" / "cases" / "proved.rules").rules
SHIPPED = at_some_ranks()
RULES = [*SHIPPED, *CASES]
ARITHMETIC = ("+", "*", "quotient", "dim")
Bound = dict[str, Sexp]


def parts(line: str) -> tuple[str, list[Sexp], list[Sexp], list[Form]]:
    """A line, split as its documentation says."""
    name, rest = line.split(": ", 1)
    rest, _, conditions = rest.partition(" if ")
    left, right = rest.split(" => ")
    asked = [c for c in read(conditions) if isinstance(c, Form)]
    return name, patterns(left), patterns(right), asked


def patterns(side: str) -> list[Sexp]:
    """The patterns of a side, which are bound to variables where they are several."""
    found = read(side)
    assert len(found) == 1 or [show(s) for s in found[1::4]] == ["="] * ((len(found) + 1) // 4)
    return found if len(found) == 1 else found[2::4]


def variables(*sexps: Sexp) -> set[str]:
    return {name for s in sexps for name in re.findall(r"\?[^\s()]+", show(s))}


# ---------------------------------------------------------------------------------------------------- egg, in small


def concrete(term: Term, shapes: dict[Sexp, Term]) -> Sexp:
    """A term of known sizes as egg would hold it: no variables, all attributes."""
    if term.is_variable:
        made: Sexp = word(term.label)
    else:
        op = term.operator
        assert isinstance(op, Declared)
        made = form(op.name, *(attribute(op, f.name) for f in op.fields), *(concrete(i, shapes) for i in term.inputs))
    shapes[made] = term
    return made


def attribute(op: Declared, name: str) -> Sexp:
    value = getattr(op, name)
    if not isinstance(value, tuple):
        return word(value)
    sized = next(f.facts.size for f in op.fields if f.name == name)
    return form("dims", *value) if sized else word("_".join(map(str, value)) or "_")


def match(pattern: Sexp, expression: Sexp, bound: Bound) -> bool:
    if isinstance(pattern, Form):
        return (
            isinstance(expression, Form)
            and len(pattern.items) == len(expression.items)
            and all(match(p, e, bound) for p, e in zip(pattern.items, expression.items, strict=True))
        )
    if str(pattern.value).startswith("?"):
        return bound.setdefault(str(pattern.value), expression) == expression
    return isinstance(expression, Atom) and str(pattern.value) == str(expression.value)


def instantiate(pattern: Sexp, bound: Bound, shapes: Mapping[Sexp, Term]) -> Sexp:
    if isinstance(pattern, Form) and pattern.head in ARITHMETIC:
        return word(size(pattern, bound, shapes))
    if isinstance(pattern, Form):
        return form(*(instantiate(i, bound, shapes) for i in pattern.items))
    return bound[str(pattern.value)] if str(pattern.value).startswith("?") else pattern


def size(expression: Sexp, bound: Bound, shapes: Mapping[Sexp, Term]) -> int:
    if isinstance(expression, Atom):
        value = expression.value if isinstance(expression.value, int) else bound[str(expression.value)].value  # type: ignore[union-attr]
        assert isinstance(value, int)
        return value
    if expression.head == "dim":
        tensor, axis = expression.items[1:]
        return int(shapes[bound[show(tensor)]].shape[int(show(axis))])  # type: ignore[arg-type]
    first, *others = (size(i, bound, shapes) for i in expression.items[1:])
    for other in others:
        first = first + other if expression.head == "+" else first * other if expression.head == "*" else first // other
    return first


def holds(condition: Form, bound: Bound, shapes: Mapping[Sexp, Term]) -> bool:
    if condition.head == "shape":
        shape, asked = shapes[bound[show(condition.items[1])]].shape, condition.items[2:]
        return len(shape) == len(asked) and all(
            show(s) == "_" or size(s, bound, shapes) == d for s, d in zip(asked, shape, strict=True)
        )
    a, b = (size(s, bound, shapes) for s in condition.items[1:])
    return {"=": a == b, "<=": a <= b, "!=": a != b, "divides": b % a == 0 if a else b == 0}[condition.head]


def demand_the_same(rule: Rule, source: tuple[Term, ...], target: tuple[Term, ...]) -> None:
    _, left, right, asked = parts(egg_line(rule))
    shapes: dict[Sexp, Term] = {}
    bound: Bound = {}
    assert all(match(p, concrete(t, shapes), bound) for p, t in zip(left, source, strict=True)), rule.name
    assert all(holds(c, bound, shapes) for c in asked if c.head not in FACTS), rule.name
    made = [show(instantiate(p, bound, shapes)) for p in right]
    assert made == [show(concrete(t, {})) for t in target], rule.name


# ---------------------------------------------------------------------------------------------------- tests


def test_each_rule_is_a_line_or_is_named_as_not_written() -> None:
    head, *lines = to_egg(RULES).splitlines()
    assert head.startswith("; ")
    assert len(lines) == len(RULES)
    refused = dict(egg_refusals(RULES))
    for rule, line in zip(RULES, lines, strict=True):
        expected = f"; not written: {rule.name}: {refused[rule.name]}" if rule.name in refused else f"{rule.name}: "
        assert line.startswith(expected)


def test_all_shipped_rules_are_written() -> None:
    assert SHIPPED
    assert not egg_refusals(SHIPPED)


def test_what_stands_on_the_right_or_in_a_condition_is_bound_on_the_left() -> None:
    for rule in RULES:
        name, left, right, asked = parts(egg_line(rule))
        assert name == rule.name
        assert len(left) == len(right) == len(rule.source)
        assert variables(*right) <= variables(*left), name
        assert variables(*asked) <= variables(*left), name
        assert {c.head for c in asked} <= {"shape", "=", "<=", "!=", "divides", *FACTS}


@pytest.mark.parametrize("first", range(4))
def test_a_line_makes_of_an_example_what_the_rule_makes_of_it(first: int) -> None:
    seen = 0
    for rule in RULES[first::4]:
        for source in small_instances(rule.source, rule.conditions, count=2, seed=first):
            for found in matches(rule, source):
                target = build(rule, found)
                if target is not None and all(found.tensors[v].label == v.label for v in rule.given):
                    demand_the_same(rule, source, target)
                    seen += 1
    assert seen > len(RULES) // 4


def test_a_rule_does_not_apply_at_other_sizes_than_its_conditions_allow() -> None:
    rule = rule_of("(rule r (given (?x n m)) (if (divides 2 n)) (from (relu ?x)) (to (relu (relu ?x))))")
    _, (left,), _, asked = parts(egg_line(rule))
    allowed = {}
    for n in (2, 3):
        with assuming():
            (source,) = resize(rule.source, {"n": n, "m": 1})
        shapes: dict[Sexp, Term] = {}
        bound: Bound = {}
        assert match(left, concrete(source, shapes), bound)
        allowed[n] = all(holds(c, bound, shapes) for c in asked)
    assert allowed == {2: True, 3: False}


CUT = "(rule cut (given (?x n c) (?y n d)) (from (slice 1 0 c (concat 1 ?x ?y))) (to ?x))"


def test_the_line_in_the_documentation_is_that_of_its_rule() -> None:
    line = egg_line(rule_of(CUT))
    assert line == "cut: (slice 1 0 ?c (concat 1 ?x ?y)) => ?x if (shape ?x _ ?c) (shape ?y (dim ?x 0) _)"
    assert line in str(egg.__doc__)


def test_several_outputs_are_bound_to_variables_of_their_own() -> None:
    rule = rule_of(
        "(rule r (given (?root m k) (?y k n) (?z k n)) (from (matmul ?root ?y) (matmul ?root ?z))"
        " (to (matmul ?root ?y) (matmul ?root ?z)))"
    )
    assert egg_line(rule).startswith("r: ?root1 = (matmul ?root ?y), ?root2 = (matmul ?root ?z) => ?root1 = (matmul ")


def test_a_size_called_like_a_tensor_is_another_variable() -> None:
    line = egg_line(rule_of("(rule r (given (?x n)) (from (slice 0 x y ?x)) (to (slice 0 x y ?x)))"))
    assert line.startswith("r: (slice 0 ?x1 ?y ?x) => (slice 0 ?x1 ?y ?x)")


def test_what_is_known_of_elements_is_a_condition() -> None:
    line = egg_line(rule_of("(rule r (given (?x n)) (if (nonnegative ?x)) (from (relu ?x)) (to ?x))"))
    assert line == "r: (relu ?x) => ?x if (shape ?x _) (nonnegative ?x)"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(rule r (given (?x (* a b) b)) (from (relu ?x)) (to ?x))", "the size a stands nowhere by itself"),
        ("(rule r (given (?x=y n)) (from (relu ?x=y)) (to ?x=y))", "egg cannot read the variable 'x=y' as one word"),
        ("(rule r (given (?x n)) (from (slice 0 a,b c ?x)) (to ?x))", "egg cannot read the size 'a,b' as one word"),
    ],
)
def test_what_the_form_cannot_say_is_refused_with_the_reason(text: str, reason: str) -> None:
    rule = rule_of(text)
    with pytest.raises(NotInEgg, match=re.escape(f"{rule.name}: {reason}")):
        egg_line(rule)
    ((name, given),) = egg_refusals([rule])
    assert name == rule.name
    assert given.startswith(reason)
    assert f"; not written: {rule.name}: {reason}" in to_egg([rule])


def test_a_line_opens_with_the_name_of_its_rule() -> None:
    lines = egg_line(replace(rule_of(CUT), name="a-b")).split(": ")
    assert lines[0] == "a-b"


def test_no_operator_of_a_rule_is_lost_on_either_side() -> None:
    for rule in RULES:
        _, left, right, _ = parts(egg_line(rule))
        for sexps, roots in ((left, rule.source), (right, rule.target)):
            written = set(re.findall(r"\((\w+)", " ".join(map(show, sexps)))) - {"dims", "quotient", "dim"}
            meant = {t.operator.name for t in subterms(*roots) if not t.is_variable}
            assert written - meant == set()
            assert meant <= written
