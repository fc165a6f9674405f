"""Which graphs of a piece are timed whole, and which of them replaces it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from superopt.cost.bench import Bench
from superopt.cost.kernels import Kernel, cut
from superopt.cost.layouts import ALONE, Place
from superopt.cost.measured import MeasuredCost
from superopt.cost.ort import OnnxRuntime
from superopt.errors import OutOfTime, RuntimeFailed
from superopt.operators.declared import Declared
from superopt.operators.differences import Neg
from superopt.operators.functions import Exp
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Add, Relu, Sqrt
from superopt.search.objectives.latency import LATE_TIMED, MOST_TIMED, UNPROMISED_TIMED, WORTH_LATE, Latency
from superopt.search.strategies.found import Applied, Found, Outcome
from superopt.term import Graph, Term, variable


class Unmeasured(MeasuredCost):
    """Says what graphs take as a whole without a runtime, where a test says what that is."""

    def __init__(self) -> None:
        no_table: Any = None
        super().__init__(Bench(OnnxRuntime(1), no_table, 17))

    def breakdown(self, graph: Graph) -> list[tuple[Kernel, float]]:
        return [(kernel, 0.0) for kernel in cut(graph)]

    def learn_streaming(self) -> None:
        pass


def test_a_graph_that_keeps_no_promise_does_not_end_the_search_for_one_that_does() -> None:
    """The first of two is no faster in context, so the second is tried; it gains what it promised, and is taken."""
    x = variable("x", (2, 3), "float32")
    costs = ((x, 1.0), (Relu()(x), 0.93), (Sqrt()(x), 0.95))
    start, first, second = (Found(Graph((x,), (term,)), seconds, ()) for term, seconds in costs)

    class Whole(Unmeasured):
        def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
            return 1.5, 1.51 if candidate.outputs == first.graph.outputs else 1.45

    best, gain, untried = Latency(Whole()).choose(Outcome(start, [first, second]), ALONE)
    assert (best, untried) == (second, 0)
    assert gain == pytest.approx(1.5 / 1.45), "its kernels take longer where they do not find all in the caches"


@pytest.mark.parametrize(
    ("promised", "until", "expected", "untimed"),
    [
        pytest.param(1.05, math.inf, MOST_TIMED, 0, id="in time"),
        pytest.param(1.05, 0.0, LATE_TIMED, 1, id="late"),
        pytest.param(1.00, math.inf, UNPROMISED_TIMED, 0, id="nothing is promised"),
        pytest.param(1.00, 0.0, 0, 1, id="late and nothing is promised"),
    ],
)
@pytest.mark.parametrize("fails", [False, True])
def test_graphs_are_timed_whole_as_long_as_there_is_time_and_something_promised(
    promised: float, until: float, expected: int, untimed: int, fails: bool
) -> None:
    """And where not all were timed that were to be, that is said."""
    x = variable("x", (2, 3), "float32")
    term, found, timed = x, list[Found](), list[Graph]()
    start = Found(Graph((x,), (x,)), 1.0, ())
    for _ in range(MOST_TIMED + 2):
        term = Relu()(Sqrt()(term))
        found.append(Found(Graph((x,), (term,)), 1.0 / promised, ()))

    class Whole(Unmeasured):
        def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
            timed.append(candidate)
            if fails:
                raise RuntimeFailed("it crashed")
            return 1.0, 1.0

    best, _, missed = Latency(Whole()).choose(Outcome(start, found), ALONE, until)
    assert best is start
    assert len(set(timed)) == len(timed) == expected
    assert missed == untimed + (expected if fails else 0)


@pytest.mark.parametrize(
    ("error", "promised", "expected"),
    [
        pytest.param(OutOfTime("too late"), 1.1 * WORTH_LATE, 1, id="much"),
        pytest.param(OutOfTime("too late"), 0.9 * WORTH_LATE, 0, id="little"),
        pytest.param(RuntimeFailed("it crashed"), 1.1 * WORTH_LATE, 0, id="what crashes"),
    ],
)
def test_what_no_time_is_left_to_time_is_taken_where_its_sum_promises_much(
    error: Exception, promised: float, expected: int
) -> None:
    x = variable("x", (2, 3), "float32")
    start, found = Found(Graph((x,), (x,)), promised, ()), Found(Graph((x,), (Relu()(x),)), 1.0, ())

    class Whole(Unmeasured):
        def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
            raise error

    best, gain, untimed = Latency(Whole()).choose(Outcome(start, [found]), ALONE, until=0.0)
    assert (best, gain) == [(start, 1.0), (found, promised)][expected]
    assert untimed >= 1


def test_who_is_late_takes_the_first_that_gains() -> None:
    x, timed = variable("x", (2, 3), "float32"), list[Graph]()
    costs = ((x, 1.0), (Relu()(x), 0.9), (Sqrt()(x), 0.91))
    start, *found = (Found(Graph((x,), (term,)), seconds, ()) for term, seconds in costs)

    class Whole(Unmeasured):
        def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
            timed.append(candidate)
            return 1.0, 0.97

    best, _, untimed = Latency(Whole()).choose(Outcome(start, found), ALONE, until=0.0)
    assert (best, timed, untimed) == (found[0], [found[0].graph], 1)


def test_what_is_less_work_is_timed_beside_another_that_gains() -> None:
    """It promises nothing, so it is not among those that may gain more, and gains most."""
    x, w, a, b = (variable(n, (64, 64), "float32", constant=n != "x") for n in "xwab")
    given = Add()(MatMul()(x, w), MatMul()(MatMul()(x, a), b))
    less, other = MatMul()(x, Add()(w, MatMul()(a, b))), Relu()(given)
    costs = ((given, 1.0), (less, 1.0), (other, 1 / 1.04))
    start, light, promising = (Found(Graph((x, w, a, b), (term,)), seconds, ()) for term, seconds in costs)

    class Whole(Unmeasured):
        def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
            gains = {given: 1.0, less: 1.07, other: 1.04}
            return 1.0 / gains[original.outputs[0]], 1.0 / gains[candidate.outputs[0]]

    best, gain, _ = Latency(Whole()).choose(Outcome(start, [start, promising, light]), ALONE)
    assert (best, gain) == (light, pytest.approx(1.07))


def test_a_whole_time_tells_which_graph_is_timed_next() -> None:
    """Two share a kernel and promise most; as one of them gains nothing, the third comes before the other."""
    x, order = variable("x", (64, 64), "float32"), list[Term]()
    prices = {"relu": 1.0, "sqrt": 0.5, "exp": 0.3, "neg": 0.001}
    terms = (Relu()(Relu()(x)), Sqrt()(Exp()(x)), Neg()(Sqrt()(Exp()(x))), Relu()(Neg()(x)))

    class Whole(Unmeasured):
        def breakdown(self, graph: Graph) -> list[tuple[Kernel, float]]:
            return [(kernel, prices[kernel.root.operator.name]) for kernel in cut(graph)]

        def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
            order.append(candidate.outputs[0])
            return 1.0, 1.0

    cost = Whole()
    start, *found = (Found(Graph((x,), (t,)), sum(s for _, s in cost.breakdown(Graph((x,), (t,)))), ()) for t in terms)
    Latency(cost).choose(Outcome(start, found), ALONE)
    assert [terms.index(term) for term in order] == [1, 3, 2]


@pytest.mark.parametrize(
    ("gains", "beside_the_best", "late", "expected"),
    [
        pytest.param((1.40, 1.39), (1.0, 0.9), False, 1, id="faster beside it"),
        pytest.param((1.40, 1.39), (1.0, 1.1), False, 0, id="slower beside it"),
        pytest.param((1.40, 1.30), None, False, 0, id="far behind"),
        pytest.param((1.40, 1.39), None, True, 0, id="late"),
        pytest.param((0.99, 0.99), None, False, None, id="none gains"),
    ],
)
def test_graphs_that_gain_alike_are_timed_beside_each_other(
    gains: tuple[float, float], beside_the_best: tuple[float, float] | None, late: bool, expected: int | None
) -> None:
    """Beside the original, at moments of their own, they could not be told apart."""
    x, best, later = variable("x", (2, 3), "float32"), list[Graph](), list[Graph]()
    start = Found(Graph((x,), (x,)), 1.0, ())
    found = [Found(Graph((x,), (op()(x),)), 0.7, ()) for op in (Relu, Sqrt)]

    class Whole(Unmeasured):
        def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
            if original == start.graph:
                return 1.0, 1.0 / gains[[f.graph for f in found].index(candidate)]
            best.append(original)
            later.append(candidate)
            assert beside_the_best is not None
            return beside_the_best

    chosen = Latency(Whole()).choose(Outcome(start, found), ALONE, until=0.0 if late else math.inf)[0]
    assert chosen is (start if expected is None else found[expected])
    assert (best, later) == (([found[0].graph], [found[1].graph]) if beside_the_best else ([], []))


@pytest.mark.parametrize(
    ("steps", "other_s", "expected"),
    [((2, 1), 1.005, 1), ((2, 1), 1.02, 0), ((1, 2), 0.995, 0), ((1, 2), 0.98, 1), ((1, 1), 0.995, 1)],
    ids=["simpler", "simpler and slower", "longer", "longer and faster", "as long"],
)
def test_of_graphs_that_take_the_same_beside_each_other_the_one_of_fewer_rewrites_is_taken(
    steps: tuple[int, int], other_s: float, expected: int
) -> None:
    x = variable("x", (2, 3), "float32")
    start = Found(Graph((x,), (x,)), 1.0, ())
    step = Applied("some rewrite", "proved", (), x, Relu()(x))
    found = [Found(Graph((x,), (op()(x),)), 0.7, (step,) * n) for op, n in zip((Relu, Sqrt), steps, strict=True)]

    class Whole(Unmeasured):
        def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
            return (1.0, 1.0 / 1.4) if original == start.graph else (1.0, other_s)

    assert Latency(Whole()).choose(Outcome(start, found), ALONE)[0] is found[expected]


def test_graphs_that_cannot_be_timed_beside_each_other_are_left() -> None:
    """No time is left for it: the one that gained most is taken."""
    x = variable("x", (2, 3), "float32")
    start = Found(Graph((x,), (x,)), 1.0, ())
    found = [Found(Graph((x,), (op()(x),)), 0.7, ()) for op in (Relu, Sqrt)]

    class Whole(Unmeasured):
        def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
            if original != start.graph:
                raise OutOfTime("too late")
            return 1.0, 0.7 if candidate == found[0].graph else 0.71

    assert Latency(Whole()).choose(Outcome(start, found), ALONE)[0] is found[0]


@pytest.mark.parametrize("which", [Relu, Sqrt])
def test_the_start_is_not_timed_beside_itself(which: type[Declared]) -> None:
    x = variable("x", (2, 3), "float32")
    start, again = (Found(Graph((x,), (which()(x),)), 1.0, ()) for _ in range(2))

    class Whole(Unmeasured):
        def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
            raise AssertionError(f"{candidate} is the original")

    assert Latency(Whole()).choose(Outcome(start, [again]), ALONE) == (start, 1.0, 0)


@pytest.mark.parametrize(("around_s", "expected"), [(1.0, 2.0 / 1.95), (3.0, 1 / 0.95)], ids=["half", "most"])
def test_what_stands_around_a_piece_gains_nothing(around_s: float, expected: float) -> None:
    """Of four seconds with what stands around, sums say that a half is the piece's own, or less than its sum."""
    x = variable("x", (1, 16, 3, 3), "float32")
    start, better = (Found(Graph((x,), (term,)), s, ()) for term, s in ((Relu()(x), 1.0), (Sqrt()(x), 0.95)))

    class Whole(Unmeasured):
        def estimate(self, *_: object) -> float:
            return start.cost + around_s

        def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
            return 4.0, 3.95

    _, gain, _ = Latency(Whole()).choose(Outcome(start, [better]), Place(frozenset("x")))
    assert gain == pytest.approx(expected)


@pytest.mark.parametrize(
    ("promised", "gained", "kept"),
    [(1.005, 1.04, True), (0.92, 1.04, True), (0.97, 1.01, False), (0.85, 1.04, False)],
    ids=["hardly promised", "promised to lose", "gained little", "promised to lose much"],
)
def test_what_is_less_work_is_timed_whole_though_its_sum_promises_little(
    promised: float, gained: float, kept: bool
) -> None:
    x, w, a, b = (variable(n, (64, 64), "float32", constant=n != "x") for n in "xwab")
    alone, beside = MatMul()(x, w), MatMul()(MatMul()(x, a), b)
    less = MatMul()(x, Add()(w, MatMul()(a, b)))
    start, better = (
        Found(Graph((x, w, a, b), (term,)), seconds, ())
        for term, seconds in ((Add()(alone, beside), 1.0), (less, 1.0 / promised))
    )

    class Whole(Unmeasured):
        def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
            return 1.0, 1.0 / gained

    best, _, _ = Latency(Whole()).choose(Outcome(start, [start, better]), ALONE)
    assert best is (better if kept else start)


@pytest.mark.parametrize(
    ("promised", "gained", "kept"),
    [
        pytest.param(1.04, 1.04, True, id="both"),
        pytest.param(1.015, 1.01, True, id="both a little"),
        pytest.param(1.005, 1.015, False, id="hardly promised and measured a little"),
        pytest.param(0.99, 1.04, True, id="promised to lose a little and measured"),
        pytest.param(0.95, 1.04, False, id="promised to lose"),
        pytest.param(1.04, 1.002, False, id="hardly measured"),
        pytest.param(1.04, 0.99, False, id="measured to lose"),
    ],
)
def test_a_small_gain_is_one_where_sums_and_whole_times_agree_and_a_larger_one_where_sums_nearly_do(
    promised: float, gained: float, kept: bool
) -> None:
    x = variable("x", (2, 3), "float32")
    start, better = (
        Found(Graph((x,), (term,)), seconds, ()) for term, seconds in ((x, 1.0), (Relu()(x), 1.0 / promised))
    )

    class Whole(Unmeasured):
        def whole(self, original: Graph, candidate: Graph) -> tuple[float, float]:
            return 1.0, 1.0 / gained

    best, gain, _ = Latency(Whole()).choose(Outcome(start, [better]), ALONE)
    assert best is (better if kept else start)
    assert gain == pytest.approx(gained if kept else 1.0)
