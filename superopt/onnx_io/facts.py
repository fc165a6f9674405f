"""What a table says of a model: its nodes, size, inputs, outputs and versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import onnx_ir as ir
from pydantic import BaseModel, ConfigDict

from superopt.onnx_io.checks import MISDECLARED
from superopt.onnx_io.skeleton import imported_opset


class ModelFacts(BaseModel):
    """What a model consists of. `bytes` counts its weights; inputs and outputs are given with their types, as text such
    as `float32(N, 3, 224, 224)`.

    `misdeclared` are inner values that its file declares of sizes that they do not have.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    nodes: dict[str, int]
    bytes: int
    inputs: dict[str, str]
    outputs: dict[str, str]
    opset: int | None
    ir_version: int
    misdeclared: list[str] = []

    @property
    def operators(self) -> int:
        """The number of nodes."""
        return sum(self.nodes.values())


def facts(model: ir.Model) -> ModelFacts:
    """Nodes by operator (those of subgraphs too), bytes of weights, inputs to be given, outputs, versions.

    Nodes that give constants hold weights as initializers do: some exporters write all of them so.
    """
    nodes = Counter(_operator(n) for n in model.graph.all_nodes())
    tensors = [v.const_value for g in model.graphs() for v in g.initializers.values()]
    tensors += [a.as_tensor() for n in model.graph.all_nodes() if n.op_type == "Constant" for a in _tensors(n)]
    given = [v for v in model.graph.inputs if model.ir_version >= 4 or not v.is_initializer()]
    return ModelFacts(
        nodes=dict(sorted(nodes.items())),
        bytes=sum(t.nbytes for t in tensors if t is not None and t.dtype != ir.DataType.STRING),
        inputs=_types(given),
        outputs=_types(model.graph.outputs),
        opset=imported_opset(model) or None,
        ir_version=model.ir_version,
        misdeclared=list(model.meta.get(MISDECLARED, ())),
    )


def _tensors(node: ir.Node) -> list[ir.Attr]:
    return [a for a in node.attributes.values() if a.type == ir.AttributeType.TENSOR]


def _operator(node: ir.Node) -> str:
    return node.op_type if node.domain == "" else f"{node.domain}.{node.op_type}"


def _types(values: Iterable[ir.Value]) -> dict[str, str]:
    return {v.name or "": _type(v) for v in values}


def _type(value: ir.Value) -> str:
    if value.type is None:
        return "?"
    if not isinstance(value.type, ir.TensorType):
        return str(value.type)
    dtype = value.type.dtype.name.lower()
    names = {"float": "float32", "double": "float64"}
    dims = "…" if value.shape is None else ", ".join("?" if str(d) == "None" else str(d) for d in value.shape)
    return f"{names.get(dtype, dtype)}({dims})"
