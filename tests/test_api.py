"""`superopt.optimize`: what goes in is not changed, what comes out keeps what the original promised."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

import superopt
from superopt.api import Options
from superopt.cost.child import Child, Unending
from superopt.errors import InvalidModel, NoRoom, OutOfTime, RuntimeFailed, UsageError
from superopt.search.accepting import trial
from tests.commands import files
from tests.models import Typed, assert_same, model, normalized, one_relu, weight, with_weights_beside
from tests.onnx_io.models import model as text_model
from tests.onnx_io.networks import LIGHT, run
from tests.usable import where_usable


def test_a_message_is_not_changed(options: Options) -> None:
    given = normalized()
    before = given.SerializeToString(deterministic=True)
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert given.SerializeToString(deterministic=True) == before
    assert_same(result.proto(), given)


def test_an_ir_model_is_not_changed(options: Options) -> None:
    given = ir.from_proto(normalized())
    before = ir.to_proto(given).SerializeToString(deterministic=True)
    assert superopt.optimize(given, options).report.outcome == "faster"
    assert ir.to_proto(given).SerializeToString(deterministic=True) == before


def test_a_file_is_not_changed(options: Options, tmp_path: Path) -> None:
    onnx.save(normalized(), tmp_path / "m.onnx")
    before = files(tmp_path)
    result = superopt.optimize(tmp_path / "m.onnx", options)
    assert result.report.outcome == "faster"
    assert files(tmp_path) == before


@pytest.mark.parametrize(("opset", "ir_version"), [(9, 3), (13, 7), (21, 10)])
def test_the_interface_and_the_versions_survive(opset: int, ir_version: int, options: Options) -> None:
    """In IR 3 every weight is an input too; those that remain stay so."""
    given = normalized(opset=opset, ir=ir_version)
    result = superopt.optimize(given, options)
    found = result.proto()
    onnx.checker.check_model(found, full_check=True)
    assert result.report.outcome == "faster"
    assert (found.opset_import, found.ir_version) == (given.opset_import, given.ir_version)
    weights = {i.name for m in (found, given) for i in m.graph.initializer}
    for m in (found, given):
        assert ir_version >= 4 or {i.name for i in m.graph.initializer} <= {i.name for i in m.graph.input}
    ours, theirs = ([i for i in m.graph.input if i.name not in weights] for m in (found, given))
    assert ours == theirs
    assert found.graph.output == given.graph.output
    assert (found.doc_string, found.metadata_props) == (given.doc_string, given.metadata_props)


def test_symbolic_sizes_survive_and_the_result_runs_at_several(options: Options) -> None:
    given = normalized(batch="N", size="side")
    result = superopt.optimize(given, replace(options, shapes={"image": [2, 3, 28, 28]}))
    assert result.report.outcome == "faster"
    for sizes in ((1, 3, 28, 28), (3, 3, 7, 7)):
        assert_same(result.proto(), given, sizes)


def test_opaque_nodes_stay_as_they_were(options: Options) -> None:
    opaque = helper.make_node("Shrink", ["normal"], ["between"], name="ours", lambd=0.25, doc_string="as it was")
    given = normalized(before_last=[opaque])
    result = superopt.optimize(given, options)
    assert (result.report.outcome, list(result.report.opaque)) == ("faster", ["Shrink"])
    (found,) = (n for n in result.proto().graph.node if n.op_type == "Shrink")
    assert (found.name, found.attribute, found.doc_string) == (opaque.name, opaque.attribute, opaque.doc_string)
    assert found.output == opaque.output
    assert_same(result.proto(), given)


@pytest.mark.parametrize("as_path", [True, False])
def test_a_model_with_weights_beside_it_is_saved_elsewhere(as_path: bool, options: Options, tmp_path: Path) -> None:
    source = with_weights_beside(tmp_path / "from")
    before = files(tmp_path)
    result = superopt.optimize(source if as_path else ir.load(source), options)
    assert result.report.outcome == "faster"
    assert files(tmp_path) == before
    (tmp_path / "to").mkdir()
    result.save(tmp_path / "to" / "o.onnx")
    source.rename(tmp_path / "gone.onnx")
    (tmp_path / "from" / "weights.bin").rename(tmp_path / "weights.bin")
    assert_same(tmp_path / "to" / "o.onnx", normalized())


def test_a_network_of_onnx_in_which_nothing_is_faster_comes_back(options: Options) -> None:
    (path,) = (p for p in LIGHT if "squeezenet" in p.name)
    result = superopt.optimize(path, replace(options, rules=(), definitions=False))
    assert (result.report.outcome, result.report.rewrites) == ("original", ())
    assert result.report.understood > 50
    assert result.report.measured is not None
    assert ir.to_proto(result.model).graph.node == onnx.load(path).graph.node


def test_samples_of_the_user_are_compared_too(options: Options, tmp_path: Path) -> None:
    sample = {"image": np.full((1, 3, 28, 28), 2.0, np.float32)}
    counts = []
    for inputs in ((), (sample,)):  # each with a table of its own: what is known needs fewer samples
        options = replace(options, inputs=inputs, timings=tmp_path / f"{len(inputs)}.sqlite")
        compared = superopt.optimize(normalized(), options).report.compared
        assert compared is not None
        counts.append(compared.samples)
    assert counts[1] == counts[0] + 1


@pytest.mark.parametrize(
    ("shapes", "taken"),
    [(((2, 9), (2, 9)), "x:2,9 z:2,9"), (((2, 9), (2, 1)), "x:1,128 z:1,128")],
    ids=["of one size", "of two sizes that the model calls one"],
)
def test_symbolic_sizes_are_those_of_the_users_sample(
    shapes: tuple[tuple[int, ...], ...], taken: str, options: Options
) -> None:
    ends = [(n, TensorProto.FLOAT, ["batch", "seq"]) for n in "xzy"]
    given = model([helper.make_node("Add", ["x", "z"], ["y"])], ends[:2], ends[2:])
    sample = {n: np.ones(shape, np.float32) for n, shape in zip("xz", shapes, strict=True)}
    report = superopt.optimize(given, replace(options, inputs=(sample,))).report
    assert report.measured is not None
    assert report.measured.shapes == taken
    assert bool(report.settings.assumed) == (taken != "x:2,9 z:2,9")


def test_a_model_that_runs_on_the_users_sample_alone_is_compared_and_measured_on_that(
    options: Options, tmp_path: Path
) -> None:
    """No random input is a shape that fits: that of the sample was not asked for, so it is not demanded of others."""
    given = normalized()
    given.graph.input.append(helper.make_tensor_value_info("rows", TensorProto.INT64, ["axes"]))
    given.graph.node.append(helper.make_node("Reshape", ["answer", "rows"], ["turned"]))
    given.graph.output.append(helper.make_tensor_value_info("turned", TensorProto.FLOAT, ["a", "b", "c"]))
    sample = {"image": np.ones((1, 3, 28, 28), np.float32), "rows": np.array([8, 28, 28])}
    own = replace(options, inputs=(sample,), timings=tmp_path / "t.sqlite")
    report = superopt.optimize(given, own).report
    assert report.compared is not None
    assert (report.compared.samples, report.compared.agrees) == (1, True)
    assert report.outcome == "faster"


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        ({}, "lacks input 'image'"),
        ({"image": np.zeros((1, 3, 5, 5), np.float32)}, "(1, 3, 5, 5)"),
        ({"image": np.zeros((1, 3, 28, 28))}, "float64"),
        ({"image": np.zeros((1, 3, 28, 28), np.float32), "k": np.zeros(1)}, "'k', which is no input"),
    ],
)
def test_samples_that_do_not_fit_are_refused(sample: dict[str, np.ndarray], said: str, options: Options) -> None:
    with pytest.raises(UsageError) as refused:
        superopt.optimize(normalized(), replace(options, inputs=(sample,)))
    assert said in str(refused.value)


TEXTS: Typed = ("x", TensorProto.STRING, [2])


@pytest.mark.parametrize(
    "given",
    [
        model([helper.make_node("Identity", ["x"], ["y"])], [TEXTS], [("y", TensorProto.STRING, [2])]),
        model([], [("x", TensorProto.FLOAT, [1])], [("x", TensorProto.FLOAT, [1])]),
        model([helper.make_node("Relu", ["x"], ["y"])], [("x", 1, [0, 4])], [("y", 1, [0, 4])]),
        model(
            [helper.make_node("Conv", ["x", "k"], ["c"]), helper.make_node("LRN", ["c"], ["y"], size=3)],
            [("x", TensorProto.DOUBLE, [1, 3, 8, 8])],
            [("y", TensorProto.DOUBLE, [1, 4, 6, 6])],
            {"k": weight(4, 3, 3, 3).astype(np.float64)},
        ),
        model(
            [helper.make_node("Conv", ["x", "k"], ["y"])],
            [("x", 1, ["N", 3, "H", "W"])],  # at no size that is likely the window fits
            [("y", 1, ["N", 4, "H2", "W2"])],
            {"k": weight(4, 3, 701, 1)},
        ),
    ],
    ids=["texts", "no nodes", "empty tensors", "no kernel for its type", "sizes that do not fit"],
)
def test_an_odd_model_comes_back(given: onnx.ModelProto, options: Options) -> None:
    result = superopt.optimize(given, options)
    assert result.report.outcome == "original"
    assert superopt.Report.model_validate_json(result.report.model_dump_json()) == result.report
    assert result.proto().graph.node == given.graph.node


def test_a_size_below_one_is_refused() -> None:
    with pytest.raises(UsageError, match="sizes"):
        Options(shapes={"x": [0]})


def test_what_is_no_model_is_refused(options: Options) -> None:
    with pytest.raises(InvalidModel):
        superopt.optimize(onnx.ModelProto(), options)


def test_what_is_drawn_anew_in_each_run_is_never_rewritten(options: Options) -> None:
    given = normalized()
    given.graph.node.append(helper.make_node("RandomNormalLike", ["answer"], ["noise"]))
    given.graph.output.append(helper.make_tensor_value_info("noise", TensorProto.FLOAT, [1, 8, 28, 28]))
    result = superopt.optimize(given, options)
    assert result.report.outcome == "original"
    assert "'noise' is drawn anew in each run" in result.report.reason
    given.graph.node[-1].attribute.append(helper.make_attribute("seed", 1.0))
    assert superopt.optimize(given, options).report.outcome == "faster"


def test_where_nothing_is_faster_the_report_says_why(options: Options) -> None:
    report = superopt.optimize(one_relu(), options).report
    assert (report.outcome, report.optimized, report.compared) == ("original", None, None)
    assert report.reason == "no rewrite makes a piece of it faster"


@pytest.mark.parametrize("as_message", [True, False])
def test_a_model_of_large_weights_is_optimized_and_stands_on_its_own(
    as_message: bool, options: Options, tmp_path: Path
) -> None:
    """Its weights are mapped from a working copy meanwhile, which is gone when the result is there. They are of no
    whole blocks, so that they stay those of a product.
    """
    given = normalized()
    large = np.random.default_rng(0).standard_normal((3000, 3001)).astype(np.float32)
    given.graph.initializer.append(onnx.numpy_helper.from_array(large, "large"))
    given.graph.node.append(helper.make_node("MatMul", ["more", "large"], ["less"]))
    given.graph.input.append(helper.make_tensor_value_info("more", TensorProto.FLOAT, [1, 3000]))
    given.graph.output.append(helper.make_tensor_value_info("less", TensorProto.FLOAT, [1, 3001]))
    path = tmp_path / "m.onnx"
    onnx.save(given, path)
    before = files(tmp_path)
    for rules in (options.rules, ()):
        result = superopt.optimize(
            given if as_message else path, replace(options, rules=rules, definitions=bool(rules))
        )
        (kept,) = [i for i in result.proto().graph.initializer if i.name == "large"]
        assert kept.raw_data == large.tobytes()
        assert_same(result.proto(), given)
    assert files(tmp_path) == before


@pytest.mark.parametrize("name", where_usable(["openvino", "onnxruntime-cuda", "onnxruntime-tensorrt"]))
def test_a_model_is_optimized_for_another_runtime(name: str, options: Options) -> None:
    given = normalized()
    result = superopt.optimize(given, replace(options, time=120 if "tensorrt" in name else 20, runtime=name))
    assert result.report.versions.runtime.startswith(name)
    assert result.report.compared is None or result.report.compared.agrees
    assert result.report.searched.kernels_measured > 0
    assert_same(result.proto(), given)


@pytest.mark.parametrize("name", where_usable(["openvino"]))
def test_a_model_that_another_runtime_cannot_run_is_refused_before_the_search(name: str, options: Options) -> None:
    given = normalized()
    scaled = helper.make_node("Scaler", ["answer"], ["scaled"], domain="ai.onnx.ml", offset=[0.0], scale=[2.0])
    given.graph.node.append(scaled)
    given.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    given.graph.output[0].name = "scaled"
    with pytest.raises(RuntimeFailed, match=f"runtime {name}-cpu cannot run the model: "):
        superopt.optimize(given, replace(options, runtime=name))


def test_weights_that_callers_may_replace_stay_so_and_are_compared_as_they_are(options: Options) -> None:
    given = normalized()
    scale = numpy_helper.from_array(np.full((1,), 2.0, np.float32), "scale")
    given.graph.initializer.append(scale)
    given.graph.input.append(helper.make_tensor_value_info("scale", TensorProto.FLOAT, [1]))  # since IR 4 a default
    given.graph.node[-1].output[0] = "unscaled"
    given.graph.node.append(helper.make_node("Mul", ["unscaled", "scale"], ["answer"]))
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert [i.name for i in result.proto().graph.input] == ["image", "scale"]
    image = np.random.default_rng(0).standard_normal((1, 3, 28, 28)).astype(np.float32)
    for more in ({}, {"scale": np.full((1,), -3.0, np.float32)}):
        (ours,), (theirs,) = (run(m, {"image": image, **more}) for m in (result.proto(), given))
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_an_annotation_of_an_output_stays(options: Options) -> None:
    given = normalized()
    given.graph.initializer.append(numpy_helper.from_array(np.float32(0.5), "step"))
    note = given.graph.quantization_annotation.add(tensor_name="answer")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="step")
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert list(result.proto().graph.quantization_annotation) == list(given.graph.quantization_annotation)


def test_a_model_that_never_ends_comes_back(
    options: Options, endless: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "LEAST_LONGEST_S", 2.0)
    start = time.monotonic()
    result = superopt.optimize(endless, replace(options, time=8.0))
    assert result.report.outcome == "original"
    assert "it did not end within" in result.report.reason
    assert result.report.reason.endswith("what may never end in it is Loop end")
    assert time.monotonic() - start < 60


@pytest.mark.parametrize("asked", [{"inputs": ({"x": np.ones((1, 2), np.float32)},)}, {"shapes": {"x": (3, 2)}}])
def test_a_model_that_has_not_ended_is_late_and_no_wrong_usage(
    options: Options, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> None:
    """On a sample, or at sizes asked for, as without: and what in it may never end is named."""
    call = Child.call

    def late(child: Child, limit_s: float, function: Callable[..., object], *arguments: object) -> object:
        if function.__name__ in ("run_on", "run_once"):
            raise Unending("it did not end within 5 s")
        return call(child, limit_s, function, *arguments)

    going_round = text_model(
        """g (float[n,2] x) => (float[n,2] y) <bool go = {1}, int64 n = {3}> {
          y = Loop (n, go, x) <body = b (int64 i, bool c, float[k,2] s) => (bool d, float[k,2] r)
            { d = Identity(c) r = Relu(s) }>
        }"""
    )
    monkeypatch.setattr(Child, "call", late)
    with pytest.raises(OutOfTime, match="what may never end in it is Loop y"):
        superopt.optimize(going_round, replace(options, **asked))


def test_where_a_copy_of_the_model_finds_no_room_that_is_said_as_such(
    options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise UsageError("original.onnx: cannot be written: No space left on device")

    monkeypatch.setattr("superopt.onnx_io.external.save", full)
    with pytest.raises(NoRoom, match="make room for a copy of the model, or name another folder by TMPDIR"):
        superopt.optimize(normalized(), options)
