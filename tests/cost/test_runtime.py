"""Loading, feeding and timing models."""

from pathlib import Path

import numpy as np
import pytest
from onnx import parser

from superopt.cost import runtimes
from superopt.cost.inputs import Draw
from superopt.cost.ort import OnnxRuntime
from superopt.cost.runtime import Runtime
from superopt.cost.runtimes import RUNTIMES, runtime_named
from superopt.cost.timing import device, summary
from superopt.errors import RuntimeFailed, UsageError
from superopt.memory import give_back, resident
from tests.usable import where_usable

RUNTIME = OnnxRuntime()
each_runtime = pytest.mark.parametrize("runtime", where_usable(), indirect=True)


@pytest.fixture
def runtime(request: pytest.FixtureRequest) -> Runtime:
    return runtime_named(request.param, 1)


def model(text: str) -> bytes:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}').SerializeToString()


TYPES = "g (float[2,n] f, double[n] d, float16[3] h, int64[4] i, int32[2] j, bool[5] b, uint8[6] u) => (float[2,n] y) "
EVERY_TYPE = model(TYPES + "{ y = Relu(f) }")


@pytest.mark.parametrize("name", where_usable())
def test_key_names_runtime_version_device_and_threads(name: str) -> None:
    key = runtime_named(name, 2).key
    on_gpu = name in ("onnxruntime-cuda", "onnxruntime-tensorrt")
    assert key.runtime == (name if on_gpu else f"{name}-cpu")
    assert key.version.split(".")[0].isdigit()
    assert (key.device != device()) == on_gpu
    assert key.device
    assert key.threads == 2
    assert key != runtime_named(name, 1).key


def test_a_runtime_that_is_not_installed_is_refused_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtimes, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"runtime openvino is not installed.*pip install 'superopt\[openvino\]'"):
        runtime_named("openvino", 1)


def test_a_runtime_that_nobody_knows_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=f"runtime is {' or '.join(RUNTIMES)}; got tensorflow"):
        runtime_named("tensorflow", 1)


@each_runtime
def test_every_runtime_computes_what_the_standard_does(runtime: Runtime) -> None:
    text = "g (float[n,3] x, float[3,2] w) => (float[n,2] y, float[n,2] z) { y = MatMul(x, w) z = Tanh(y) }"
    session = runtime.session(model(text))
    feeds = runtime.feeds(session, 0, Draw(sizes={"n": 5}))
    expected = runtime.standard.run(runtime.standard.session(model(text), optimize=False), feeds)
    found = runtime.run(session, feeds)
    assert [f.shape for f in found] == [(5, 2), (5, 2)]
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert runtime.inputs(session) == runtime.standard.inputs(runtime.standard.session(model(text)))


@each_runtime
def test_random_inputs_have_the_types_and_shapes_that_the_model_asks_for(runtime: Runtime) -> None:
    session = runtime.session(EVERY_TYPE)
    feeds = runtime.feeds(session, 0, Draw(size=7))
    assert {n: (v.dtype.name, v.shape) for n, v in feeds.items()} == {
        "f": ("float32", (2, 7)),
        "d": ("float64", (7,)),
        "h": ("float16", (3,)),
        "i": ("int64", (4,)),
        "j": ("int32", (2,)),
        "b": ("bool", (5,)),
        "u": ("uint8", (6,)),
    }
    assert runtime.run(session, feeds)[0].shape == (2, 7)
    assert all(set(np.unique(feeds[n])) <= {0, 1} for n in "ijbu")


def test_random_inputs_depend_on_the_seed_alone() -> None:
    session = RUNTIME.session(EVERY_TYPE)
    first, again, other = (RUNTIME.feeds(session, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(first[n], again[n]) for n in first)
    assert not np.array_equal(first["f"], other["f"])


def test_scale_offset_and_named_sizes_of_random_inputs_are_arguments() -> None:
    session = RUNTIME.session(EVERY_TYPE)
    uniform = RUNTIME.feeds(session, 0, Draw(255.0, uniform=True, sizes={"n": 500}))["f"]
    assert uniform.shape == (2, 500)
    assert 0 <= uniform.min() < 10 < 245 < uniform.max() <= 255
    normal = RUNTIME.feeds(session, 0, Draw(0.1, offset=1.0, sizes={"n": 500}))["f"]
    assert normal.mean() == pytest.approx(1.0, abs=0.02)
    assert normal.std() == pytest.approx(0.1, abs=0.02)


def test_inputs_without_random_values_are_a_named_error() -> None:
    session = RUNTIME.session(model("g (string[2] s) => (string[2] y) { y = Identity(s) }"))
    with pytest.raises(RuntimeFailed, match='input "s" is a tensor'):
        RUNTIME.feeds(session, 0)


@each_runtime
def test_optimizations_of_the_runtime_can_be_left_out(runtime: Runtime) -> None:
    text = "g (float[4] x) => (float[4] y) { a = Identity(x) y = Relu(a) }"
    feeds = {"x": np.array([-1, 0, 1, 2], np.float32)}
    for optimize in (False, True):
        (y,) = runtime.run(runtime.session(model(text), optimize), feeds)
        assert y.tolist() == [0, 0, 1, 2]


@each_runtime
@pytest.mark.parametrize("source", [b"no model", Path("/nowhere/model.onnx")])
def test_a_model_that_does_not_load_is_a_named_error_on_one_line(runtime: Runtime, source: bytes | Path) -> None:
    with pytest.raises(RuntimeFailed, match="cannot load") as caught:
        runtime.session(source)
    assert "\n" not in str(caught.value)


def test_a_model_that_does_not_run_is_a_named_error_and_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """OpenVINO takes sizes that do not fit."""
    session = RUNTIME.session(model("g (float[n] x, float[m] z) => (float[k] y) { y = Add(x, z) }"))
    feeds = {"x": np.ones(2, np.float32), "z": np.ones(3, np.float32)}
    for action in (RUNTIME.run, RUNTIME.time):
        with pytest.raises(RuntimeFailed, match="cannot run"):
            action(session, feeds)
    assert capfd.readouterr() == ("", "")


def test_an_output_that_is_declared_of_another_rank_is_timed_all_the_same() -> None:
    """As ddddocr's is: onnxruntime gives it once, and refuses to put a second into its memory."""
    session = RUNTIME.session(model("g (float[2,3] x, int64[n] s) => (float[a,b] y) { y = Reshape(x, s) }"))
    feeds = {"x": np.ones((2, 3), np.float32), "s": np.array([1, 2, 3])}
    assert RUNTIME.run(session, feeds)[0].shape == (1, 2, 3)
    assert RUNTIME.time(session, feeds).runs >= 5


@each_runtime
def test_a_missing_input_is_a_named_error(runtime: Runtime) -> None:
    with pytest.raises(RuntimeFailed, match="x"):
        runtime.run(runtime.session(model("g (float[4] x) => (float[4] y) { y = Relu(x) }")), {})


@each_runtime
def test_unused_weights_print_nothing(runtime: Runtime, capfd: pytest.CaptureFixture[str]) -> None:
    runtime.session(model("g (float[4] x) => (float[4] y) <float[1] unused = {1.0}> { y = Relu(x) }"))
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(not resident(), reason="the system does not tell what a process has in memory")
def test_a_first_run_gives_back_what_later_ones_do_not_need() -> None:
    """A small value, since the first of its arena onnxruntime keeps, then two of 64 MB."""
    text = "g (float[4096,1] x, float[1,4096] z) => (float[1,1] y)"
    large = model(text + "{ a = Sin(x) b = Add(a, z) c = Transpose<perm=[1,0]>(b) y = ReduceMax(c) }")
    feeds = {"x": np.zeros((4096, 1), np.float32), "z": np.zeros((1, 4096), np.float32)}
    grown = []
    for way in ("run", "run_first"):
        give_back()
        bound, before = RUNTIME.bound(RUNTIME.session(large), feeds), resident()
        getattr(bound, way)()
        grown.append(resident() - before)
        del bound
    kept, left = grown
    assert kept >= 2**26 > 8 * left


@each_runtime
def test_a_short_model_is_run_at_least_five_times(runtime: Runtime) -> None:
    session = runtime.session(model("g (float[4] x) => (float[4] y) { y = Relu(x) }"))
    timing = runtime.time(session, runtime.feeds(session, 0))
    assert timing.runs >= 5
    assert timing.seconds > 0
    assert timing.spread >= 0


@each_runtime
def test_a_slow_model_is_run_three_times_and_no_more(runtime: Runtime) -> None:
    session = runtime.session(model("g (float[300,300] x) => (float[300,300] y) { a = MatMul(x, x) y = MatMul(a, x) }"))
    assert runtime.time(session, runtime.feeds(session, 0), budget_s=0.0).runs == 3


@pytest.mark.parametrize("name", where_usable())
def test_a_run_during_which_the_clock_stands_still_takes_some_time_all_the_same(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times are divided by each other."""
    runtime = runtime_named(name, 1)
    monkeypatch.setattr(type(runtime), "clock", property(lambda _: lambda: 7.0))
    session = runtime.session(EVERY_TYPE)
    assert 0.0 < runtime.bound(session, runtime.feeds(session, seed=0)).run() < 1e-6


def test_summary_is_median_and_interquartile_range() -> None:
    found = summary([5.0, 1.0, 2.0, 3.0, 4.0])
    assert (found.seconds, found.spread, found.runs) == (3.0, 2.0, 5)
