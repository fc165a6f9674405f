"""What is joined is taken apart below linear operators where a part then saves something, and nowhere else."""

from __future__ import annotations

from functools import cache

import pytest

from superopt.arithmetic.field import FIELD
from superopt.cost.analytic import AnalyticCost
from superopt.demands import assuming
from superopt.dim import symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.conv import Conv
from superopt.operators.interpolate import Interpolate
from superopt.operators.layout import Concat, Expand
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Relu
from superopt.rules.format import load_rules, parse_file
from superopt.rules.otherwise import otherwise
from superopt.search.rewriting.finders.repeated import Repeating
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.parting import MOST, Parting, parting, taken_apart
from superopt.search.rewriting.rewrites import ByRule, Less, Rewrite, rewrites_of
from superopt.search.strategies.found import Found
from superopt.search.strategies.space import Space
from superopt.shipped import shipped_rules
from superopt.term import Graph, Term, running, subterms, variable, variables

GIVEN = "(given (?x r a) (?y r b) (?z (+ a b) c))"
NEAR_MISSES = {
    "one part": f"(rule r {GIVEN} (from (matmul (concat 1 ?x ?y) ?z)) (to (matmul ?x (slice 0 0 a ?z))))",
    "no sum": f"(rule r {GIVEN} (from (matmul (concat 1 ?x ?y) ?z)) (to (mul (matmul ?x ?z) (matmul ?y ?z))))",
    "one of both": "(rule r (given (?x r a) (?z (* 2 a) c)) (from (matmul (concat 1 ?x ?x) ?z))"
    " (to (add (matmul ?x (slice 0 0 a ?z)) (matmul ?x (slice 0 a (* 2 a) ?z)))))",
    "the other factor": "(rule r (given (?x a r) (?y b r) (?z r c)) (from (matmul (concat 0 ?x ?y) ?z))"
    " (to (concat 0 (matmul ?x ?z) (matmul ?y ?z))))",
}


@cache
def shipped() -> tuple[Rewrite, ...]:
    rules = [r for path in shipped_rules() for r in load_rules(path).rules]
    return tuple(rewrites_of([*rules, *otherwise(rules)], []))


@cache
def rules() -> Parting:
    return parting(shipped())


def test_shipped_rules_say_that_convolutions_and_products_may_be_taken_apart() -> None:
    assert set(rules()) == {"conv", "matmul"}


@pytest.mark.parametrize("text", NEAR_MISSES.values(), ids=NEAR_MISSES)
def test_what_says_less_than_that_does_not_count(text: str) -> None:
    assert parting([ByRule(r) for r in parse_file(text).rules]) == {}


def images(*channels: int) -> list[Term]:
    return [variable(f"x{i}", (1, c, 5, 5)) for i, c in enumerate(channels)]


def joined(parts: list[Term], axis: int, of_the_last: bool = False) -> Term:
    """Parts joined one after the other, from either end."""
    if len(parts) == 1:
        return parts[0]
    if of_the_last:
        return Concat(axis)(parts[0], joined(parts[1:], axis, of_the_last))
    return Concat(axis)(joined(parts[:-1], axis), parts[-1])


def convolved(conv: Conv, of_the_last: bool = False) -> Term:
    kernel = variable("k", (4, 10, 3, 3), constant=True)
    return conv(joined(images(2, 3, 4, 1), 1, of_the_last), kernel)


def multiplied(*stack: int) -> Term:
    parts = [variable(f"x{i}", (*stack, 3, c)) for i, c in enumerate((2, 3, 4, 1))]
    weight = variable("w", (*stack, 10, 6), constant=True)
    return MatMul()(joined(parts, len(stack) + 1), weight)


LINEAR = {
    "plain": convolved(Conv()),
    "from the last": convolved(Conv(), of_the_last=True),
    "padded": convolved(Conv(pads=(1, 1, 1, 1))),
    "dilated": convolved(Conv(dilations=(2, 2))),
    "strided": convolved(Conv((2, 2), (1, 1, 1, 1))),
    "matrices": multiplied(),
    "stacks": multiplied(2),
}


def parts_in(term: Term) -> list[list[str]]:
    """What is taken apart: the labels of each part, in order."""
    ends = [t for t in subterms(term) if t.operator.name in rules()]
    return [[v.label for v in variables(t.inputs[0])] for t in ends]


@pytest.mark.parametrize("term", LINEAR.values(), ids=LINEAR)
@pytest.mark.parametrize(
    ("saving", "expected"),
    [
        ("x0", [["x0"], ["x1", "x2", "x3"]]),
        ("x3", [["x0", "x1", "x2"], ["x3"]]),
        ("x1", [["x0"], ["x1"], ["x2", "x3"]]),
        ("x1 x2", [["x0"], ["x1"], ["x2"], ["x3"]]),
        ("x0 x1 x2 x3", [["x0"], ["x1"], ["x2"], ["x3"]]),
    ],
)
def test_those_parts_are_taken_off_that_save_something_and_no_value_changes(
    term: Term, saving: str, expected: list[list[str]]
) -> None:
    def saved(part: Term) -> float:
        return 2.0 if part.inputs[0].label in saving.split() else 0.0

    ((rule, made, saves),) = taken_apart(term, saved, rules())
    assert (rule.heads, saves) == ((term.operator.name,), 2.0 * len(saving.split()))
    assert sorted(parts_in(made)) == expected
    values = sample((term,), FIELD, 0)
    assert (evaluate(made, FIELD, values) == evaluate(term, FIELD, values)).all()


def test_nothing_is_taken_apart_that_saves_nothing_or_is_no_such_sum() -> None:
    narrow, wide = images(2, 3)
    kernel, running_kernel = variable("k", (4, 5, 1, 1), constant=True), variable("k", (4, 5, 1, 1))
    fits = Conv()(Concat(1)(narrow, wide), kernel)
    assert list(taken_apart(fits, lambda _: 1.0, rules()))
    assert not list(taken_apart(fits, lambda _: 0.0, rules()))
    many = images(*[1] * (MOST + 1))
    for other in (
        Conv()(Concat(1)(narrow, wide), running_kernel),
        Conv()(variable("x", (1, 5, 5, 5)), kernel),
        Conv()(Concat(0)(narrow, narrow), variable("k", (4, 2, 1, 1), constant=True)),
        Conv()(joined(many, 1), variable("k", (4, len(many), 1, 1), constant=True)),
        Relu()(Concat(1)(narrow, wide)),
    ):
        assert not list(taken_apart(other, lambda _: 1.0, rules()))


@pytest.mark.parametrize("order", ["first", "between", "last"])
def test_an_image_is_convolved_before_it_is_resized_wherever_it_is_joined(order: str) -> None:
    """As SegFormer's head joins four: alone none of the rewrites to that leaves less to compute."""
    small = Interpolate((32, 32))(variable("s", (1, 64, 8, 8), "float32"))
    parts = [variable(f"x{i}", (1, 64, 32, 32), "float32") for i in range(2)]
    parts.insert(["first", "between", "last"].index(order), small)
    term = Conv()(joined(parts, 1), variable("k", (64, 192, 1, 1), "float32", constant=True))
    graph, cost = Graph(tuple(variables(*parts)), (term,)), AnalyticCost()
    (found,) = Space(graph, Matching(shipped()), cost).simplified(Found(graph, cost.cost(graph), ()))
    (resized,) = [t for t in running(*found.graph.outputs) if isinstance(t.operator, Interpolate)]
    assert isinstance(resized.inputs[0].operator, Conv)
    assert cost.cost(found.graph) < 0.8 * cost.cost(graph)


def test_images_of_symbolic_sizes_are_taken_apart_too() -> None:
    h, w = symbol("h"), symbol("w")
    parts = [variable(f"x{i}", (1, 4, h, w), "float32") for i in range(3)]
    for size in (1, 3):
        with assuming():
            term = Conv()(joined(parts, 1), variable("k", (4, 12, size, size), "float32", constant=True))
        ((_, made, _),) = taken_apart(term, lambda part: float(part.inputs[0].label == "x1"), rules())
        assert made.type == term.type
        Matching(shipped(), {"h": 8, "w": 8}).at(term)


def test_of_a_constant_part_as_much_is_saved_as_it_takes() -> None:
    """Places of an image, that are joined to it as two channels of 66."""
    image, places = variable("x", (1, 64, 16, 16), "float32"), variable("p", (1, 2, 16, 16), "float32", constant=True)
    kernel = variable("k", (64, 66, 3, 3), "float32", constant=True)
    term = Conv()(Concat(1)(image, places), kernel)
    matching = Matching(shipped())
    best = matching.best(term)
    assert best is not None
    assert 0.0 < best.template.saves < 0.1 * matching.rough.alone(term)


def test_rows_and_columns_that_are_repeated_beside_each_other_are_both_multiplied_before_that() -> None:
    """As the nodes at both ends of each edge of a graph are, beside what is known of the edge."""
    ends = [variable(name, (32, 64), "float32") for name in "ij"]
    edge = variable("e", (32, 32, 1), "float32")
    weights = Expand((1, 2), (32, 129, 64))(variable("w", (129, 64), "float32", constant=True))
    term = MatMul()(Concat(2)(Concat(2)(*(Expand((a, 2), (32, 32, 64))(x) for a, x in enumerate(ends))), edge), weights)
    matching = Matching([*shipped(), Less(Repeating)])
    best = matching.best(term)
    assert best is not None
    one, rest = best.template.targets[0].inputs
    other, last = rest.inputs
    assert [t.inputs[0].operator for t in (one, other)] == [Expand((a, 2), (32, 32, 64)) for a in (0, 1)]
    assert last.inputs[0] is edge
    assert all((made := matching.best(t)) is not None and made.template.saves > 0 for t in (one, other))


UNDONE = """
(rule part (given (?x n c h w) (?y n d h w) (?k o (+ c d) 1 1)) (from (conv (concat 1 ?x ?y) ?k))
  (to (add (conv ?x (slice 1 0 c ?k)) (conv ?y (slice 1 c (+ c d) ?k)))))
(rule join (given (?x n c h w) (?y n d h w) (?k o (+ c d) 1 1))
  (from (add (conv ?x (slice 1 0 c ?k)) (conv ?y (slice 1 c (+ c d) ?k)))) (to (conv (concat 1 ?x ?y) ?k)))
(rule early (given (?x n c h w) (?k o c 1 1)) (from (conv (interpolate (i j) ?x) ?k))
  (to (interpolate (i j) (conv ?x ?k))))
(rule twice (given (?x *)) (from (relu (relu ?x))) (to (relu ?x)))
"""


def rough(graph: Graph) -> float:
    return Matching([]).rough.whole(graph)


@pytest.mark.parametrize("given", range(8, 65, 8))
@pytest.mark.parametrize("taken", [8, 16, 32])
@pytest.mark.parametrize("shared", [False, True], ids=["alone", "shared"])
def test_what_is_taken_apart_for_little_loses_nothing_else(taken: int, given: int, shared: bool) -> None:
    """Where the rest of it saves less than its window says, or a rule joins the parts again, other gains are kept."""
    s, t = (variable(n, (1, taken, 16, 16), "float32") for n in "st")
    whole = Concat(1)(Interpolate((32, 32))(s), Interpolate((32, 32))(t))
    kernel = variable("k", (given, 2 * taken, 1, 1), "float32", constant=True)
    z = Relu()(Relu()(variable("z", (1, 64, 64, 64), "float32")))
    outputs = (Conv()(whole, kernel), z, *([whole] if shared else []))
    start, cost = Graph(tuple(v for v in variables(*outputs) if not v.constant), outputs), AnalyticCost()
    matching = Matching([ByRule(r) for r in parse_file(UNDONE).rules])
    (found,) = Space(start, matching, cost).simplified(Found(start, cost.cost(start), ()))
    alone = Graph(start.inputs, (outputs[0], z.inputs[0], *outputs[2:]))
    assert rough(found.graph) <= rough(alone) * (1 + 1e-9)
