"""Small models with seeded weights, as a command's user has them; and how their outputs are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tests.onnx_io.networks import run

Weights = Mapping[str, NDArray[Any]]
Typed = tuple[str, int, Sequence[int | str]]


def weight(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    """Normal numbers that keep the scale of what passes through."""
    return (np.random.default_rng(seed).standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[Typed],
    outputs: Sequence[Typed],
    weights: Weights | None = None,
    opset: int = 17,
    ir: int = 8,
) -> onnx.ModelProto:
    """A model with a doc string, metadata, and types given as (name, element type, dimensions)."""
    given = [helper.make_tensor_value_info(*i) for i in inputs]
    if ir < 4:  # there, each initializer is an input too
        kinds = [(n, helper.np_dtype_to_tensor_dtype(w.dtype), w.shape) for n, w in (weights or {}).items()]
        given += [helper.make_tensor_value_info(*k) for k in kinds]
    graph = helper.make_graph(
        nodes,
        "graph",
        given,
        [helper.make_tensor_value_info(*o) for o in outputs],
        [numpy_helper.from_array(w, n) for n, w in (weights or {}).items()],
    )
    domains = sorted({n.domain for n in nodes} - {""})
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    made = helper.make_model(graph, opset_imports=imports, ir_version=ir, doc_string="what it is for")
    helper.set_model_props(made, {"owner": "someone"})
    return made


def normalized(
    batch: int | str = 1, opset: int = 17, ir: int = 8, size: int | str = 28, before_last: Sequence[NodeProto] = ()
) -> onnx.ModelProto:
    """Convolution, relu, LRN and convolution: unfolding the LRN makes it several times faster."""
    weights = {"k": weight(64, 3, 3, 3), "b": weight(64), "last": weight(8, 64, 1, 1, seed=1)}
    nodes = [
        helper.make_node("Conv", ["image", "k", "b"], ["c"], name="first", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="bent"),
        helper.make_node("LRN", ["r"], ["normal"], size=5, alpha=0.1, beta=0.75, bias=1.0),
        *before_last,
        helper.make_node("Conv", ["normal" if not before_last else "between", "last"], ["answer"]),
    ]
    ends = [("image", TensorProto.FLOAT, [batch, 3, size, size]), ("answer", TensorProto.FLOAT, [batch, 8, size, size])]
    return model(nodes, ends[:1], ends[1:], weights, opset, ir)


def detector() -> onnx.ModelProto:
    """The normalized answer as boxes, of which those are found whose score is high: none, in random numbers."""
    given = normalized()
    nodes = [
        *given.graph.node,
        helper.make_node("Reshape", ["answer", "four"], ["boxes"]),
        helper.make_node("ReduceMax", ["boxes"], ["highest"], axes=[2], keepdims=0),
        helper.make_node("Unsqueeze", ["highest", "one"], ["scores"]),
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "bound"], ["found"]),
    ]
    weights = {w.name: numpy_helper.to_array(w) for w in given.graph.initializer}
    weights |= {"four": np.int64([1, -1, 4]), "one": np.int64([1]), "most": np.int64([10])}
    weights |= {"overlap": np.float32([0.5]), "bound": np.float32([1e30])}
    ends = [("image", TensorProto.FLOAT, [1, 3, 28, 28]), ("found", TensorProto.INT64, ["n", 3])]
    return model(nodes, ends[:1], ends[1:], weights)


def untrained() -> onnx.ModelProto:
    """Normalized twice, with what nobody declared between, and a head of zeros behind it, which nobody trained."""
    given = normalized(
        before_last=[
            helper.make_node("Asinh", ["normal"], ["apart"]),
            helper.make_node("LRN", ["apart"], ["between"], size=5, alpha=0.1, beta=0.75, bias=1.0),
        ]
    )
    (last,) = (w for w in given.graph.initializer if w.name == "last")
    last.CopyFrom(numpy_helper.from_array(np.zeros_like(numpy_helper.to_array(last)), "last"))
    return given


def confident() -> onnx.ModelProto:
    """The normalized answer, by what nobody declared, as shares of classes: one has all, whatever the image is."""
    given = normalized()
    given.graph.node.extend([
        helper.make_node("Asinh", ["answer"], ["apart"]),
        helper.make_node("ReduceMean", ["apart"], ["mean"], axes=[2, 3], keepdims=0),
        helper.make_node("Add", ["mean", "towards"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["shares"]),
    ])  # fmt: skip
    towards = np.array([0, 0, 0, 1e6, 0, 0, 0, 0], np.float32)
    given.graph.initializer.append(numpy_helper.from_array(towards, "towards"))
    given.graph.output[0].CopyFrom(helper.make_tensor_value_info("shares", TensorProto.FLOAT, [1, 8]))
    return given


def labelled(apart: bool = False, inner: bool = False) -> onnx.ModelProto:
    """Scores by the normalized answer, and a label that is the same whatever the image is; or that is of an answer
    normalized `apart`, which nothing else reads; or both are made of `inner` logits, which are no output.
    """
    given = normalized()
    weights = {"towards": np.array([0, 0, 0, 1e6, 0, 0, 0, 0], np.float32)}
    given.graph.node.append(helper.make_node("ReduceMean", ["answer"], ["scores"], axes=[2, 3], keepdims=0))
    if apart:
        weights["final"] = weight(8, 64, 1, 1, seed=2)
        given.graph.node.extend([
            helper.make_node("LRN", ["c"], ["other"], size=5, alpha=0.2, beta=0.75, bias=1.0),
            helper.make_node("Conv", ["other", "final"], ["second"]),
            helper.make_node("ReduceMean", ["second"], ["means"], axes=[2, 3], keepdims=0),
        ])  # fmt: skip
    given.graph.node.extend([
        helper.make_node("Add", ["means" if apart else "scores", "towards"], ["bent"]),
        helper.make_node("ArgMax", ["bent"], ["label"], axis=1, keepdims=0),
    ])  # fmt: skip
    given.graph.initializer.extend(numpy_helper.from_array(w, n) for n, w in weights.items())
    shown = "shares" if inner else "scores"
    if inner:
        given.graph.node.append(helper.make_node("Tanh", ["scores"], [shown]))
    given.graph.output[0].CopyFrom(helper.make_tensor_value_info(shown, TensorProto.FLOAT, [1, 8]))
    given.graph.output.append(helper.make_tensor_value_info("label", TensorProto.INT64, [1]))
    return given


def one_relu() -> onnx.ModelProto:
    """Nothing makes it faster."""
    ends = [(n, TensorProto.FLOAT, ["N", 3]) for n in "xy"]
    return model([helper.make_node("Relu", ["x"], ["y"])], ends[:1], ends[1:])


def silent() -> onnx.ModelProto:
    """Its LRN can be unfolded, but whatever goes in, zero comes out."""
    nodes = [helper.make_node("LRN", ["x"], ["l"], size=5), helper.make_node("Mul", ["l", "zero"], ["y"])]
    ends = [(n, TensorProto.FLOAT, [1, 64, 28, 28]) for n in "xy"]
    return model(nodes, ends[:1], ends[1:], {"zero": np.zeros(1, np.float32)})


def with_weights_beside(folder: Path) -> Path:
    """The model with the LRN in a folder of its own, its weights in a file beside it."""
    folder.mkdir()
    onnx.save(normalized(), folder / "m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    return folder / "m.onnx"


def assert_same(found: Path | onnx.ModelProto, original: Path | onnx.ModelProto, sizes: Sequence[int] = ()) -> None:
    """That onnx checks the found model, its interface is the original's, and it computes the same on the runtime."""
    if isinstance(found, Path):
        onnx.checker.check_model(found, full_check=True)
    ours, theirs = (onnx.load(m) if isinstance(m, Path) else m for m in (found, original))
    for of in ("input", "output"):
        assert list(getattr(ours.graph, of)) == list(getattr(theirs.graph, of))
    assert ours.metadata_props == theirs.metadata_props
    assert ours.doc_string == theirs.doc_string
    feed = None
    if sizes:
        rng = np.random.default_rng(0)
        feed = {theirs.graph.input[0].name: rng.standard_normal(tuple(sizes)).astype(np.float32)}
    for a, e in zip(run(ours, feed), run(theirs, feed), strict=True):
        assert np.abs(e).max() > 0
        assert np.abs(a - e).max() <= 1e-5 * np.abs(e).max()


def unsimplified(layers: int = 1, side: int = 8, relus: int = 1) -> onnx.ModelProto:
    """Convolutions whose biases are zeros cast like their input, each before a batch normalization and relus."""
    nodes, last, weights = [], "x", {"zero": np.zeros(1, np.float32)}
    for i in range(layers):
        norm = {f"{n}{i}": np.abs(weight(16, seed=i)) + 0.5 for n in ("scale", "shift", "mean", "var")}
        weights |= {f"k{i}": weight(16, 16, 1, 1, seed=i), f"sizes{i}": np.array([16]), **norm}
        nodes += [
            helper.make_node("CastLike", ["zero", last], [f"like{i}"]),
            helper.make_node("Expand", [f"like{i}", f"sizes{i}"], [f"bias{i}"]),
            helper.make_node("Conv", [last, f"k{i}", f"bias{i}"], [f"c{i}"]),
            helper.make_node("BatchNormalization", [f"c{i}", *norm], [f"n{i}"]),
            *(helper.make_node("Relu", [f"n{i}" if not r else f"r{i}_{r - 1}"], [f"r{i}_{r}"]) for r in range(relus)),
        ]
        last = f"r{i}_{relus - 1}"
    ends = [(n, TensorProto.FLOAT, [1, 16, side, side]) for n in ("x", last)]
    return model(nodes, ends[:1], ends[1:], weights, opset=20, ir=9)
