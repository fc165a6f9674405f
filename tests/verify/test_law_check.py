"""The laws are checked: they hold, each says something, and a law that is wrong, vacuous or redundant is found."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator

import pytest

from superopt.dim import Dim
from superopt.errors import ShapeError
from superopt.operators import CATALOGUE
from superopt.operators.laws.collected import Law, forget_laws, written_laws
from superopt.operators.layout import Transpose
from superopt.operators.pointwise import Relu
from superopt.operators.symbolic import all_symbols, resize
from superopt.term import subterms, variables
from superopt.verify.law_check import Settings, check_law, check_laws, derived
from superopt.verify.law_scope import families
from superopt.verify.law_sides import Tried, needs, try_law
from superopt.verify.law_sizes import LARGEST, small_sizes
from superopt.verify.prove import Proved, Unknown

LAWS = families()
Declare = Callable[[str], list[Law]]


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch) -> Iterator[Declare]:
    """Adds a law to the declaration of relu; gives its instances."""

    def add(text: str) -> list[Law]:
        monkeypatch.setattr(Relu, "laws", f"{Relu.laws}\n{text}")
        forget_laws()
        return families()["mine"]

    yield add
    monkeypatch.undo()
    forget_laws()


def test_there_are_as_many_laws_as_ever() -> None:
    """Where this fails by a few a law went on purpose, or by accident."""
    assert len(LAWS) >= 355
    assert sum(map(len, LAWS.values())) >= 5000
    assert {law.origin for laws in LAWS.values() for law in laws} == {
        "written",
        "point-wise",
        "linear",
        "named axes",
        "layout",
        "broadcasts",
        "reductions",
    }


def test_the_laws_of_declarations_are_there_and_say_that_they_are_written() -> None:
    written = {name for name, _ in written_laws()}
    assert written == {name for name, laws in LAWS.items() if laws[0].origin == "written"}


@pytest.mark.parametrize("name", ["add-commutes", "add-assoc", "relu-nothing", "reshape-same"])
def test_a_law_of_all_ranks_is_there_at_each_up_to_four(name: str) -> None:
    assert {law.left.type.rank for law in LAWS[name]} == set(range(5))


def test_transposes_are_there_by_all_permutations_of_three_axes() -> None:
    perms = {
        t.operator.perm
        for law in LAWS["transpose-concat"]
        for t in subterms(law.left)
        if isinstance(t.operator, Transpose)
    }
    assert set(itertools.permutations(range(3))) < perms
    assert (0, 2, 3, 1) in perms


SAMPLED = sorted({*random.Random(0).sample(sorted(LAWS), 40), *(name for name, _ in written_laws())})


@pytest.mark.parametrize("name", SAMPLED)
def test_a_law_holds_at_all_its_small_shapes(name: str) -> None:
    checked = check_law(LAWS[name], Settings(limit=80, redundancy=False))
    assert checked.fault is None
    assert checked.shapes >= checked.instances
    assert any(checked.carriers.values())


def test_no_law_that_is_not_marked_as_a_lemma_is_shown_to_follow_from_the_others() -> None:
    """Of a sample, to which those belong that are the likeliest: an operator that a law says is made of others."""
    for name in (*random.Random(1).sample(sorted(LAWS), 30), "sub-neg", "sub-add", "relu-maxpool", "relu-mul"):
        assert LAWS[name][0].lemma or isinstance(derived(LAWS[name]), Unknown), name


def test_what_is_marked_as_a_lemma_follows_from_the_other_laws() -> None:
    lemmas = [name for name, laws in LAWS.items() if laws[0].lemma]
    assert "sub-concat" in lemmas
    for name in lemmas:
        follows = derived(LAWS[name])
        assert isinstance(follows, Proved), (name, follows)
        assert follows.laws


# ------------------------------------------------------------------------------------------------------ kinds of claims


@pytest.mark.parametrize(
    ("name", "carriers"),
    [
        ("add-assoc", {"exact": ("field", "order")}),
        ("div-div", {"exact": ("field",)}),
        ("max-assoc", {"exact": ("order",)}),
        ("relu-nothing", {"exact": ("order",)}),
        ("tanh-slice", {"compared": ("float",), "any function": ("field",)}),
        ("gelu-transpose", {"compared": ("float",), "any function": ("field",)}),
        ("sqrt-mul", {"compared": ("float",)}),
    ],
)
def test_a_claim_says_in_which_carriers_and_of_which_kind_it_is(
    name: str, carriers: dict[str, tuple[str, ...]]
) -> None:
    checked = check_law(LAWS[name], Settings(limit=20, redundancy=False))
    assert {kind: tuple(found) for kind, found in checked.carriers.items()} == carriers


def test_a_composite_operator_needs_what_its_definition_needs() -> None:
    assert needs(LAWS["softsign-slice"][0]) >= {"div", "order"}
    assert CATALOGUE["softsign"].needs == frozenset()


# ------------------------------------------------------------------------------------------------- what is found wrong

WRONG = {
    "a sum of maxima": "(law mine (given (?x *) (?y *)) (= (relu (add ?x ?y)) (add (relu ?x) (relu ?y))))",
    "wrong where a value is 0": "(law mine (given (?x *) (?y *)) (= (div (mul ?x ?y) ?y) ?x))",
    "wrong where a value is negative": "(law mine (given (?x *)) (= (relu ?x) ?x))",
    "wrong where another value is negative": """(law mine (given (?x *) (?y *)) (if (nonnegative ?x))
        (= (relu (mul ?x ?y)) (mul ?x ?y)))""",
    "the wrong part": """(law mine (given (?x n) (?y m))
        (= (slice 0 start stop (concat 0 ?x ?y)) (slice 0 start stop ?y)))""",
    "wrong for more than one group": """(law mine (given (?x n a h w) (?y n a h w) (?k o c i j) (?l o c i j))
        (= (conv :group g (concat 1 ?x ?y) (concat 1 ?k ?l)) (add (conv :group g ?x ?k) (conv :group g ?y ?l))))""",
    "sides of different shapes": "(law mine (given (?x n m)) (= (transpose (1 0) ?x) (relu ?x)))",
    "sides of different ranks": "(law mine (given (?x n)) (= (reshape (n 1) ?x) ?x))",
    "a function that is no sum": "(law mine (given (?x *) (?y *)) (= (tanh (add ?x ?y)) (add (tanh ?x) (tanh ?y))))",
    "a root of what is negative": "(law mine (given (?x *)) (= (sqrt (mul ?x ?x)) (mul (sqrt ?x) (sqrt ?x))))",
    "a condition that is too weak": """(law mine (given (?x n)) (if (<= 2 n))
        (= (slice 0 0 3 (concat 0 ?x ?x)) (slice 0 0 3 (concat 0 ?x (relu ?x)))))""",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=list(WRONG))
def test_a_wrong_law_is_found(declare: Declare, text: str) -> None:
    fault = check_law(declare(text), Settings(limit=200)).fault
    assert fault is not None
    assert fault.startswith("its sides")


def test_a_wrong_law_is_shown_at_the_smallest_sizes_at_which_it_is(declare: Declare) -> None:
    (law,) = declare(WRONG["the wrong part"])
    fault = try_law(law).fault
    assert fault is not None
    assert fault.startswith("its sides differ (field, seed 0): ")
    assert fault.endswith("(law mine (given (?x 1) (?y 1)) (= (slice 0 0 1 (concat 0 ?x ?y)) (slice 0 0 1 ?y)))")


VACUOUS = {
    "never well formed": "(law mine (given (?x n)) (= (add ?x (concat 0 ?x ?x)) (relu ?x)))",
    "sizes that contradict each other": "(law mine (given (?x n m)) (if (= n (+ m 1)) (= m (+ n 1))) (= (relu ?x) ?x))",
    "sizes that no tensor has": "(law mine (given (?x n m)) (if (<= (+ n m) 1)) (= (relu ?x) ?x))",
}


@pytest.mark.parametrize("text", VACUOUS.values(), ids=list(VACUOUS))
def test_a_law_that_fits_no_shape_is_found(declare: Declare, text: str) -> None:
    checked = check_law(declare(text))
    assert checked.fault is not None
    assert checked.fault.startswith("no shape fits it, so it says nothing: (law mine")


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("(= n q)", "its condition (= n q) is about a size that neither side has"),
        ("(nonzero (relu ?x))", "no variable"),
    ],
)
def test_a_condition_about_nothing_in_the_law_is_found(declare: Declare, condition: str, said: str) -> None:
    (law,) = declare(f"(law mine (given (?x n)) (if {condition}) (= (relu ?x) (relu (relu ?x))))")
    assert said in (try_law(law).fault or "")


def test_a_law_that_has_no_value_is_found(declare: Declare) -> None:
    (law, *_) = declare("(law mine (given (?x *)) (= (log (sub (neg (exp ?x)) (exp ?x))) (log (neg (exp ?x)))))")
    fault = try_law(law).fault
    assert fault is not None
    assert fault.startswith("it has no finite value")


def test_a_law_that_follows_from_the_others_is_found_unless_it_is_marked(declare: Declare) -> None:
    text = "(law mine (given (?x *)) (= (relu (relu (relu ?x))) (relu ?x)))"
    checked = check_law(declare(text), Settings(limit=50))
    assert checked.fault is not None
    assert checked.fault.startswith("it follows from relu-")
    assert checked.fault.endswith(", and is not marked as a lemma")
    marked = check_law(declare("(lemma mine (given (?x *)) (= (relu (relu ?x)) (relu ?x)))")[5:], Settings(limit=50))
    assert (marked.lemma, marked.fault) == (True, None)
    assert isinstance(marked.follows, Proved)


def test_a_lemma_does_not_show_that_a_law_follows(declare: Declare) -> None:
    """Two laws that say the same: if both could be used, each would follow from the other."""
    declare("(lemma mine (given (?x *) (?y *)) (= (add ?x (neg ?y)) (sub ?x ?y)))")
    assert isinstance(derived(families()["sub-neg"]), Unknown)


# --------------------------------------------------------------------------------------------------------------- sizes


@pytest.mark.parametrize("name", ["slice-left", "concat-slices", "matmul-concat", "reshape-same", "add-reshape"])
def test_all_small_shapes_are_all(name: str) -> None:
    """Beside a plain search: every combination of sizes, kept where both sides can be made."""
    law = LAWS[name][0] if name != "add-reshape" else LAWS[name][8]
    assert max(t.type.rank for t in subterms(law.left, law.right)) >= 1 or name == "reshape-same"
    sizes = small_sizes(law)
    within = {tuple(row) for row in sizes.rows.tolist() if max(row, default=0) <= LARGEST}
    assert sizes.complete
    assert within == set(_searched(law, sizes.names))


def _searched(law: Law, names: tuple[str, ...]) -> Iterator[tuple[int, ...]]:
    assert set(names) == set(all_symbols(law.left, law.right))
    for row in itertools.product(range(LARGEST + 1), repeat=len(names)):
        values: dict[str, Dim] = dict(zip(names, row, strict=True))
        try:
            sides = resize((law.left, law.right), values)
        except ShapeError:
            continue
        if all(isinstance(d, int) and d >= 1 for v in variables(*sides) for d in v.shape):
            yield row


def test_conditions_of_a_law_are_met(declare: Declare) -> None:
    text = "(law mine (given (?x n m)) (if (divides n m) (!= m 4) (<= 2 n)) (= (relu ?x) (relu (relu ?x))))"
    (law,) = declare(text)
    sizes = small_sizes(law)
    assert (sizes.names, sizes.rows.tolist()) == (("n", "m"), [[2, 2], [3, 3]])


def test_of_too_many_shapes_there_is_a_sample() -> None:
    law = LAWS["concat-concat"][-1]
    whole, some = small_sizes(law, 10**6), small_sizes(law, 400)
    assert (whole.complete, some.complete) == (True, False)
    assert len(some.rows) == 100
    assert set(map(tuple, some.rows.tolist())) < set(map(tuple, whole.rows.tolist()))
    assert some.rows.tolist() == small_sizes(law, 400).rows.tolist() != small_sizes(law, 400, seed=1).rows.tolist()


def test_of_too_many_combinations_of_sizes_some_are_drawn() -> None:
    (law,) = LAWS["conv-pad"]
    sizes = small_sizes(law, 400)
    assert not sizes.complete
    assert len(sizes.rows) == 100
    assert sizes.rows.sum(axis=1).tolist() == sorted(sizes.rows.sum(axis=1))


def test_the_result_does_not_depend_on_the_number_of_workers() -> None:
    names = ["matmul-concat", "sqrt-mul", "sub-neg"]
    settings = Settings(limit=40, seed=7)
    alone, together = ([_apart_from_time(c) for c in check_laws(names, settings, workers)] for workers in (1, 2))
    assert alone == together
    assert [name for name, *_ in alone] == names


def _apart_from_time(checked: object) -> tuple[object, ...]:
    return tuple(value for key, value in vars(checked).items() if key != "seconds")


def test_the_progress_is_told() -> None:
    told: list[tuple[str, int, int]] = []
    check_laws(["sqrt-mul", "sub-neg"], Settings(10, 0, False), told=lambda *of: told.append(of))
    assert told == [("check laws", 1, 2), ("check laws", 2, 2)]


def test_every_instance_that_is_tried_says_how() -> None:
    tried = try_law(LAWS["add-assoc"][2], limit=100)
    assert tried == Tried(16, True, (("field", "exact"), ("order", "exact")))
