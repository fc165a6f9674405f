"""What OpenVINO is asked, and what it is not asked again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import parser

from superopt.cost.alone import Alone
from superopt.cost.bench import Bench
from superopt.cost.ort import OnnxRuntime
from superopt.cost.runtime import Runtime
from superopt.cost.runtimes import runtime_named
from superopt.cost.table import Table
from superopt.errors import RuntimeFailed
from superopt.onnx_io import save
from tests.usable import where_usable

on_openvino = pytest.mark.parametrize("runtime", where_usable(["openvino"]), indirect=True)


@pytest.fixture
def runtime(request: pytest.FixtureRequest) -> Runtime:
    return runtime_named(request.param, 1)


def relu(size: int) -> bytes:
    text = f'<ir_version: 8, opset_import: ["": 17]> g (float[N, {size}] x) => (float[N, {size}] y) {{ y = Relu(x) }}'
    return parser.parse_model(text).SerializeToString()


@on_openvino
def test_the_interface_of_a_file_is_asked_once_and_again_where_the_file_is_another(
    runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, path, load = list[Path | bytes](), tmp_path / "m.onnx", OnnxRuntime.session
    monkeypatch.setattr(
        OnnxRuntime, "session", lambda own, model, **more: asked.append(model) or load(own, model, **more)
    )
    for size in (41, 41, 43):
        path.write_bytes(relu(size))
        (given,) = runtime.inputs(runtime.session(path))
        assert (given.name, given.shape) == ("x", ("N", size))
    assert len(asked) == 2


@on_openvino
def test_a_model_that_imports_several_opsets_is_read_as_it_is_written(runtime: Runtime, tmp_path: Path) -> None:
    given, path = ir.from_proto(onnx.load_from_string(relu(3))), tmp_path / "m.onnx"
    given.opset_imports["ai.onnx.ml"] = 3
    save(given, path)
    session = runtime.session(path)
    assert runtime.run(session, {"x": np.ones((1, 3), np.float32)})[0].shape == (1, 3)


@on_openvino
def test_a_file_that_is_not_there_is_refused(runtime: Runtime, tmp_path: Path) -> None:
    with pytest.raises(RuntimeFailed, match="OpenVINO cannot load the model"):
        runtime.session(tmp_path / "nothing.onnx")


@on_openvino
def test_a_kernel_costs_something_though_additions_that_follow_each_other_are_one(
    runtime: Runtime, tmp_path: Path
) -> None:
    with Table(tmp_path / "timings.sqlite") as table:
        call_s, node_s = Alone(Bench(runtime, table, 17), 0)._overhead()
    assert 0.01 * call_s < node_s < call_s
