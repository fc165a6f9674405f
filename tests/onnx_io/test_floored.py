"""What a softmax gives what is masked is next to nothing where it weighs a sum, and so is what that comes to."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from superopt.onnx_io import floored, is_masking, load, to_proto, understand
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

N, K = 24, 16
WEIGHS = "y = MatMul(p, v)"
MASK = "m = Where(seen, none, low)"
BOOLS = ", ".join("1" if j <= i else "0" for i in range(N) for j in range(N))


def masked(nodes: str, low: str = "-10000.0", sums: str = WEIGHS, kind: str = "float") -> str:
    """Scores of which those behind each place are masked, and what becomes of their shares."""
    given = f"bool[{N}, {N}] seen = {{{BOOLS}}}, {kind} low = {{{low}}}, {kind} none = {{0.0}}, {kind} two = {{2.0}}"
    sizes = f"{kind}[2, {N}, {N}] s, {kind}[2, {N}, {K}] v, bool[2, 1, {N}] known, {kind}[2, 1, {N}] kept"
    return f"g ({sizes}) => ({kind}[2, {N}, {K}] y) <{given}> {{ {nodes} {sums} }}"


LAST = "p = Softmax<axis = -1>(x)"
GUARDED = "p0 = Softmax<axis = -1>(x) n = IsNaN(p0) p = Where(n, none, p0)"
MASKED = {
    "added": (masked(f"{MASK} x = Add(s, m) {LAST}"), 17),
    "infinity": (masked(f"{MASK} x = Add(s, m) {LAST}", "-inf"), 17),
    "as shifted windows have it": (masked(f"{MASK} x = Add(s, m) {LAST}", "-100.0"), 17),
    "chosen": (masked(f"x = Where(known, s, low) {LAST}"), 17),
    "by numbers that are given": (masked(f"m = Mul(kept, low) x = Add(s, m) {LAST}"), 17),
    "in an opset whose axes are inputs": (masked(f"{MASK} x = Add(s, m) {LAST}"), 18),
    "along the last axis where nothing is said": (masked(f"{MASK} x = Add(s, m) p = Softmax(x)"), 17),
    "in an older opset": (masked(f"{MASK} x = Add(s, m) p = Softmax<axis = 2>(x)"), 10),
    "masked in 16 bits": (
        masked(f"{MASK} t = Cast<to = 10>(s) l = Cast<to = 10>(m) c = Add(t, l) x = Cast<to = 1>(c) {LAST}"),
        17,
    ),
    "divided": (masked(f"{MASK} d = Div(s, two) x = Add(d, m) {LAST}"), 17),
    "guarded": (masked(f"{MASK} x = Add(s, m) {GUARDED}"), 17),
    "guarded against infinity in an older opset": (
        masked(f"x = Where(known, s, low) {GUARDED}".replace("axis = -1", "axis = 2"), "-inf"),
        10,
    ),
    "guarded against infinity": (masked(f"x = Where(known, s, low) {GUARDED}", "-inf"), 17),
}
STAYS = {
    "not masked": masked(LAST.replace("(x)", "(s)")),
    "masked by little": masked(f"{MASK} x = Add(s, m) {LAST}", "-50.0"),
    "along another axis": masked(f"{MASK} x = Add(s, m) p = Softmax<axis = 1>(x)"),
    "of which the logarithm is asked": masked(f"{MASK} x = Add(s, m) {LAST} q = Log(p)", sums="y = MatMul(q, v)"),
    "of which a quotient is asked": masked(f"{MASK} x = Add(s, m) {LAST} q = Div(two, p)", sums="y = MatMul(q, v)"),
    "of which it is asked whether there are any": masked(
        f"{MASK} x = Add(s, m) {LAST} b = Cast<to = 9>(p) q = Cast<to = 1>(b)", sums="y = MatMul(q, v)"
    ),
    "of 64 bits": masked(f"{MASK} x = Add(s, m) {LAST}", kind="double"),
}


def feeds(given: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Scores and values, and what is known and masked of each row: never all."""
    rng, read = np.random.default_rng(0), {i.name for i in given.graph.input}
    some = rng.random((2, 1, N)) < 0.5
    some[..., 0] = True
    drawn = {"s": 4 * rng.standard_normal((2, N, N)), "v": rng.standard_normal((2, N, K)), "kept": ~some}
    numbers = {name: value.astype(np.float32) for name, value in drawn.items()}
    return {name: value for name, value in {**numbers, "known": some}.items() if name in read}


@pytest.mark.parametrize(("text", "opset"), MASKED.values(), ids=MASKED)
def test_what_is_masked_has_a_floor(text: str, opset: int) -> None:
    given = model(text, opset)
    found = floored(understand(load(given)), True)
    assert found is not None
    made = to_proto(found)
    onnx.checker.check_model(made, full_check=True)
    assert (made.graph.input, made.graph.output) == (given.graph.input, given.graph.output)
    assert "Max" in [n.op_type for n in made.graph.node]
    for before, after in zip(run(given, feeds(given)), run(made, feeds(given)), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_others_stay(text: str) -> None:
    program = understand(load(model(text)))
    assert not is_masking(program, True)
    assert floored(program, True) is None


def test_shares_that_are_given_stay() -> None:
    given = model(masked(f"{MASK} x = Add(s, m) {LAST}").replace("y)", f"y, float[2, {N}, {N}] p)"))
    assert not is_masking(understand(load(given)), True)


def test_a_row_that_is_masked_as_a_whole_has_equal_shares_still() -> None:
    given = model(masked(f"x = Where(known, s, low) {LAST}"))
    found = floored(understand(load(given)), True)
    assert found is not None
    fed = {**feeds(given), "known": np.zeros((2, 1, N), bool)}
    np.testing.assert_allclose(run(to_proto(found), fed)[0], run(given, fed)[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("low", "guards"), [("-inf", True), ("-10000.0", False)])
def test_a_guard_looks_at_rows_and_only_where_these_may_be_infinite(low: str, guards: bool) -> None:
    given = model(masked(f"x = Where(known, s, low) {GUARDED}", low))
    found = floored(understand(load(given)), True)
    assert found is not None
    made = [node.op_type for node in found.graph]
    assert "IsNaN" not in made
    assert ("Greater" in made) is guards
    fed = {**feeds(given), "known": np.zeros((2, 1, N), bool)}
    np.testing.assert_allclose(run(to_proto(found), fed)[0], run(given, fed)[0], rtol=1e-6, atol=1e-6)


def test_a_guard_stays_where_the_lowest_number_is_added_twice() -> None:
    low = str(np.finfo(np.float32).min)
    given = model(masked(f"m = Where(known, none, low) t = Add(s, m) x = Add(t, m) {GUARDED}", low))
    found = floored(understand(load(given)), True)
    assert found is not None
    fed = {**feeds(given), "known": np.zeros((2, 1, N), bool)}
    np.testing.assert_allclose(run(to_proto(found), fed)[0], run(given, fed)[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("low", ["-10000000000.0", str(np.finfo(np.float32).min)])
@pytest.mark.parametrize("last", [LAST, GUARDED])
def test_rows_that_are_masked_as_a_whole_keep_what_is_masked_twice_below(low: str, last: str) -> None:
    given = model(masked(f"{MASK} t = Where(known, s, low) x = Add(t, m) {last}", low))
    found = floored(understand(load(given)), True)
    assert found is not None
    fed = {**feeds(given), "known": np.zeros((2, 1, N), bool)}
    np.testing.assert_allclose(run(to_proto(found), fed)[0], run(given, fed)[0], rtol=1e-6, atol=1e-6)


def test_what_a_softmax_is_of_need_not_be_known() -> None:
    given = model(masked(f"t = Relu(s) {MASK} x = Add(t, m) {LAST}"))
    given.graph.node[0].domain = "another"
    given.opset_import.add(domain="another", version=1)
    given.graph.value_info.append(onnx.helper.make_tensor_value_info("p", onnx.TensorProto.FLOAT, [2, N, N]))
    assert floored(understand(load(given)), True) is not None


def test_a_guard_stays_where_its_shares_are_asked_for_more() -> None:
    given = model(masked(f"x = Where(known, s, low) {GUARDED} q = Mul(p0, p)", "-inf", "y = MatMul(q, v)"))
    found = floored(understand(load(given)), True)
    assert found is not None
    assert "IsNaN" in [node.op_type for node in found.graph]


AHEAD = """shape = Shape(s) size = Gather(shape, last) places = Range(zero, size, one) column = Unsqueeze(places, last)
    causal = LessOrEqual(places, column)"""
PATTERNS = {
    "a constant": (f"{MASK} x = Add(s, m)", True),
    "a constant that chooses": ("x = Where(seen, s, low)", True),
    "a constant beside what is given": ("both = And(seen, known) x = Where(both, s, low)", True),
    "of sizes": (f"{AHEAD} x = Where(causal, s, low)", True),
    "of sizes beside what is given": (f"{AHEAD} both = And(causal, known) x = Where(both, s, low)", True),
    "what is given alone": ("x = Where(known, s, low)", False),
    "numbers that are given": ("m = Mul(kept, low) x = Add(s, m)", False),
    "a bias beside what is given": ("b = Add(s, v0) x = Where(known, b, low)", False),
}


@pytest.mark.parametrize(("nodes", "is_fixed"), PATTERNS.values(), ids=PATTERNS)
def test_where_inputs_are_not_known_patterns_are(nodes: str, is_fixed: bool) -> None:
    held = f"int64[1] last = {{1}}, int64 zero = {{0}}, int64 one = {{1}}, float[{N}, {N}] v0 = {{{BOOLS}}}, "
    text = masked(f"{nodes} {LAST}").replace("<bool", f"<{held}bool").replace(f"{N}, {N}] s,", "n, n] s,")
    program = understand(load(model(text)))
    assert is_masking(program, True)
    assert is_masking(program, False) is is_fixed
