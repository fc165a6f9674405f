"""What counts as the same, and what was not examined."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from superopt.cost.child import Unending
from superopt.cost.inputs import Draw, Feeds
from superopt.cost.ort import OnnxRuntime
from superopt.errors import OutOfTime, RuntimeFailed
from superopt.onnx_io import load, understand
from superopt.search.accepting import same
from superopt.search.accepting.fed import Allowed, Fed
from superopt.search.accepting.reference import reference_of
from superopt.search.accepting.runs import ran
from superopt.search.accepting.same import examine
from superopt.search.settings import Setting
from tests.search.networks import CLASSIFIER, classifier, classifier_weights, write

RUNTIME = OnnxRuntime()
T = TypeVar("T")


def exact(
    feeds: Feeds, stopped: Callable[[], bool] = lambda: False, keep: object = None
) -> list[NDArray[np.float64] | None]:
    """The classifier in 64-bit floats."""
    w = {n: v.astype(np.float64) for n, v in classifier_weights().items()}
    x = feeds["x"].astype(np.float64)
    views = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    a = np.einsum("nchwij,ocij->nohw", views, w["k"]) + w["b"][:, None, None]
    return [np.maximum(a, 0).reshape(1, -1) @ w["w"] + w["c"]]


def test_a_model_agrees_with_itself(tmp_path: Path) -> None:
    model = classifier(tmp_path / "a.onnx")
    found = examine(model, model, RUNTIME, exact)
    assert (found.agrees, found.examined, found.reason, found.samples) == (True, True, "", 5)
    (output,) = found.outputs
    assert output.error <= output.bound < 1e-2
    assert output.original_error is not None
    assert 0 < output.original_error < 1e-5


@pytest.mark.parametrize(("threads", "several"), [(1, 2), (3, 3)])
def test_a_candidate_is_run_in_several_threads_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, several: int
) -> None:
    """Where rows that a ScatterND adds to one place are lost, which are not in one."""
    seen: list[tuple[int, bool]] = []

    def noted(runtime: OnnxRuntime, model: Path, optimize: bool, *more: Any) -> Any:
        seen.append((runtime.threads, optimize))
        return ran(runtime, model, optimize, *more)

    monkeypatch.setattr(same, "ran", noted)
    model = classifier(tmp_path / "a.onnx")
    assert examine(model, model, OnnxRuntime(threads)).agrees
    assert seen == [(several, False), (threads, True)]


def test_another_order_of_the_same_sum_agrees(tmp_path: Path) -> None:
    weights = classifier_weights()
    order = np.random.default_rng(1).permutation(8 * 6 * 6)
    text = CLASSIFIER.replace("m = MatMul(f, w)", "g = Gather<axis=1>(f, o) m = MatMul(g, w)")
    permuted = {**weights, "w": weights["w"][order]}
    candidate = write(tmp_path / "b.onnx", text, {**permuted, "o": order.astype(np.int64)})
    assert examine(classifier(tmp_path / "a.onnx"), candidate, RUNTIME, exact).agrees


@pytest.mark.parametrize("name", ["k", "b", "w", "c"])
@pytest.mark.parametrize("reference", [None, exact], ids=["alone", "with-reference"])
def test_one_weight_changed_by_one_percent_does_not_agree(tmp_path: Path, name: str, reference: object) -> None:
    weights = classifier_weights()
    changed = weights[name].copy()
    changed.flat[np.abs(changed).argmax()] *= 1.01
    candidate = classifier(tmp_path / "b.onnx", {**weights, name: changed})
    found = examine(classifier(tmp_path / "a.onnx"), candidate, RUNTIME, reference)  # type: ignore[arg-type]
    assert not found.agrees
    assert found.examined
    assert 'output "y"' in found.reason


def test_a_reference_finds_what_is_wrong_by_little(tmp_path: Path) -> None:
    weights = classifier_weights()
    changed = {**weights, "w": (weights["w"] * np.float32(1 + 5e-5)).astype(np.float32)}
    original, candidate = classifier(tmp_path / "a.onnx"), classifier(tmp_path / "b.onnx", changed)
    assert examine(original, candidate, RUNTIME).agrees
    found = examine(original, candidate, RUNTIME, exact)
    assert not found.agrees
    assert "64-bit" in found.reason


HALF = "g (float[4,8] x) => (float16[4,5] y) { a = MatMul (x, w) y = Cast <to=10> (a) }"


@pytest.mark.parametrize(("factor", "agrees"), [(1.0, True), (1.0005, True), (1.01, False)])
@pytest.mark.parametrize("told", [False, True], ids=["alone", "with-reference"])
def test_an_output_of_16_bits_may_differ_by_its_rounding_only(
    tmp_path: Path, factor: float, agrees: bool, told: bool
) -> None:
    w = np.random.default_rng(0).standard_normal((8, 5)).astype(np.float32)
    original = write(tmp_path / "a.onnx", HALF, {"w": w})
    candidate = write(tmp_path / "b.onnx", HALF, {"w": w * np.float32(factor)})
    reference = reference_of(understand(load(original))) if told else None
    found = examine(original, candidate, RUNTIME, reference)
    assert (found.agrees, found.examined) == (agrees, True)


def test_an_error_that_shows_at_one_scale_only_is_found(tmp_path: Path) -> None:
    original = write(tmp_path / "a.onnx", "g (float[4,4] x) => (float[4,4] y) { y = Mul(x, x) }")
    low, high = np.array(-20, np.float32), np.array(20, np.float32)
    text = "g (float[4,4] x) => (float[4,4] y) { c = Clip(x, low, high) y = Mul(c, x) }"
    candidate = write(tmp_path / "b.onnx", text, {"low": low, "high": high})
    assert examine(original, candidate, RUNTIME, fed=Fed(draws=[Draw()])).agrees
    assert not examine(original, candidate, RUNTIME).agrees


@pytest.mark.parametrize(
    "body",
    ["z = Sub(x, x)", "d = Sub(x, x) z = Div(d, d)", "s = Shape(x) z = Cast<to=1>(s)"],
    ids=["zeros", "not-a-number", "shape"],
)
def test_an_output_that_shows_nothing_is_not_examined(tmp_path: Path, body: str) -> None:
    rank = 1 if "Shape" in body else 2
    shape = "[2]" if rank == 1 else "[2,2]"
    text = f"g (float[2,2] x) => (float[2,2] y, float{shape} z) {{ y = Relu(x) {body} }}"
    model = write(tmp_path / "a.onnx", text)
    found = examine(model, model, RUNTIME)
    assert found.agrees
    assert not found.examined
    assert '"z"' in found.reason
    assert [o.examined for o in found.outputs] == [True, False]


def test_an_output_of_one_element_is_examined_by_several_samples(tmp_path: Path) -> None:
    model = write(tmp_path / "a.onnx", "g (float[2,2] x) => (float y) { y = ReduceMean<keepdims=0>(x) }")
    assert examine(model, model, RUNTIME).examined


@pytest.mark.parametrize(("factor", "saturated"), [(1, False), (1e6, True)])
def test_an_output_that_is_always_one_for_one_class_is_saturated(
    tmp_path: Path, factor: float, saturated: bool
) -> None:
    text = "g (float[1,5] x) => (float[1,5] y) { s = Mul(x, f) y = Softmax(s) }"
    model = write(tmp_path / "a.onnx", text, {"f": np.array(factor, np.float32)})
    (output,) = examine(model, model, RUNTIME).outputs
    assert output.saturated is saturated


def test_not_a_number_in_other_places_does_not_agree(tmp_path: Path) -> None:
    original = write(tmp_path / "a.onnx", "g (float[8] x) => (float[8] y) { y = Sqrt(x) }")
    candidate = write(tmp_path / "b.onnx", "g (float[8] x) => (float[8] y) { r = Relu(x) y = Sqrt(r) }")
    found = examine(original, candidate, RUNTIME)
    assert not found.agrees
    assert "not a number" in found.reason
    assert examine(original, original, RUNTIME).agrees


def test_integers_must_be_equal(tmp_path: Path) -> None:
    text = "g (float[4,9] x) => (int64[4] y) {{ n = Mul(x, s) y = ArgMax<axis=1, keepdims=0>({}) }}"
    weights = {"s": np.array(-1, np.float32)}
    original, candidate = (write(tmp_path / f"{n}.onnx", text.format(n), weights) for n in "xn")
    assert examine(original, original, RUNTIME).agrees
    assert not examine(original, candidate, RUNTIME).agrees


@pytest.mark.parametrize(
    "changed",
    [
        CLASSIFIER.replace("float[1,3,8,8] x", "float[1,3,8,8] z").replace("(x,", "(z,"),
        CLASSIFIER.replace("float[1,3,8,8] x", "float[n,3,8,8] x"),
        CLASSIFIER.replace("=> (float[1,5] y)", "=> (float[1,5] y, float[1,5] m)"),
    ],
    ids=["name", "shape", "outputs"],
)
def test_another_interface_does_not_agree(tmp_path: Path, changed: str) -> None:
    candidate = write(tmp_path / "b.onnx", changed, classifier_weights())
    found = examine(classifier(tmp_path / "a.onnx"), candidate, RUNTIME)
    assert not found.agrees
    assert "puts differ" in found.reason


def test_a_candidate_that_does_not_load_does_not_agree(tmp_path: Path) -> None:
    (tmp_path / "b.onnx").write_bytes(b"no model")
    found = examine(classifier(tmp_path / "a.onnx"), tmp_path / "b.onnx", RUNTIME)
    assert not found.agrees
    assert not found.ran
    assert found.reason.startswith("candidate: ")
    with pytest.raises(RuntimeFailed):
        examine(tmp_path / "b.onnx", classifier(tmp_path / "a.onnx"), RUNTIME)


def test_inputs_of_the_user_are_used(tmp_path: Path) -> None:
    original = write(tmp_path / "a.onnx", "g (float[4] x) => (float[4] y) { y = Relu(x) }")
    weights = {"low": np.array(0, np.float32), "high": np.array(1e6, np.float32)}
    candidate = write(tmp_path / "b.onnx", "g (float[4] x) => (float[4] y) { y = Clip(x, low, high) }", weights)
    assert examine(original, candidate, RUNTIME).agrees
    mine = {"x": np.array([-1, 1, 2, 1e7], np.float32)}
    found = examine(original, candidate, RUNTIME, fed=Fed([mine]))
    assert not found.agrees
    assert found.samples == 6


def test_symbolic_sizes_take_several_values(tmp_path: Path) -> None:
    original = write(tmp_path / "a.onnx", "g (float[n,3] x) => (float[n,3] y) { y = Identity(x) }")
    to = {"to": np.array([1, 1], np.int64)}
    text = "g (float[n,3] x) => (float[n,3] y) { m = ReduceMean<axes=[0], keepdims=1>(x) y = Expand(m, to) }"
    candidate = write(tmp_path / "b.onnx", text, to)
    assert examine(original, candidate, RUNTIME, fed=Fed(draws=[Draw()])).agrees
    assert not examine(original, candidate, RUNTIME).agrees
    assert examine(original, candidate, RUNTIME, fed=Fed(settings=[Setting({"n": 1}, {"x": (1, None)})])).agrees


def test_without_inputs_that_run_nothing_was_examined(tmp_path: Path) -> None:
    weights = {"t": np.zeros((1, 4), np.float32)}
    model = write(tmp_path / "a.onnx", "g (int64[3] i) => (float[3,4] y) { y = Gather(t, i) }", weights)
    found = examine(model, model, RUNTIME)
    assert not found.examined
    assert not found.agrees


class Interrupted:
    """Where models run until the candidate is asked for: then somebody presses Ctrl-C."""

    def __init__(self) -> None:
        self.calls = 0

    def call(self, limit_s: float, function: Callable[..., T], *arguments: object) -> T:
        """What the function gives, the first time."""
        self.calls += 1
        if self.calls > 1:
            raise KeyboardInterrupt
        return function(*arguments)


class Late:
    """Where the first models run, and none after the original itself has."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def call(self, limit_s: float, function: Callable[..., T], *arguments: object) -> T:
        """What the function gives, so many times."""
        self.left -= 1
        if self.left < 0:
            raise Unending("it did not end within 3 s")
        return function(*arguments)


@pytest.mark.parametrize("calls", [2, 3, 4, 5])
def test_what_has_not_ended_in_time_is_late_and_no_difference(tmp_path: Path, calls: int) -> None:
    """The candidate twice, and then the original, to see how far rounding takes what differs."""
    weights = classifier_weights()
    candidate = classifier(tmp_path / "b.onnx", {**weights, "c": weights["c"] + 1})
    with pytest.raises(OutOfTime, match="took too long to be compared: it did not end within 3 s"):
        examine(classifier(tmp_path / "a.onnx"), candidate, RUNTIME, caller=Late(calls))


def test_an_original_that_has_not_ended_in_time_is_the_runtimes_failure(tmp_path: Path) -> None:
    model = classifier(tmp_path / "a.onnx")
    with pytest.raises(RuntimeFailed, match="it did not end"):
        examine(model, model, RUNTIME, caller=Late(1))


def test_an_interrupt_ends_the_evaluation_in_64_bits(tmp_path: Path) -> None:
    ended: list[bool] = []

    def unending(
        feeds: Feeds, stopped: Callable[[], bool] = lambda: False, keep: object = None
    ) -> list[NDArray[np.float64] | None]:
        end = time.monotonic() + 60
        while not stopped() and time.monotonic() < end:
            time.sleep(0.01)
        ended.append(stopped())
        return [None]

    path = classifier(tmp_path / "a.onnx")
    with pytest.raises(KeyboardInterrupt):
        examine(path, path, RUNTIME, unending, caller=Interrupted())
    assert ended == [True]


def test_who_stops_the_reference_gets_no_values(tmp_path: Path) -> None:
    program = understand(load(classifier(tmp_path / "a.onnx")))
    reference = reference_of(program)
    assert reference is not None
    feeds = {"x": np.ones([int(d) for d in program.values["x"].shape], np.float32)}  # type: ignore[arg-type]
    assert reference(feeds)[0] is not None
    assert reference(feeds, lambda: True) == [None]


def endless(
    feeds: Feeds, stopped: Callable[[], bool] = lambda: False, keep: object = None
) -> list[NDArray[np.float64] | None]:
    """An evaluation that takes until nobody wants it any more."""
    while not stopped():
        time.sleep(0.01)
    return [None]


def test_nobody_waits_beyond_the_time_for_values_in_64_bits(tmp_path: Path) -> None:
    model, start = classifier(tmp_path / "a.onnx"), time.monotonic()
    found = examine(model, model, RUNTIME, endless, allowed=Allowed(until=start + 0.2))
    assert time.monotonic() - start < 30.0
    assert (found.agrees, found.samples) == (True, 5)
    assert found.outputs[0].original_error is None


def test_where_outputs_differ_and_these_values_are_late_nothing_is_told(tmp_path: Path) -> None:
    weights = classifier_weights()
    candidate = classifier(tmp_path / "b.onnx", {**weights, "c": weights["c"] + 1})
    with pytest.raises(OutOfTime, match="in 64 bits took too long"):
        examine(classifier(tmp_path / "a.onnx"), candidate, RUNTIME, endless, allowed=Allowed(until=time.monotonic()))


def test_a_difference_that_shows_in_time_is_told_though_other_values_are_late(tmp_path: Path) -> None:
    weights = classifier_weights()
    candidate = classifier(tmp_path / "b.onnx", {**weights, "c": weights["c"] + 1})
    began = list[Feeds]()

    def slow(
        feeds: Feeds, stopped: Callable[[], bool] = lambda: False, keep: object = None
    ) -> list[NDArray[np.float64] | None]:
        began.append(feeds)
        return exact(feeds) if len(began) == 1 else endless(feeds, stopped)

    found = examine(
        classifier(tmp_path / "a.onnx"), candidate, RUNTIME, slow, allowed=Allowed(until=time.monotonic() + 2.0)
    )
    assert found.differs
