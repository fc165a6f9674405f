"""ONNX's own check of a message, and what it is wrong about or too strict in: models that every runtime takes pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx.checker import ValidationError
from onnx.shape_inference import InferenceError
from onnx_ir.serde import SerdeError

from superopt.errors import InvalidModel, one_line
from superopt.onnx_io.last_windows import with_last_windows
from superopt.onnx_io.skeleton import ONNX_DOMAIN

MISJUDGED = frozenset({"MeanVarianceNormalization", "STFT"})
"""Operators of which onnx 1.23's inference of types refuses models that are in its own tests; the rest is checked."""

_EVER = onnx.defs.onnx_opset_version() + 1

EXPERIMENTS = {
    **dict.fromkeys(("ATen", "Affine", "ConstantFill", "Crop", "DynamicSlice", "GRUUnit", "GivenTensorFill"), _EVER),
    **dict.fromkeys(("ImageScaler", "ParametricSoftplus", "Scale", "ScaledTanh"), _EVER),
    "MeanVarianceNormalization": 9,
    "ThresholdedRelu": 10,
    "LayerNormalization": 17,
    "SimplifiedLayerNormalization": _EVER,
}
"""Operators that ONNX has not in opsets before these, and runtimes have among its own: experiments of its first years,
which Caffe2 and Core ML's converter wrote, and of which its check warns on the standard output; and norms as
onnxruntime's own tools fuse them. Nobody checks their form.
"""

MISDECLARED = "declared of other sizes"
"""Where a model's `meta` names the inner values that were declared of sizes that they do not have."""

_UNKNOWN = "superopt.unknown"
"""A domain of which ONNX's check knows nothing."""

_Sizes: TypeAlias = "list[int | None]"


def check_message(proto: onnx.ModelProto, name: str) -> frozenset[str]:
    """ONNX's full check of a message without large weights; the values within it that have other sizes than declared.

    What some exporters declare of inner values contradicts the operators. Nothing depends on it, and runtimes go by
    the operators, so such declarations are taken out of the message, and the rest is checked; what branches and bodies
    of loops declare of theirs is left in, and not looked at. Of an input or output a declaration is a promise to
    others; an output may have none, as of what is reshaped to a computed shape. Raises `InvalidModel`.
    """
    with refusing(name, "fails onnx's check"):
        for info in proto.graph.input:
            if _has_no_shape(info):
                raise ValueError(f"input {info.name!r} has no shape; declare one, with names for sizes that are open")
        proto = _without_experiments(_without_unshaped(proto))
        onnx.checker.check_model(proto)
        try:
            _check_types(_without_misjudged(proto))
        except InferenceError:
            wrong = _take_out_contradictions(proto.graph, _inferred(_without_inner_shapes(proto)))
            _check_types(_without_inner_shapes(_without_misjudged(proto)))
            return wrong
    return frozenset()


def _check_types(proto: onnx.ModelProto) -> None:
    """What a full check of a message does once its structure is checked: infer its types, and compare them.

    Asked for as such, since pools that are told by functions are no structure that ONNX's check takes.
    """
    onnx.shape_inference.infer_shapes(with_last_windows(proto), check_type=True, strict_mode=True)


def _take_out_contradictions(graph: onnx.GraphProto, inferred: dict[str, _Sizes]) -> frozenset[str]:
    for info in _contradicting(graph.output, inferred):
        declared = f"output {info.name!r} is declared of sizes {_text(_sizes(info.type))}"
        raise ValueError(f"{declared}, and has {_text(inferred[info.name])}; declare these, or names for them")
    wrong = frozenset(info.name for info in _contradicting(graph.value_info, inferred))
    right = [info for info in graph.value_info if info.name not in wrong]
    del graph.value_info[:]
    graph.value_info.extend(right)
    return wrong


def _inferred(proto: onnx.ModelProto) -> dict[str, _Sizes]:
    """The sizes of a message's values by its inputs and operators alone; None is a size that these do not tell."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    del copy.graph.value_info[:]
    for info in copy.graph.output:
        info.type.tensor_type.ClearField("shape")
    found = onnx.shape_inference.infer_shapes(with_last_windows(copy))
    infos = (*found.graph.value_info, *found.graph.output)
    return {i.name: _sizes(i.type) for i in infos if i.type.tensor_type.HasField("shape")}


def _contradicting(infos: Iterable[onnx.ValueInfoProto], inferred: dict[str, _Sizes]) -> Iterator[onnx.ValueInfoProto]:
    for info in infos:
        if info.name in inferred and info.type.tensor_type.HasField("shape"):
            ours, theirs = inferred[info.name], _sizes(info.type)
            known = zip(ours, theirs, strict=False)
            if len(ours) != len(theirs) or any(a != b for a, b in known if a is not None and b is not None):
                yield info


def _sizes(of: onnx.TypeProto) -> _Sizes:
    return [d.dim_value if d.HasField("dim_value") else None for d in of.tensor_type.shape.dim]


def _text(sizes: _Sizes) -> str:
    return f"({', '.join('?' if size is None else str(size) for size in sizes)})"


def _has_no_shape(info: onnx.ValueInfoProto) -> bool:
    return info.type.HasField("tensor_type") and not info.type.tensor_type.HasField("shape")


def _without_unshaped(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The message itself, or a copy in which an output without a shape is read by a node of an unknown domain, whose
    result is the output: ONNX's check wants shapes of a model's outputs, and of nothing else.
    """
    outputs = proto.graph.output
    unshaped = {info.name: info for info in outputs if _has_no_shape(info)}
    if not unshaped:
        return proto
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    copy.opset_import.add(domain=_UNKNOWN, version=1)
    del copy.graph.output[:]
    copy.graph.output.extend(info for info in outputs if info.name not in unshaped)
    for name, info in unshaped.items():
        copy.graph.node.add(op_type=_UNKNOWN, domain=_UNKNOWN, input=[name], output=[f"{_UNKNOWN} {name}"])
        read = copy.graph.output.add(name=f"{_UNKNOWN} {name}")
        read.type.tensor_type.elem_type = info.type.tensor_type.elem_type
        read.type.tensor_type.shape.SetInParent()
        copy.graph.value_info.append(info)
    return copy


def _without_experiments(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The message itself, or a copy in which the nodes of `EXPERIMENTS` are of an unknown domain."""
    opsets = [o.version for o in proto.opset_import if o.domain in ONNX_DOMAIN]
    if not any(_is_experiment(node, opsets) for node in _nodes(proto)):
        return proto
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for importing in (copy, *copy.functions):
        importing.opset_import.add(domain=_UNKNOWN, version=1)
    for node in _nodes(copy):
        if _is_experiment(node, opsets):
            node.domain = _UNKNOWN
    return copy


def _is_experiment(node: onnx.NodeProto, opsets: Iterable[int]) -> bool:
    return node.domain in ONNX_DOMAIN and any(opset < EXPERIMENTS.get(node.op_type, 0) for opset in opsets)


def _nodes(proto: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """All nodes of a message, those of branches, bodies and functions among them."""
    for outer in (proto.graph, *proto.functions):
        yield from outer.node
        for graph in _inner(outer):
            yield from graph.node


def _without_misjudged(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The message itself, or a copy in which what nodes of `MISJUDGED` and of the unknown domain give is given as an
    input of the declared type.

    Where that is not declared the node is of an unknown domain: then inference ends there.
    """
    misjudged = [n for n in proto.graph.node if n.op_type in MISJUDGED and not n.domain]
    misjudged += [n for n in proto.graph.node if n.domain == _UNKNOWN and n.op_type in EXPERIMENTS]
    if not misjudged:
        return proto
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    copy.opset_import.add(domain=_UNKNOWN, version=1)
    declared = {v.name: v for v in (*proto.graph.value_info, *proto.graph.output)}
    for node in misjudged:
        at = next(i for i, n in enumerate(copy.graph.node) if n == node)
        if all(name in declared for name in node.output):
            copy.graph.input.extend(declared[name] for name in node.output)
            del copy.graph.node[at]
        else:
            copy.graph.node[at].domain = _UNKNOWN
    return copy


def _without_inner_shapes(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of a message in which no value of a branch or a body is declared of a shape."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for graph in _inner(copy.graph):
        for info in (*graph.value_info, *graph.output):
            if info.type.HasField("tensor_type"):
                info.type.tensor_type.ClearField("shape")
    return copy


def _inner(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.GraphProto]:
    """The graphs within one, or within a function, at any depth."""
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield inner
                yield from _inner(inner)


_COMPLAINTS = (
    *(SerdeError, ValidationError, InferenceError, DecodeError),
    *(RuntimeError, ValueError, TypeError, LookupError),
)


@contextmanager
def refusing(name: str, complaint: str) -> Iterator[None]:
    """Make whatever the libraries raise over a bad model an `InvalidModel`."""
    try:
        yield
    except _COMPLAINTS as error:
        raise InvalidModel(f"{name}: {complaint}: {one_line(_cause(error), 300)}") from None


def _cause(error: BaseException) -> BaseException:
    """Where a chain of errors began."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error
