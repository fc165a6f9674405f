"""Inputs of which rows are zeros, as padding and silence, give no number where the original gives one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser

import superopt
from superopt.api import Options
from superopt.cost.inputs import Draw
from superopt.cost.ort import OnnxRuntime
from superopt.search.accepting.fed import DRAWS, Fed
from superopt.search.accepting.same import examine
from tests.onnx_io.networks import run

RUNTIME = OnnxRuntime()

HEADS, ROWS, WIDTH = 4, 64, 16

CHOSEN = "v{n} = Where(seen, s{n}, low)"
MULTIPLIED = "t{n} = Mul(s{n}, ones) v{n} = Add(t{n}, left)"
HEAD = """q{n} = MatMul(u, w{n}) s{n} = MatMul(q{n}, ut) %s p{n} = Softmax <axis = -1> (v{n}) h{n} = MatMul(p{n}, x)"""


def attention(masked: str) -> onnx.ModelProto:
    """Attention over rows divided by their lengths; those of zeros, of which that makes no number, are masked."""
    heads = "\n".join((HEAD % masked).format(n=n) for n in range(HEADS))
    given = onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["": 17]>
g (float[{ROWS}, {WIDTH}] x) => (float[{ROWS}, {WIDTH}] y)
<float low = {{-1e9}}, float zero = {{0.0}}, float one = {{1.0}}> {{
  d = ReduceL2 <axes = [1]> (x)
  u = Div(x, d)
  ut = Transpose <perm = [1, 0]> (u)
  known = Greater(d, zero)
  column = Transpose <perm = [1, 0]> (known)
  seen = And(known, column)
  ones = Cast <to = 1> (seen)
  left = Where(seen, zero, low)
  {heads}
  y = Sum({", ".join(f"h{n}" for n in range(HEADS))})
}}""")
    rng = np.random.default_rng(0)
    for n in range(HEADS):
        w = rng.standard_normal((WIDTH, WIDTH)).astype(np.float32)
        given.graph.initializer.append(onnx.numpy_helper.from_array(w, f"w{n}"))
    return given


def written(folder: Path, name: str, masked: str) -> Path:
    onnx.save(attention(masked), folder / name)
    return folder / name


def blank() -> dict[str, np.ndarray]:
    x = np.random.default_rng(1).standard_normal((ROWS, WIDTH)).astype(np.float32)
    x[ROWS // 2 :] = 0.0
    return {"x": x}


def test_the_model_gives_numbers_for_rows_of_zeros_only_as_it_chooses() -> None:
    assert np.isfinite(run(attention(CHOSEN), blank())[0]).all()
    assert not np.isfinite(run(attention(MULTIPLIED), blank())[0]).all()


def test_half_of_the_rows_of_a_blank_sample_are_zeros() -> None:
    session = RUNTIME.session(attention(CHOSEN).SerializeToString())
    x = RUNTIME.feeds(session, 0, Draw(blank=True))["x"]
    zeros = (x == 0.0).all(1)
    assert 0.2 < zeros.mean() < 0.8
    assert (x[~zeros] != 0.0).all()


def test_what_is_no_number_where_rows_are_zeros_does_not_agree(tmp_path: Path) -> None:
    original, candidate = written(tmp_path, "a.onnx", CHOSEN), written(tmp_path, "b.onnx", MULTIPLIED)
    found = examine(original, candidate, RUNTIME)
    assert found.differs
    assert found.reason == 'output "y" is not finite where rows of the inputs are zeros, and the original is'
    assert examine(original, candidate, RUNTIME, fed=Fed(draws=[d for d in DRAWS if not d.blank])).agrees
    assert examine(original, original, RUNTIME).samples == len(DRAWS) - 1


def test_what_is_no_number_in_the_original_either_may_be_none(tmp_path: Path) -> None:
    original, candidate = written(tmp_path, "a.onnx", MULTIPLIED), written(tmp_path, "b.onnx", MULTIPLIED)
    assert examine(original, candidate, RUNTIME).agrees


def test_rows_of_zeros_are_numbers_in_what_is_optimized(options: Options) -> None:
    source = attention(CHOSEN)
    result = superopt.optimize(source, options)
    (found,), (expected,) = (run(model, blank()) for model in (result.proto(), source))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_blank_sample_tells_of_no_errors_though_another_is_refused(tmp_path: Path) -> None:
    """Rows of so many do not fit in memory."""
    text = """<ir_version: 9, opset_import: ["": 17]> g (float[rows, 4] x) => (float[rows, 4] y) { y = Tanh(x) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "a.onnx")
    draws = (Draw(size=10**13), Draw(size=3), Draw(size=3, blank=True))
    assert examine(tmp_path / "a.onnx", tmp_path / "a.onnx", RUNTIME, fed=Fed(draws=draws)).samples == 1
