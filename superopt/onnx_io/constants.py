"""Values that are known before the model runs: which they are, and their data, computed once and when asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx.reference
import onnx_ir as ir
import onnxruntime as ort

from superopt.arithmetic.carrier import Array
from superopt.errors import InvalidModel, UsageError
from superopt.onnx_io.tensors import Tensor
from superopt.onnx_io.traps import demand_quotient

MOST = 2**32
"""Of more numbers nothing is computed before the model runs: a fill may be of any size, and what reads it then is."""

RANDOM = frozenset(
    [
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
        "Multinomial",
        "Bernoulli",
        "Dropout",
    ]
)
"""Operators that may give another value each time; Dropout does in training."""


_LITTLE_BYTES = 2**13
"""What a computed value may take that is kept when weights are let go of. Of a DenseNet, whose batch norms take their
numbers through 242 nodes, computing these anew was a third of each evaluation in 64 bits.
"""


class Constants:
    """The constant values of a model by name."""

    def __init__(self, model: ir.Model, tensors: Mapping[str, Tensor]) -> None:
        self._model = model
        self._tensors = tensors
        self._data: dict[str, Array] = {}
        self._learned: dict[str, Array] = {}
        inputs = {v.name for v in model.graph.inputs}
        # From IR 4 on, an initializer that is an input too is a default, which a caller may override.
        fixed = [v for v in model.graph.initializers.values() if model.ir_version < 4 or v.name not in inputs]
        self._values: dict[str, ir.Value] = {v.name or "": v for v in fixed}

    def __contains__(self, name: str) -> bool:
        return name in self._values or name in self._learned

    def learn(self, name: str, data: Array) -> None:
        """Enter the value of a constant that was computed otherwise."""
        self._learned[name] = data

    def learned(self, name: str) -> Array | None:
        """The value of a constant that was computed otherwise; an empty one may be of no known length."""
        return self._learned.get(name)

    def enter(self, node: ir.Node) -> bool:
        """Whether a node's values are constant, given those of the nodes before it; they are from now on."""
        given = [v.name for v in node.inputs if v is not None]
        outputs = [v for v in node.outputs if v.name]
        if node.domain or node.op_type in RANDOM or any(a.type in _GRAPHS for a in node.attributes.values()):
            return False
        if not all((name or "") in self for name in given) or any(v.name not in self._tensors for v in outputs):
            return False
        self._values.update({v.name or "": v for v in outputs})
        return True

    def forget(self, name: str | None = None) -> None:
        """Let go of a value, or of all but small ones that were computed."""
        if name is None:
            held = list(self._data.items())  # an evaluation that was stopped may still be in its last step
            self._data = {n: a for n, a in held if a.nbytes <= _LITTLE_BYTES and self._is_computed(n)}
        else:
            self._data.pop(name, None)

    def _is_computed(self, name: str) -> bool:
        value = self._values.get(name)
        return value is not None and not value.is_initializer()

    def data(self, name: str) -> Array:
        """The value of a constant; not to be changed.

        Raises `InvalidModel` where it cannot be computed, `UsageError` for a value that is no constant.
        """
        if name in self._learned:
            return self._learned[name]
        if name not in self._values:
            raise UsageError(f"{name!r} is no constant of the model")
        if name not in self._data:
            self._data[name] = self._compute(name)
        return self._data[name]

    def _compute(self, name: str) -> Array:
        value = self._values[name]
        if value.is_initializer():
            assert value.const_value is not None, f"initializer {name} has no data"
            return np.asarray(value.const_value.numpy())
        node = value.producer()
        assert node is not None, f"{name} has no node"
        if node.op_type == "ConstantOfShape":
            return self._fill(node)
        if node.op_type == "Constant" and (given := node.attributes.get("value")) is not None:
            return np.asarray(given.as_tensor().numpy())  # windows that are written out as slices have thousands
        inputs: dict[str, Array] = {}
        for v in node.inputs:
            if v is not None and v.name:
                inputs[v.name] = self.data(v.name)
        if (many := max((a.size for a in inputs.values()), default=0)) > MOST:
            raise InvalidModel(f"node {node.name or node.op_type!r}: of {many} numbers nothing is computed ahead")
        results = run_node(node, inputs, self._model)
        # What a session gives keeps the memory of the session, and may be a view of a weight.
        results = {n: a.copy() if a.nbytes <= _LITTLE_BYTES else a for n, a in results.items()}
        self._data.update(results)
        return results[name]

    def _fill(self, node: ir.Node) -> Array:
        """A number repeated over a shape: a view, so that a fill of any size needs no memory."""
        source, given = node.inputs[0], node.attributes.get("value")
        assert source is not None, "ConstantOfShape has one input"
        number = np.zeros(1, np.float32) if given is None else given.as_tensor().numpy()
        return np.broadcast_to(number.reshape(()), tuple(int(d) for d in self.data(source.name or "")))


_TEXT = "SUO"
"""The kinds of arrays that hold strings."""

_GRAPHS = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)


def run_node(node: ir.Node, inputs: Mapping[str, Array], model: ir.Model) -> dict[str, Array]:
    """The outputs of one node by name. Raises `InvalidModel` where it cannot be run."""
    demand_quotient(node, inputs)
    inputs = {name: _texts(a) if a.dtype.kind in _TEXT else a for name, a in inputs.items()}
    proto = onnx.helper.make_model(
        onnx.helper.make_graph(
            [ir.serde.serialize_node(node)],
            "node",
            [onnx.helper.make_tensor_value_info(n, _elem_type(a), a.shape) for n, a in inputs.items()],
            [onnx.ValueInfoProto(name=v.name or "") for v in node.outputs if v.name],
        ),
        opset_imports=[onnx.helper.make_opsetid(d, v) for d, v in model.opset_imports.items()],
        ir_version=max(model.ir_version, 4),
    )
    names = [v.name for v in node.outputs if v.name]
    try:
        return dict(zip(names, _run(proto, inputs), strict=True))
    except Exception as error:  # noqa: BLE001 - neither runtime says what it may raise
        raise InvalidModel(f"node {node.name or node.op_type!r}: cannot be computed: {error}") from None


def _run(proto: onnx.ModelProto, inputs: Mapping[str, Array]) -> list[Any]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return list(session.run(None, dict(inputs)))
    except Exception:  # noqa: BLE001 - onnxruntime has no kernel for this type or version: ONNX's own evaluation has
        return list(onnx.reference.ReferenceEvaluator(proto).run(None, dict(inputs)))


def _elem_type(array: Array) -> int:
    if array.dtype.kind in _TEXT:
        return int(onnx.TensorProto.STRING)
    return int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))


def _texts(array: Array) -> Array:
    """Strings as runtimes take them, of bytes or characters."""
    flat = [str(t, "utf-8", "surrogateescape") if isinstance(t, bytes) else str(t) for t in array.ravel().tolist()]
    return np.array(flat, dtype=object).reshape(array.shape)
