"""TASO's published rules: read, proved or refuted, and written back; what its format leaves open or cannot say."""

from __future__ import annotations

from pathlib import Path

import pytest

from superopt.errors import RuleError
from superopt.operators.conv import Conv
from superopt.rules.exchange.taso import OPEN_RANKS, rules_of
from superopt.rules.exchange.taso_messages import KEYS, OPERATOR_NUMBERS, Node, Place, Published, decode, encode
from superopt.rules.exchange.taso_writer import published, taso_refusals, to_taso
from superopt.rules.format import RuleFile, parse_file, print_file, print_rule
from superopt.rules.naming import canonical
from superopt.rules.rule import Rule
from superopt.term import subterms
from superopt.verify.check import Refuted, verify
from superopt.verify.conditions import learn
from superopt.verify.prove import Proved
from tests.rules.shipped import at_some_ranks

FILE = Path(__file__).parent / "cases" / "taso.pb"
"""24 of the rules that TASO publishes."""
DATA = FILE.read_bytes()
RULES = decode(DATA, FILE.name)
ALL = FILE.with_name("taso-published.pb")
"""All of them but for names, see the page beside it."""
READ = [rule for i, p in enumerate(RULES) for rule in rules_of(p, f"taso-{i}")]
CONDITIONS = {12: 1, 15: 1, 17: 3, 18: 3, 19: 1, 21: 1, 22: 3, 23: 2}
"""Of the rules that do not hold as they stand, of how many parts the condition is under which they do."""
WRONG = {"taso-18", "taso-23"}
X, Y, Z = (-1, 0), (-2, 0), (-3, 0)


def node(name: str, *inputs: Place, **parameters: int) -> Node:
    """An operator by its name, with parameters by theirs."""
    return Node(OPERATOR_NUMBERS[name], inputs, tuple((KEYS[k.replace("_", " ")], v) for k, v in parameters.items()))


WINDOW = {"kernel_height": 3, "kernel_width": 3, "stride_height": 1, "stride_width": 1, "padding": 0}
SMALL = WINDOW | {"kernel_height": 1, "kernel_width": 1}
STRIDED = WINDOW | {"stride_height": 2, "stride_width": 2, "padding": 1}


def rule(source: list[Node], target: list[Node]) -> Published:
    """A rule whose last operators are equal; an empty target is the variable x."""
    return Published(tuple(source), tuple(target), (((len(source) - 1, 0), (len(target) - 1, 0) if target else X),))


TRUE = {
    "two transposes": rule(
        [node("transpose", X, rank=2, permutation=2), node("transpose", (0, 0), rank=2, permutation=2)], []
    ),
    "a scalar moves through a product": rule(
        [node("multiply by a scalar", X, Y), node("matmul", (0, 0), Z)],
        [node("matmul", X, Z), node("multiply by a scalar", (0, 0), Y)],
    ),
    "sums move through an average pool": rule(
        [node("average pool", X, **WINDOW), node("average pool", Y, **WINDOW), node("add", (0, 0), (1, 0))],
        [node("add", X, Y), node("average pool", (0, 0), **WINDOW)],
    ),
    "relu moves through a pool": rule(
        [node("max pool", X, **STRIDED), node("relu", (0, 0))], [node("max pool", X, **STRIDED, activation=2)]
    ),
    "a matrix times the identity": rule(
        [node("identity matrix"), node("matmul", X, (0, 0)), node("relu", (1, 0))], [node("relu", X)]
    ),
    "ones are no factor": rule([node("ones"), node("mul", X, (0, 0)), node("tanh", (1, 0))], [node("tanh", X)]),
    "three in a row": rule(
        [node("concat", X, Y, Z, inputs=3, axis=0, rank=2), node("sigmoid", (0, 0))],
        [
            *(node("sigmoid", v) for v in (X, Y, Z)),
            node("concat", (0, 0), (1, 0), (2, 0), inputs=3, axis=0, rank=2),
        ],
    ),
    "a kernel enlarged by zeros": rule(
        [node("conv2d", X, Y, **SMALL)],
        [node("enlarge", Y, kernel_height=3, kernel_width=3), node("conv2d", X, (0, 0), **WINDOW)],
    ),
    "a pool is a convolution": rule(
        [node("average pool", X, **WINDOW)],
        [node("pooling kernel", kernel_height=3, kernel_width=3), node("conv2d", X, (0, 0), **WINDOW)],
    ),
    "the identity convolution": rule(
        [
            node("identity convolution", kernel_height=3, kernel_width=3),
            node("conv2d", X, (0, 0), **WINDOW),
            node("relu", (1, 0)),
        ],
        [node("relu", X)],
    ),
}
REFUSED = {
    "operator type 99": rule([Node(99, (X,), ())], []),
    "merge groups cannot be said here": rule([node("merge groups", X, group=2)], []),
    "reshape cannot be said here": rule([node("reshape", X)], []),
    "conv2d lacks its parameter 6 (stride height)": rule([node("conv2d", X, Y)], []),
    "the source has no output 1 of operator 0": rule([node("relu", X), node("relu", (0, 1))], []),
    "the source has no output 0 of operator 7": rule([node("relu", (7, 0))], []),
    "add has 1 inputs": rule([node("add", X)], []),
    "multiply by a scalar has 0 inputs": rule([node("multiply by a scalar")], []),
    "average pool has 0 inputs": rule([node("average pool", **WINDOW)], []),
    "kernel height) is 0": rule([node("pooling kernel", kernel_height=0, kernel_width=3)], []),
    "kernel width) is 1000000000": rule([node("max pool", X, **{**WINDOW, "kernel_width": 10**9})], []),
    "(rank) is 2147483647": rule([node("transpose", X, rank=2**31 - 1, permutation=1)], []),
    "(axis) is -9": rule([node("split", X, outputs=2, axis=-9)], []),
    "split along axis 5 of 2": rule([node("matmul", X, Y), node("split", (0, 0), outputs=2, axis=5)], []),
    "a pooling kernel of 10000 elements": rule([node("pooling kernel", kernel_height=100, kernel_width=100)], []),
    "from any of 249999 sizes": rule([node("enlarge", X, kernel_height=999, kernel_width=999)], []),
    "more than 64 operators": rule([node("relu", X), *(node("relu", (i, 0)) for i in range(70))], []),
    "written out it has more than": rule([node("relu", X), *(node("add", (i, 0), (i, 0)) for i in range(20))], []),
    "ranks 2 and 4 at once": rule([node("matmul", X, Y), node("conv2d", (0, 0), Z, **WINDOW)], []),
    "no concat below it tells where to cut": rule([node("relu", X)], [node("split", X, outputs=2, axis=0)]),
    "activation 7": rule([node("matmul", X, Y, activation=7)], []),
    "no permutation of 2 axes": rule([node("transpose", X, rank=2, permutation=3)], []),
    "unbound variable": rule([node("relu", X)], [node("add", X, Y)]),
    "concat: no axis 5": rule([node("concat", X, Y, inputs=2, axis=5, rank=2)], []),
}


def test_the_file_is_read_and_written_back_byte_for_byte() -> None:
    assert len(RULES) == 24
    assert encode(RULES) == DATA


@pytest.mark.parametrize("given", READ, ids=lambda r: r.name)
def test_a_published_rule_is_proved_or_has_a_witness_or_holds_under_a_condition(given: Rule) -> None:
    verdict = verify(given)
    assert isinstance(verdict, Refuted) == (given.name in WRONG)
    number = int(given.name.split("-")[1])
    assert isinstance(verdict, Proved) == (number not in CONDITIONS)
    if number in CONDITIONS:
        learned = learn(given)
        assert learned is not None
        assert len(learned.condition) == CONDITIONS[number]
        assert isinstance(verify(learned.rule, seed=3), Proved)


@pytest.mark.parametrize("given", READ, ids=lambda r: r.name)
def test_a_published_rule_has_a_text_that_gives_it_back(given: Rule) -> None:
    assert parse_file(f"(rules :format 1)\n{print_rule(given)}").rules == (given,)


@pytest.mark.parametrize("given", READ, ids=lambda r: r.name)
def test_a_published_rule_is_written_as_it_was_read(given: Rule) -> None:
    assert published(given) in RULES or rules_of(published(given), given.name)[0].operators() == given.operators()


def test_a_kernel_under_which_same_pads_keep_the_size_is_odd() -> None:
    both = [node("conv2d", X, Y, stride_height=1, stride_width=1, padding=0), node("add", X, (0, 0))]
    (read,) = rules_of(rule(both, [*both[:1], node("add", (0, 0), X)]), "r")
    (conv,) = [t for t in subterms(*read.source) if isinstance(t.operator, Conv)]
    assert [str(d) for d in conv.inputs[1].shape[2:]] == ["(+ (* 2 i) -1)", "(+ (* 2 j) -1)"]
    assert [str(d) for d in conv.operator.pads] == ["(+ i -1)", "(+ j -1)"] * 2  # type: ignore[attr-defined]
    assert isinstance(verify(read), Proved)


def test_a_number_times_ones_is_the_number_broadcast() -> None:
    ones = [node("ones"), node("multiply by a scalar", (0, 0), Y), node("mul", X, (1, 0))]
    found = list(rules_of(rule(ones, [node("multiply by a scalar", X, Y)]), "r"))
    assert found
    assert all(read.source == read.target for read in found)


def test_rules_of_any_rank_are_stated_at_each() -> None:
    names = [r.name for r in rules_of(RULES[4], "add")]
    assert names == [f"add-rank-{r}" for r in OPEN_RANKS]
    assert [r.name for r in rules_of(RULES[0], "matmul")] == ["matmul"]


@pytest.mark.parametrize("what", TRUE)
def test_what_the_format_has_beyond_the_sample_is_proved(what: str) -> None:
    read = rules_of(TRUE[what], "r")
    assert read
    for given in read:
        assert isinstance(verify(given), Proved), print_rule(given)


ENLARGED = [node("enlarge", Y, kernel_height=3, kernel_width=3), node("conv2d", X, (0, 0), **WINDOW)]


def test_a_kernel_that_is_enlarged_is_stated_at_each_odd_size_below() -> None:
    stride = {k: v for k, v in WINDOW.items() if not k.startswith("kernel")}
    found = rules_of(rule([node("conv2d", X, Y, **stride)], ENLARGED), "r")
    assert [r.name for r in found] == ["r-of-1x1", "r-of-1x3", "r-of-3x1"]
    assert all(isinstance(verify(r), Proved) for r in found)


def test_a_kernel_that_is_enlarged_to_one_element_is_stated_at_that() -> None:
    small = [node("enlarge", Y, kernel_height=1, kernel_width=1), node("conv2d", X, (0, 0), **SMALL)]
    assert [r.name for r in rules_of(rule([node("conv2d", X, Y, **SMALL)], small), "r")] == ["r-of-1x1"]
    stride = {k: v for k, v in SMALL.items() if not k.startswith("kernel")}
    assert len(rules_of(rule([node("conv2d", X, Y, **stride)], small), "r")) == 1


def test_a_kernel_whose_size_a_convolution_says_is_stated_at_that() -> None:
    assert [r.name for r in rules_of(rule([node("conv2d", X, Y, **SMALL)], ENLARGED), "r")] == ["r-of-1x1"]


def test_all_published_rules_are_read_and_those_of_a_kind_are_proved() -> None:
    """Every twentieth; `make taso` proves them all, but for one."""
    given = decode(ALL.read_bytes(), ALL.name)
    forms = [rule for i, p in enumerate(given) for rule in rules_of(p, f"taso-{i}")]
    assert (len(given), len(forms)) == (289, 397)
    for form in forms[::20]:
        assert isinstance(verify(form), Proved) or learn(form) is not None, form.name


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_read_is_refused_by_name(why: str) -> None:
    with pytest.raises(RuleError) as refused:
        rules_of(REFUSED[why], "r")
    assert why in str(refused.value)
    assert str(refused.value).startswith("r")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("data", [DATA[:-3], DATA[:700], b"", b"\x08\x01", b"(rules :format 1)\n"], ids=repr)
def test_a_file_cut_short_or_of_another_kind_is_refused(data: bytes) -> None:
    with pytest.raises(RuleError, match=r"some\.pb: no file of TASO's rules"):
        decode(data, "some.pb")


def test_shipped_rules_that_the_format_can_say_are_read_back_the_same() -> None:
    shipped = at_some_ranks()
    refused = dict(taso_refusals(shipped))
    said = [r for r in shipped if r.name not in refused]
    assert len(said) >= 100
    assert all(why.startswith("TASO's format cannot say") or "condition" in why for why in refused.values())
    back = [r for i, p in enumerate(decode(to_taso(said), "x")) for r in rules_of(p, f"r{i}")]
    bodies = {body(r) for r in back}
    assert all(body(r) in bodies for r in said)


def body(given: Rule) -> str:
    """The text of a rule but for its name, laws and comment; variables and sizes by first use."""
    roots = canonical((*given.source, *given.target))
    return print_rule(Rule("r", roots[: len(given.source)], roots[len(given.source) :]))


def test_a_rule_under_a_condition_is_refused_by_name() -> None:
    text = "(rule conditional (given (?x n)) (if (nonnegative ?x)) (from (relu (relu ?x))) (to (relu ?x)))"
    (given,) = parse_file(f"(rules :format 1) {text}").rules
    with pytest.raises(RuleError, match="rule conditional: it holds under a condition"):
        published(given)


def test_what_was_read_makes_a_rule_file() -> None:
    assert parse_file(print_file(RuleFile(tuple(READ)))).rules == tuple(READ)


def test_sizes_that_a_condition_makes_equal_leave_no_groups_open() -> None:
    """The last of the sample joins the kernels of two convolutions, so both have one group where one has."""
    (rule,) = [r for r in READ if r.name == "taso-23"]
    learned = learn(rule)
    assert learned is not None
    assert {op.group for t in subterms(*learned.rule.source) if isinstance(op := t.operator, Conv)} == {1}
