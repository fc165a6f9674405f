"""Sparse weights are read as the dense ones that runtimes make of them; what is no sparse tensor is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import SparseTensorProto, TensorProto, helper, numpy_helper

from superopt.errors import InvalidModel
from superopt.onnx_io import load, save, understand
from superopt.onnx_io import sparse as of_sparse
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

DENSE = np.float32([[0, 1.5, 0, 0], [0, 0, -2, 0]])
PLACES: dict[str, Any] = {"counted through": [1, 6], "a row for each": [[0, 1], [1, 2]]}
FEED = {"x": np.ones((2, 4), np.float32)}


def sparse(places: Any, of: Any = (1.5, -2), dims: tuple[int, ...] = (2, 4), name: str = "w") -> SparseTensorProto:
    values = of if isinstance(of, TensorProto) else numpy_helper.from_array(np.float32(of), name)
    return SparseTensorProto(values=values, indices=numpy_helper.from_array(np.array(places, np.int64), "p"), dims=dims)


def holding(weight: SparseTensorProto, where: str = "initializer") -> onnx.ModelProto:
    """A model that adds a sparse weight to its input: an initializer, one of a branch, or what a Constant gives."""
    if where == "branch":
        source = model("""g (float[2, 4] x) => (float[2, 4] y) <bool c = {1}> { y = If(c) <
          then_branch = then () => (float[2, 4] t) { t = Add(x, w) },
          else_branch = other () => (float[2, 4] e) { e = Neg(x) }> }""")
        source.graph.node[0].attribute[0].g.sparse_initializer.append(weight)
        return source
    source = model("g (float[2, 4] x) => (float[2, 4] y) { y = Add(x, w) }")
    if where == "constant":
        source.graph.node.insert(0, helper.make_node("Constant", [], ["w"], sparse_value=weight))
    else:
        source.graph.sparse_initializer.append(weight)
    return source


@pytest.mark.parametrize("where", ["initializer", "branch", "constant"])
@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
def test_a_sparse_weight_is_a_dense_one_that_runs_the_same(places: Any, where: str, tmp_path: Path) -> None:
    source = holding(sparse(places), where)
    before = source.SerializeToString()
    program = understand(load(source))
    assert program.summary.opaque == {}
    (weight,) = (program.data(name) for step in program.steps for name in step.inputs if name in program.constants)
    np.testing.assert_array_equal(weight, DENSE, strict=True)
    save(load(source), tmp_path / "m.onnx")
    (tmp_path / "n.onnx").write_bytes(before)
    save(load(tmp_path / "n.onnx"), tmp_path / "n.onnx")
    for made in (onnx.load(tmp_path / "m.onnx"), onnx.load(tmp_path / "n.onnx")):
        np.testing.assert_array_equal(run(made, FEED)[0], run(source, FEED)[0])
    assert source.SerializeToString() == before


@pytest.mark.parametrize("of", [TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT8, TensorProto.BOOL])
def test_values_keep_their_type_and_what_is_said_of_them(of: int) -> None:
    values = helper.make_tensor("w", of, [1], [1])
    values.doc_string = "of the weight"
    source = model("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    source.graph.sparse_initializer.append(sparse([2], values, (4,)))
    tensor = load(source).graph.initializers["w"].const_value
    assert tensor is not None
    assert (tensor.dtype.value, tensor.doc_string) == (of, "of the weight")
    assert [float(v) for v in tensor.numpy()] == [0, 0, 1, 0]


WRONG: dict[str, tuple[SparseTensorProto, str]] = {
    "an index past the end": (sparse([1, 8]), "outside"),
    "an index before the start": (sparse([-1, 2]), "outside"),
    "a row past the end": (sparse([[0, 1], [0, 4]]), "outside"),
    "a row before the start": (sparse([[0, -1], [0, 3]]), "outside"),
    "indices that fall": (sparse([6, 1]), "do not rise"),
    "an index twice": (sparse([1, 1]), "do not rise"),
    "fewer indices than values": (sparse([1]), r"INT64\[1\]"),
    "rows of another rank": (sparse([[0, 0, 1], [0, 1, 2]]), r"INT64\[n, 2\]"),
    "values that are no vector": (sparse([1, 6], [[1.5], [-2]]), r"sizes \[2, 1\]"),
    "a size of 0": (sparse([1, 6], dims=(0, 4)), "at least 1"),
    "no sizes": (sparse([0], [1], dims=()), "at least 1"),
    "more than fits": (sparse([1, 6], dims=(2**20, 2**20)), "bytes"),
    "strings": (sparse([1], helper.make_tensor("w", TensorProto.STRING, [1], [b"a"])), "STRING"),
    "values without data": (sparse([1], TensorProto(name="w", data_type=1, dims=[1])), "no data"),
}


@pytest.mark.parametrize(("wrong", "complaint"), WRONG.values(), ids=WRONG)
def test_what_is_no_sparse_tensor_is_refused_by_name(wrong: SparseTensorProto, complaint: str) -> None:
    for where in ("initializer", "branch"):
        with pytest.raises(InvalidModel, match=rf"sparse initializer 'w'.*{complaint}"):
            load(holding(wrong, where))
    with pytest.raises(InvalidModel, match=rf"sparse value of 'w'.*{complaint}"):
        load(holding(wrong, "constant"))


def test_data_in_a_file_are_refused() -> None:
    weight = sparse([1, 6])
    weight.values.data_location = TensorProto.EXTERNAL
    with pytest.raises(InvalidModel, match="'w' has its data in a file"):
        load(holding(weight))


def test_a_weight_that_would_be_too_large_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_sparse, "MOST_BYTES", 31)
    with pytest.raises(InvalidModel, match="'w' takes 32 bytes"):
        load(holding(sparse([1, 6])))


def test_weights_that_would_be_too_large_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_sparse, "MOST_BYTES", 63)
    source = holding(sparse([1, 6]))
    source.graph.sparse_initializer.append(sparse([0], [1.0], name="other"))
    with pytest.raises(InvalidModel, match="'other' takes 32 bytes where it is dense; 63 is the most for all of them"):
        load(source)


def test_two_weights_of_one_name_are_refused() -> None:
    source = holding(sparse([1, 6]))
    source.graph.initializer.append(numpy_helper.from_array(DENSE, "w"))
    with pytest.raises(InvalidModel, match="w"):
        load(source)
