"""Classifiers of scikit-learn as skl2onnx writes them by default: shares of classes come as maps, one for each row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.cost.ort import OnnxRuntime
from superopt.onnx_io import load, save, to_proto
from superopt.search.accepting.agreement import Agreement
from superopt.search.accepting.same import examine
from tests.models import model, weight

COLUMNS, CLASSES = 512, 3
LABELS: dict[str, dict[str, Any]] = {
    "integers": {"classlabels_int64s": [4, 5, 7]},
    "strings": {"classlabels_strings": ["cat", "dog", "owl"]},
}
by_labels = pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)


def classifier(labels: dict[str, Any], coefficients: np.ndarray | None = None) -> onnx.ModelProto:
    """A scaler and a linear classifier, whose shares a ZipMap names by their labels."""
    (names,) = labels.values()
    drawn = weight(CLASSES, COLUMNS) if coefficients is None else coefficients
    told = {"classlabels_ints" if isinstance(names[0], int) else "classlabels_strings": names}
    ml = {"domain": "ai.onnx.ml"}
    nodes = [
        helper.make_node("Scaler", ["x"], ["s"], offset=[0.5] * COLUMNS, scale=[2.0] * COLUMNS, **ml),
        helper.make_node("LinearClassifier", ["s"], ["label", "p"], coefficients=drawn.ravel().tolist(),
                         intercepts=[0.0] * CLASSES, post_transform="SOFTMAX", **told, **ml),
        helper.make_node("ZipMap", ["p"], ["shares"], **labels, **ml),
    ]  # fmt: skip
    kind = TensorProto.INT64 if isinstance(names[0], int) else TensorProto.STRING
    made = model(nodes, [("x", TensorProto.FLOAT, [64, COLUMNS])], [("label", kind, [64])])
    value = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    maps = helper.make_sequence_type_proto(helper.make_map_type_proto(kind, value))
    made.graph.output.append(helper.make_value_info("shares", maps, "by label"))
    return made


def compared(tmp_path: Path, *models: onnx.ModelProto) -> Agreement:
    paths = [tmp_path / f"{i}.onnx" for i in range(len(models))]
    for path, proto in zip(paths, models, strict=True):
        onnx.save(proto, path)
    return examine(paths[0], paths[1], OnnxRuntime())


@by_labels
def test_maps_are_declared_as_they_were(tmp_path: Path, labels: dict[str, Any]) -> None:
    given = classifier(labels)
    before = given.SerializeToString()
    loaded = load(given)
    save(loaded, tmp_path / "again.onnx")
    assert given.SerializeToString() == before
    for again in (onnx.load(tmp_path / "again.onnx"), to_proto(loaded), to_proto(load(loaded))):
        assert list(again.graph.output) == list(given.graph.output)


def test_a_declared_map_that_is_no_output_stays_declared(tmp_path: Path) -> None:
    given = classifier(LABELS["integers"])
    given.graph.value_info.append(given.graph.output.pop())
    save(load(given), tmp_path / "again.onnx")
    assert list(onnx.load(tmp_path / "again.onnx").graph.value_info) == list(given.graph.value_info)


@by_labels
def test_a_classifier_agrees_with_itself_and_with_no_other(tmp_path: Path, labels: dict[str, Any]) -> None:
    given, changed = classifier(labels), weight(CLASSES, COLUMNS)
    changed.flat[np.abs(changed).argmax()] *= 1.01
    assert compared(tmp_path, given, given).examined
    assert compared(tmp_path, given, given).agrees
    found = compared(tmp_path, given, classifier(labels, changed))
    assert not found.agrees
    assert "shares" in {o.name for o in found.outputs if not o.agrees}


def test_shares_under_other_labels_do_not_agree(tmp_path: Path) -> None:
    other = classifier(LABELS["integers"])
    other.graph.node[2].attribute[0].ints[0] = 8
    found = compared(tmp_path, classifier(LABELS["integers"]), other)
    assert [o.name for o in found.outputs if not o.agrees] == ["shares"]


@by_labels
def test_a_classifier_is_optimized_and_gives_the_same_maps(options: Options, labels: dict[str, Any]) -> None:
    given = classifier(labels)
    result = superopt.optimize(given, replace(options, rules=None))
    assert result.report.outcome == "faster"
    assert list(result.proto().graph.output) == list(given.graph.output)
    assert "Scaler" not in {n.op_type for n in result.proto().graph.node}
