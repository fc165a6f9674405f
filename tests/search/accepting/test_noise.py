"""How far rounding alone takes a model, and where it decides so much that nothing is told."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from superopt.cost.ort import OnnxRuntime
from superopt.onnx_io import load, neighbours, understand
from superopt.search.accepting import outputs
from superopt.search.accepting.fed import Fed
from superopt.search.accepting.outputs import Sample, judged
from superopt.search.accepting.reference import reference_of
from superopt.search.accepting.same import examine
from tests.search.networks import CLASSIFIER, classifier_weights, write

RUNTIME = OnnxRuntime()


def test_rounding_of_an_ill_conditioned_sample_is_allowed(tmp_path: Path) -> None:
    """Logits of thousands: a softmax magnifies their last bits, in the original as in the candidate."""
    weights = {k: v * np.float32(100) if k == "w" else v for k, v in classifier_weights().items()}
    text = CLASSIFIER.replace("y = Add(m, c)", "l = Add(m, c) y = Softmax(l)")
    order = np.random.default_rng(1).permutation(8 * 6 * 6)
    permuted = text.replace("m = MatMul(f, w)", "g = Gather<axis=1>(f, o) m = MatMul(g, w)")
    original = write(tmp_path / "a.onnx", text, weights)
    candidate = write(tmp_path / "b.onnx", permuted, {**weights, "w": weights["w"][order], "o": order.astype(np.int64)})
    assert examine(original, candidate, RUNTIME).agrees


@pytest.mark.parametrize("factor", [1e6, 1e7])
def test_where_rounding_decides_every_value_nothing_was_examined(tmp_path: Path, factor: float) -> None:
    """The sine of a number whose last bit is a radian: that of the next number is another one, as the cosine is."""
    text, weights = "g (float[1,64] x) => (float[1,64] y) { a = Mul(x, k) y = Sin(a) }", {"k": np.float32([factor])}
    original = write(tmp_path / "a.onnx", text, weights)
    candidate = write(tmp_path / "b.onnx", text.replace("Sin", "Cos"), weights)
    for reference in (None, reference_of(understand(load(original)))):
        found = examine(original, candidate, RUNTIME, reference)
        assert not found.examined
        assert "not the same in two runs" in found.reason


def test_a_sample_in_which_rounding_decides_says_nothing_and_another_does() -> None:
    values = np.linspace(1, 2, 8, dtype=np.float32)
    noisy = Sample({}, [np.zeros(8, np.float32)], [None], noisy=[[values]], found=[[values * 3]])
    assert not judged(["y"], [noisy]).examined
    for factor, agrees in ((1, True), (2, False)):
        told = Sample({}, [values], [None], found=[[values * np.float32(factor)]])
        found = judged(["y"], [noisy, told])
        assert (found.agrees, found.examined, np.isfinite(found.outputs[0].bound)) == (agrees, True, True)


def test_a_sample_is_compared_anew_only_where_more_is_known_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compared of large outputs takes as long as running their model."""
    told = list[str]()

    def compared(worst: outputs._Worst, sample: Sample, index: int) -> None:
        told.append(worst.name)
        compare(worst, sample, index)

    compare = outputs._Worst.compare
    monkeypatch.setattr(outputs._Worst, "compare", compared)
    values = np.linspace(1, 2, 8, dtype=np.float32)
    samples = [Sample({}, [values * k], [None], found=[[values * k]]) for k in (1, 2)]
    first = judged(["y"], samples)
    assert first == judged(["y"], samples)
    assert len(told) == 2
    samples[0].exact = [values * 3]
    assert judged(["y"], samples[:1]).outputs[0].candidate_error
    assert judged(["y"], samples[1:]).outputs[0].candidate_error is None
    assert len(told) == 3


CLICK = """g (int64[1,16] x) => (float[1] p) {
  e = Gather (table, x) s = ReduceSum <keepdims=0> (e, one) z = Add (s, b) a = Sigmoid (z) p = Squeeze (a, one)
}"""
"""How likely somebody clicks, by the sum of 16 numbers."""

ONE = np.array([1])


@pytest.mark.parametrize("off", [1e-6, 0.02])
def test_what_a_logistic_function_gives_near_0_is_as_exact_as_near_1(tmp_path: Path, off: float) -> None:
    """Runtimes are off by 10⁻⁷ of 1. Inputs have no neighbours, and with neighbouring weights the same may come out."""
    table = np.full((8, 1), 1 / 16, np.float32) + np.arange(8, dtype=np.float32)[:, None] / 256
    original = write(tmp_path / "a.onnx", CLICK, {"table": table, "one": ONE, "b": np.float32([-11])})
    for k in range(8):
        weights = {"table": table, "one": ONE, "b": np.float32([-11 + off * (1 + k / 8)])}
        found = examine(original, write(tmp_path / "b.onnx", CLICK, weights), RUNTIME)
        assert found.examined
        assert found.agrees == (off < 0.01), found.reason


def test_in_64_bits_a_logistic_function_is_as_exact_as_others(tmp_path: Path) -> None:
    text = CLICK.replace("float[1] p", "double[1] p")
    weights = {"table": np.full((8, 1), 1 / 16), "one": ONE}
    original, other = (
        write(tmp_path / f"{name}.onnx", text, {**weights, "b": np.array([-11 + off])})
        for name, off in (("a", 0.0), ("b", 1e-7))
    )
    assert not examine(original, other, RUNTIME).agrees


NORM_OF_TOKENS = """g (int64[2,16] x) => (float[2,16,8] y) {
  t = Gather (table, x)
  mean = ReduceMean <axes=[2]> (t)
  squares = Mul (t, t)
  of_squares = ReduceMean <axes=[2]> (squares)
  square = Mul (mean, mean)
  variance = Sub (of_squares, square)
  d = Sub (t, mean)
  y = Div (d, variance)
}"""
"""The difference of two numbers that are nearly one: its rounding errors are a thousand times as large."""


@pytest.mark.parametrize("found", [(3,), (4,)])
def test_an_output_whose_length_rounding_decides_is_not_examined(found: tuple[int]) -> None:
    """As of the elements that pass a bound: with inputs changed in their last bit it is four, and not three."""
    of = {size: np.arange(float(size[0])).astype(np.float32) for size in ((3,), (4,))}
    sample = Sample({}, [of[3,]], [None], noisy=[[of[4,]]], found=[[of[found]]])
    agreement = judged(["y"], [sample])
    assert (agreement.agrees, agreement.examined) == (True, False)


@pytest.mark.parametrize("factor", [1.0, 1.2])
def test_where_inputs_have_no_neighbours_those_of_the_weights_tell_how_ill_conditioned_it_is(
    tmp_path: Path, factor: float
) -> None:
    rng = np.random.default_rng(0)
    table = (100 + rng.standard_normal((2, 8))).astype(np.float32)
    text = NORM_OF_TOKENS.replace("squares = Mul (t, t)", "e = Sub (t, mean) squares = Mul (e, e)")
    otherwise = text.replace("variance = Sub (of_squares, square)", "variance = Mul (of_squares, f)")
    weights = {"table": table, "f": np.array(factor, np.float32)}
    original = write(tmp_path / "a.onnx", NORM_OF_TOKENS, {"table": table})
    found = examine(
        original, write(tmp_path / "b.onnx", otherwise.replace("square = Mul (mean, mean)", ""), weights), RUNTIME
    )
    assert found.agrees == (factor == 1.0), found.reason
    assert found.outputs[0].error > 2e-4, "without the weights it would not agree"


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("b = Cast <to = 9> (mask) t = Where (b, e, mask) z = Mul (t, f)", {"mask": np.array([0.0, 1.0] * 4)}),
        ("r = Resize (e, , s) w = Mul (r, f) z = Relu (w)", {"s": np.array([1.0, 1.5, 1.0])}),
    ],
    ids=["a weight that decides", "a weight that is a size"],
)
def test_what_a_weight_decides_is_no_noise(text: str, weights: dict[str, NDArray[np.float64]], tmp_path: Path) -> None:
    given = {n: w.astype(np.float32) for n, w in weights.items()} | {"table": np.eye(4, 8, dtype=np.float32)}
    model = f"g (int64[1,8] x) => (float[a,b,c] z) {{ e = Gather (table, x) {text} }}"
    files = [write(tmp_path / f"{f}.onnx", model, {**given, "f": np.array(f, np.float32)}) for f in (1, 3)]
    found = examine(files[0], files[1], RUNTIME)
    assert (found.agrees, found.examined) == (False, True), found.reason


def test_numbers_move_by_as_many_last_bits_as_are_asked_for() -> None:
    given = np.array([1.0, -3.5, 0.0, 1e30], np.float32)
    moved = neighbours(given, np.random.default_rng(0), 16)
    assert (np.abs(moved.view(np.int32) - given.view(np.int32))[[0, 1, 3]] == 16).all()


SIGNS = "g (float[64] x) => (float[64] y) {{ d = Sub (x, {}) s = Mul (d, large) y = Tanh (s) }}"


@pytest.mark.parametrize(("bits", "agrees"), [(5, True), (1000, False)])
def test_nothing_is_told_of_what_inputs_that_move_by_what_noise_is_turn_over(
    tmp_path: Path, bits: int, agrees: bool
) -> None:
    """The sign of a difference of 3 last bits is another when a number is off by 5: its next number tells nothing."""
    at, some = np.float32(1.5), np.random.default_rng(0).standard_normal(64).astype(np.float32)
    last = np.spacing(at)
    weights = {"c": np.array(at), "o": np.array(at + bits * last), "large": np.array(1e9, np.float32)}
    original, candidate = (write(tmp_path / f"{n}.onnx", SIGNS.format(n), weights) for n in "co")
    some[0], some[1] = at + 3 * last, at + 100 * last
    found = examine(original, candidate, RUNTIME, fed=Fed([{"x": some}]))
    assert (found.agrees, found.examined) == (agrees, True), found.reason
    assert found.outputs[0].error <= found.outputs[0].bound or not agrees


@pytest.mark.parametrize("changed", ["all", "length", "whole number"])
def test_what_moves_by_much_with_its_inputs_is_not_held_against_a_candidate(changed: str) -> None:
    values = np.arange(1, 9).astype(np.int64 if changed == "whole number" else np.float32)
    other = values[:4] if changed == "length" else 2 * values
    told = Sample({}, [values], [None], jolted=[[values]], found=[[other]])
    assert judged(["y"], [told]).differs
    turned = Sample({}, [values], [None], jolted=[[values], [other]], found=[[other]])
    assert not judged(["y"], [turned]).differs
    assert not judged(["y"], [turned]).examined
    assert judged(["y"], [turned, told]).differs


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("jump", [-2.0, np.nan])
@pytest.mark.parametrize("at", [1, 2])
def test_of_an_output_only_the_elements_that_move_by_much_are_left_out(at: int, jump: float, exact: bool) -> None:
    values = np.linspace(1, 2, 8, dtype=np.float32)
    moved, found = values.copy(), values.copy()
    moved[1], found[at] = jump, -2.0
    sample = Sample({}, [values], [values.astype(np.float64) if exact else None], jolted=[[moved]], found=[[found]])
    assert judged(["y"], [sample]).agrees == (at == 1)
    assert judged(["y"], [sample]).examined
