"""A model with other weights over the same nodes, to be written: copying thousands of these takes longer than that."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import onnx_ir as ir


def with_weights(model: ir.Model, weights: Sequence[ir.Value], given: Sequence[ir.Value] = ()) -> ir.Model:
    """The model with these weights in place of its own, and with inputs for those `given`, over the same nodes;
    its graph can be read, and not changed.
    """
    graph = model.graph
    own = {value.name: value for value in (*weights, *given)}
    inputs, outputs = ([own.get(value.name, value) for value in values] for values in (graph.inputs, graph.outputs))
    names = {value.name for value in inputs}
    view = ir.GraphView(
        [*inputs, *(value for value in given if value.name not in names)],
        outputs,
        nodes=graph,
        initializers=weights,
        doc_string=graph.doc_string,
        opset_imports=graph.opset_imports,
        name=graph.name,
        metadata_props=graph.metadata_props,
    )
    other = copy(model)  # with all that models of this version of the library have
    other.graph = view  # type: ignore[assignment]  # as the library's own examples have it
    return other


def holding(value: ir.Value, tensor: ir.TensorProtocol | None) -> ir.Value:
    """A value as another one, that holds this."""
    made = ir.Value(
        name=value.name,
        type=value.type,
        shape=value.shape,
        doc_string=value.doc_string,
        const_value=tensor,
        metadata_props=value.metadata_props,
    )
    made.meta.update(value.meta)
    return made
