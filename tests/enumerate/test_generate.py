"""Enumeration: the same rules for any number of workers and across a stop, and those that matter among them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from superopt.demands import assuming
from superopt.enumerate.abstraction import abstracted
from superopt.enumerate.checkpoint import Checkpoint
from superopt.enumerate.equations import equations
from superopt.enumerate.family_text import load_family, with_operators
from superopt.enumerate.generality import LADDER
from superopt.enumerate.generalize import generalized
from superopt.enumerate.generate import Generated, _told, distinct, generate
from superopt.enumerate.judges import first_proved
from superopt.enumerate.prune import macros, prune_instances
from superopt.errors import UsageError
from superopt.operators.conv import Conv
from superopt.operators.layout import Concat, Expand
from superopt.operators.matmul import MatMul
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.rules.derive import Rules
from superopt.rules.format import load_rules, parse_file, print_rule
from superopt.rules.match import instance_of, rewrites
from superopt.rules.naming import canonical
from superopt.rules.rule import Rule
from superopt.shipped import shipped_rules
from superopt.term import Term, replace_all, subterms, variable, variables
from superopt.verify.check import execute, verify
from superopt.verify.prove import Proved, prove

SMALL = ("core", "add,mul,matmul,relu")
LAYOUT = ("taso-matrices", "concat,slice,relu,matmul")


@cache
def found(chosen: tuple[str, str], workers: int = 1, seed: int = 0) -> Generated:
    family, operators = chosen
    depth = 2 if chosen == SMALL else 3
    return generate(with_operators(load_family(family), operators.split(",")), depth, seed, workers)


def text(rules: list[Rule]) -> str:
    return "".join(map(print_rule, rules))


def applies(rules: list[Rule], before: Term, after: Term) -> bool:
    return any(after in set(rewrites(r, before)) for r in rules if len(r.source) == 1)


def test_two_workers_find_the_same_rules_as_one() -> None:
    one, two = found(SMALL), found(SMALL, workers=2)
    assert one.rules
    assert text(two.rules) == text(one.rules)
    assert two.counts == one.counts
    assert two.unknown == one.unknown


def test_another_seed_finds_the_same_rules() -> None:
    """The values that terms are compared on are random; what is proved is not."""
    assert text(found(SMALL, seed=1).rules) == text(found(SMALL).rules)


def test_a_run_that_was_stopped_goes_on_and_finds_the_same(tmp_path: Path) -> None:
    path, whole = tmp_path / "f.proofs", found(SMALL)
    stopped, count = Checkpoint(path, "same"), 0

    def stop(stage: str, done: int, of: int) -> None:
        nonlocal count
        count += stage.startswith("prove")
        if count > 5:
            raise KeyboardInterrupt

    family = with_operators(load_family(SMALL[0]), SMALL[1].split(","))
    with pytest.raises(KeyboardInterrupt):
        generate(family, 2, progress=stop, checkpoint=stopped)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert 5 < len(lines) < 200
    path.write_text("\n".join(lines)[:-7], encoding="utf-8")  # the last line was cut short
    resumed = generate(family, 2, checkpoint=Checkpoint(path, "same", resume=True))
    assert (text(resumed.rules), resumed.counts, resumed.unknown) == (text(whole.rules), whole.counts, whole.unknown)


def test_proofs_of_a_stopped_run_are_not_made_again(tmp_path: Path) -> None:
    path, asked = tmp_path / "f.proofs", list[str]()

    def run(texts: object) -> list[tuple[str | None, str | None]]:
        asked.extend(texts)  # type: ignore[call-overload]
        return [(t, None) for t in texts]  # type: ignore[attr-defined]

    first = Checkpoint(path, "same")
    assert list(first.verdicts(run, ["a", "b"])) == [("a", None), ("b", None)]
    again = Checkpoint(path, "same", resume=True)
    assert list(again.verdicts(run, ["b", "c", "a"])) == [("b", None), ("c", None), ("a", None)]
    assert asked == ["a", "b", "c"]
    again.done()
    assert not path.exists()


@pytest.mark.parametrize(("settings", "said"), [("other", "had other settings"), (None, "no stopped run")])
def test_only_a_stopped_run_of_the_same_settings_goes_on(tmp_path: Path, settings: str | None, said: str) -> None:
    if settings:
        Checkpoint(tmp_path / "f.proofs", settings)
    with pytest.raises(UsageError, match=said):
        Checkpoint(tmp_path / "f.proofs", "mine", resume=True)


def test_memory_that_does_for_no_level_is_refused() -> None:
    with pytest.raises(UsageError, match=r"terms of 1 operators take more than 0.001 GB .*; allow more with --memory"):
        generate(load_family("core"), 3, memory=0.001)


X, Y, Z = variable("x", (3, 7)), variable("y", (7, 8), constant=True), variable("z", (8, 9), constant=True)
I = variable("i", (2, 4, 5, 6))
U, V = variable("u", (4,), constant=True), variable("v", (4,), constant=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (MatMul()(MatMul()(X, Y), Z), MatMul()(X, MatMul()(Y, Z))),
        (
            Add()(Add()(I, Expand((1,), I.shape)(U)), Expand((1,), I.shape)(V)),
            Add()(I, Expand((1,), I.shape)(Add()(U, V))),
        ),
        (
            Mul()(Mul()(I, Expand((1,), I.shape)(U)), Expand((1,), I.shape)(V)),
            Mul()(I, Expand((1,), I.shape)(Mul()(U, V))),
        ),
        (Relu()(Relu()(I)), Relu()(I)),
    ],
    ids=["associates", "folds summands", "folds factors", "relu twice"],
)
def test_the_rules_that_fold_weights_are_found(before: Term, after: Term) -> None:
    assert applies(found(SMALL).rules, before, after)


def test_a_slice_moves_through_relu() -> None:
    a, b = variable("a", (3, 8)), variable("b", (3, 5))
    assert applies(found(LAYOUT).rules, Slice(1, 0, 8)(Relu()(Concat(1)(a, b))), Relu()(a))


def test_two_products_with_a_common_factor_become_one_that_is_cut() -> None:
    (rule,) = (r for r in found(LAYOUT).rules if r.name == "matmul-matmul-to-slice-slice-matmul-concat-1")
    assert [str(t) for t in rule.source] == ["(matmul ?x ?y)", "(matmul ?x ?z)"]
    assert {t.inputs[0] for t in rule.target} == {MatMul()(rule.given[0], Concat(1)(*rule.given[1:]))}
    assert isinstance(verify(rule), Proved)


@pytest.mark.parametrize("operators", [SMALL, LAYOUT], ids=["small", "layout"])
def test_every_rule_found_verifies(operators: tuple[str, str]) -> None:
    rules = found(operators).rules
    assert rules
    for rule in rules:
        verdict = verify(rule, seed=9)
        assert isinstance(verdict, Proved), print_rule(rule)
        assert set(verdict.laws) <= set(rule.by)  # which are tried first, and may be more than it takes
        assert prove(rule.source, rule.target, rule.conditions, rule.facts) == Proved(rule.by)


@pytest.mark.parametrize("operators", [SMALL, LAYOUT], ids=["small", "layout"])
def test_no_rule_found_is_replayed_by_those_before_it(operators: tuple[str, str]) -> None:
    rules = found(operators).rules
    assert len(rules) > 10
    assert macros(list(rules)) == macros(macros(list(rules)))
    assert len(macros(list(rules))) == len(rules)


@pytest.mark.parametrize("operators", [SMALL, LAYOUT], ids=["small", "layout"])
def test_names_are_unique_and_tell_the_operators(operators: tuple[str, str]) -> None:
    rules = found(operators).rules
    assert len({r.name for r in rules}) == len(rules)
    assert [r.name for r in rules] == sorted(r.name for r in rules)
    for rule in rules:
        assert set(rule.operators()) - {"expand"} <= set(operators[1].split(","))
        assert all(name in rule.name for name in rule.operators() if name != "expand")


def test_the_counts_tell_how_the_candidates_became_rules() -> None:
    got = found(SMALL)
    stages = [
        "evaluated",
        "candidates",
        "up to names",
        "that follow from no smaller ones",
        "that follow from no others",
    ]
    counts = [got.counts[stage] for stage in stages]
    assert counts == sorted(counts, reverse=True)
    assert got.counts["rules"] == len(got.rules) <= got.counts["proved"] + got.counts["of two outputs, proved"]
    assert got.counts["unknown"] == len(got.unknown)
    assert got.counts["complete to operators"] == 2


def test_how_far_a_stage_is_is_told_as_it_goes_on() -> None:
    rules, seen = found(SMALL).rules, list[tuple[str, int, int]]()
    assert list(_told("replay overlaps", rules, lambda *far: seen.append(far))) == rules
    assert seen == [("replay overlaps", i, len(rules)) for i in range(0, len(rules), 16)]


def test_rules_beside_leave_out_what_they_replay() -> None:
    rules = found(SMALL).rules
    family = with_operators(load_family(SMALL[0]), SMALL[1].split(","))
    assert len(rules) > 20
    assert generate(family, 2, beside=rules).rules == []


def test_widths_that_need_not_be_equal_are_different_symbols() -> None:
    a, b = variable("a", (3, 7)), variable("b", (3, 7))
    rule = generalized(Relu()(Concat(1)(a, b)), Concat(1)(Relu()(a), Relu()(b)), LADDER[0])
    assert rule is not None
    (m1, n1), (m2, n2) = (v.shape for v in rule.given)
    assert m1 is m2
    assert n1 is not n2


def test_widths_that_must_be_equal_are_one_symbol() -> None:
    a, b, c, d = (variable(n, (3, 7)) for n in "abcd")
    rule = generalized(Add()(Concat(1)(a, b), Concat(1)(c, d)), Concat(1)(Add()(a, c), Add()(b, d)), LADDER[0])
    assert rule is not None
    widths = {v.label: v.shape[1] for v in rule.given}
    assert len(set(map(str, widths.values()))) == 2
    done = execute(rule.source, rule.target, rule.conditions, 6, 0)
    assert isinstance(done, int)
    assert done == 6


def test_renamings_of_one_equation_are_one() -> None:
    family = [variable("p", (3, 7)), variable("q", (3, 7))]
    x, y = family
    pairs = [(Add()(x, y), Add()(y, x)), (Add()(y, x), Add()(x, y))]
    assert len(distinct(pairs, family)) == 1


def test_canonical_names_do_not_depend_on_the_names_before() -> None:
    def pair(a: str, b: str) -> tuple[Term, Term]:
        s, t = variable(a, (3, 7)), variable(b, (3, 7))
        left, right = canonical((Add()(s, t), Add()(t, s)))
        return left, right

    assert pair("x", "y") == pair("y", "x") == pair("q", "w")
    assert [v.label for v in variables(pair("q", "w")[0])] == ["x", "y"]


def test_what_both_sides_share_becomes_a_variable() -> None:
    a, b = variable("a", (3, 7)), variable("b", (3, 7))
    shared = Mul()(a, b)
    left, right = abstracted(Relu()(Relu()(shared)), Relu()(shared), lambda s, t: True)
    assert all(t.operator is not Mul() for t in subterms(left, right))
    assert len(variables(left, right)) == 1


def test_the_more_general_of_two_rules_is_kept() -> None:
    given = "(given (?x n m) (?y n m))"
    rules = parse_file(
        f"(rule special {given} (from (add (relu ?x) ?y)) (to (add ?y (relu ?x))))"
        f"(rule general {given} (from (add ?x ?y)) (to (add ?y ?x)))"
    ).rules
    assert [r.name for r in prune_instances(list(rules))] == ["general"]
    assert [r.name for r in prune_instances(list(rules[::-1]))] == ["general"]


def test_a_rule_that_does_not_prove_says_why() -> None:
    wrong = "(rule w (given (?x n)) (from (relu ?x)) (to (add ?x ?x)))"
    assert first_proved(wrong) == (None, None)
    told, why = first_proved("(rule w (given (?x n)) (from (relu (add ?x (mul ?x ?x)))) (to (add ?x (mul ?x ?x))))")
    assert told is None
    assert why is not None
    assert "the laws do not tell" in why


def test_a_slice_is_cut_where_the_concat_below_it_was_joined() -> None:
    a, b, x = variable("a", (7, 5)), variable("b", (7, 5)), variable("x", (5, 7))
    whole = MatMul()(x, Concat(1)(a, b))
    rules = [generalized(Slice(1, 5, 10)(whole), MatMul()(x, b), g) for g in LADDER[:2]]
    assert [r is not None and isinstance(verify(r), Proved) for r in rules] == [False, True]


def test_two_broadcasts_that_are_equal_at_the_sizes_found_need_not_be_in_general() -> None:
    """A convolution that happens to keep the size of its input, scaled before and after."""
    x, k, factor = variable("x", (2, 4, 5, 6)), variable("k", (4, 4, 3, 3)), Expand((), (2, 4, 5, 6))(variable("a", ()))
    conv = Conv((1, 1), (1, 1, 1, 1))
    assert conv(x, k).shape == x.shape
    rule = generalized(Mul()(conv(x, k), factor), conv(Mul()(x, factor), k), LADDER[0])
    assert rule is not None
    assert not rule.conditions
    assert isinstance(verify(rule), Proved)


def test_rules_that_are_no_instance_of_another_are_those_that_asking_all_of_all_leaves() -> None:
    """Most are never asked, since an instance has all operators that the other has."""
    rules = [r for path in shipped_rules() if path.stem in ("attention", "channels") for r in load_rules(path).rules]
    special = [
        Rule(f"{r.name}-twice", *replaced, r.conditions, facts=r.facts)
        for r in rules
        if len(r.source) == 1 and (replaced := _with_two_variables_one(r)) is not None
    ]
    kept = prune_instances([*special, *rules])
    assert len(kept) < len(rules) + len(special)
    for rule in [*rules, *special]:
        assert (rule in kept) or any(instance_of(rule, k) for k in kept), rule
    assert not [(a, b) for a in kept for b in kept if a is not b and instance_of(a, b)]


def _with_two_variables_one(rule: Rule) -> tuple[tuple[Term, ...], tuple[Term, ...]] | None:
    """Both sides with one variable in the place of another of its type."""
    alike = [
        (a, b) for a in rule.given for b in rule.given if a is not b and str(a.type) == str(b.type) and not rule.facts
    ]
    if not alike:
        return None
    (old, new), *_ = alike
    with assuming():
        roots = replace_all((*rule.source, *rule.target), {old: new})
    return roots[: len(rule.source)], roots[len(rule.source) :]


def test_of_one_step_more_is_written_and_it_replays_all_that_is_left_out() -> None:
    family = with_operators(load_family("taso-matrices"), ["matmul", "transpose"])
    three, one = (generate(family, 3, steps=steps).rules for steps in (3, 1))
    assert len(one) > len(three)
    known = Rules(one)
    assert [r.name for r in three if known.steps(r.source, r.target, most=1) is None] == []


def covered_by_one(text: str, rules: list[Rule]) -> bool:
    (rule,) = parse_file(text).rules
    return Rules(rules).covering(rule) is not None


def test_with_no_steps_any_two_terms_of_a_class_are_a_rule() -> None:
    """Both sides are two steps of associativity from each other, and neither is what its class is known by."""
    family = with_operators(load_family("taso-matrices"), ["matmul"])
    four = (
        "(rule four (given (?x n c) (?y c h) (?z h c))"
        " (from (matmul (matmul ?x (matmul ?y ?z)) ?y)) (to (matmul (matmul ?x ?y) (matmul ?z ?y))))"
    )
    assert [covered_by_one(four, generate(family, 3, steps=steps).rules) for steps in (3, 1, 0)] == [False, False, True]


@pytest.mark.parametrize("steps", [3, 0])
def test_a_term_of_the_last_level_is_equal_to_itself_renamed(steps: int) -> None:
    family = with_operators(load_family("taso-kernels"), ["conv", "concat"])
    swapped = (
        "(rule swapped (given (?x n c 3 3) (?y n h 3 3))"
        " (from (conv :pads (1 1 1 1) (concat 1 ?x ?y) (concat 1 ?x ?y)))"
        " (to (conv :pads (1 1 1 1) (concat 1 ?y ?x) (concat 1 ?y ?x))))"
    )
    found = generate(family, 2, steps=steps)
    assert found.counts["of a term and itself renamed"] > 0
    assert covered_by_one(swapped, found.rules)


def test_of_two_terms_of_a_class_all_equations_with_the_first_are_among() -> None:
    """Also those with a variable, which is no term that an equation could be stated from."""
    family = with_operators(load_family("layout"), ["transpose", "slice"])
    with_first, every = ({frozenset(pair) for pair in equations(family, 3, 0, steps=n).others} for n in (1, 0))
    assert any(side.is_variable for pair in with_first for side in pair)
    assert with_first < every


def test_with_no_steps_instances_of_rules_beside_are_left_out() -> None:
    family = with_operators(load_family("taso-matrices"), ["matmul"])
    beside = generate(family, 2, steps=0).rules
    assert beside
    assert generate(family, 2, steps=0, beside=beside).rules == []
