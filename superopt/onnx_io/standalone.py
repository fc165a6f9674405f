"""Graphs of terms as models of their own, to be timed or looked at: over weights of random values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import onnx
import onnx_ir as ir

from superopt.dim import symbol_name
from superopt.errors import UsageError
from superopt.onnx_io.drawn_weights import DrawnWeights, dtype_of, leaves, random_weights
from superopt.onnx_io.graph_values import graph_value
from superopt.onnx_io.importer import OLDEST_OPSET
from superopt.onnx_io.opsets import needed_opset
from superopt.onnx_io.size_writer import Sources
from superopt.onnx_io.writer import TermWriter
from superopt.operators import Declared, NotUnderstood
from superopt.term import Graph, Term, subterms


def standalone(graph: Graph, opset: int, seed: int = 0, highest: int = 0) -> onnx.ModelProto:
    """A model of just these terms, for measuring: constants are weights of random values, the same for one seed.

    Where they need it, it is of a newer opset than the one given, but not above the `highest`.
    Inputs keep the labels of their variables; `REAL` is float32. Raises `NotUnderstood` where ONNX cannot express a
    term in this opset, `UsageError` for two variables of one label.
    """
    drawn = random_weights(graph, seed)
    return ir.to_proto(_standalone(graph, opset, highest, lambda v: ir.Tensor(drawn[v], name=v.label)))


def standalone_apart(
    graph: Graph,
    opset: int,
    weights: DrawnWeights,
    moved: Mapping[str, Term] | None = None,
    highest: int = 0,
    undeclared: Mapping[str, Collection[int]] | None = None,
) -> bytes:
    """The message of such a model, over weights in files: it has to be in their folder. Those that hold the elements of
    others, `moved` from these, are drawn as they are. Of inputs the `undeclared` axes, by their labels, are of no size
    that the model tells. Raises what drawing weights does as well.
    """
    model = _standalone(graph, opset, highest, lambda v: weights.tensor(v, (moved or {}).get(v.label)))
    for value in model.graph.inputs:
        axes = (undeclared or {}).get(value.name or "", ())
        value.shape = ir.Shape([None if axis in axes else d for axis, d in enumerate(value.shape or ())])
    message: bytes = ir.to_proto(model).SerializeToString()
    _let_go(model)
    return message


def op_types(graph: Graph, opset: int) -> list[str]:
    """The operators of the nodes of `standalone`. Raises as that does."""
    drawn = random_weights(graph)
    model = _standalone(graph, opset, 0, lambda v: ir.Tensor(drawn[v], name=v.label))
    _let_go(model)
    return [node.op_type for node in model.graph]


def _let_go(model: ir.Model) -> None:
    """A model lies in reference cycles, and its weights with it until these are looked for."""
    for value in model.graph.initializers.values():
        value.const_value = None


def _standalone(graph: Graph, opset: int, highest: int, tensor: Callable[[Term], ir.TensorProtocol]) -> ir.Model:
    if opset < OLDEST_OPSET:
        raise NotUnderstood(f"opset {opset} is older than {OLDEST_OPSET}")
    opset = max(opset, min(highest, needed_opset(graph.outputs, (), opset)))
    given = leaves(graph)
    if len({v.label for v in given}) < len(given):
        raise UsageError(f"two variables of one label in {graph}")
    values = {v.label: graph_value(v.label, dtype_of(v), v.shape) for v in given}
    weights = {v.label: tensor(v) for v in given if v.constant}
    for label, values_of in weights.items():
        values[label].const_value = values_of
    domains = {t.operator.domain: 1 for t in subterms(*graph.outputs) if isinstance(t.operator, Declared)}
    writer = TermWriter(opset, values, lambda label: weights[label].numpy(), set(values), _size_sources(given), domains)
    written = writer.write([(t, dtype_of(t)) for t in graph.outputs], {})
    outputs: list[ir.Value] = []
    for term, name in zip(graph.outputs, written, strict=True):
        value = writer.values[name]
        if value.producer() is None or value in outputs:
            value = writer.values[writer.node("Identity", (name,))]
        typed = graph_value("", dtype_of(term), term.shape)
        value.type, value.shape = typed.type, typed.shape
        outputs.append(value)
    writer.declare_read()
    made = ir.Graph(
        [values[v.label] for v in given if not v.constant],
        outputs,
        nodes=writer.nodes,
        initializers=[*(values[label] for label in weights if values[label].uses()), *writer.initializers],
        opset_imports={**domains, "": opset},
        name="terms",
    )
    oldest = onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", opset)], ignore_unknown=True)
    return ir.Model(made, ir_version=max(oldest, 8), producer_name="superopt")


def _size_sources(given: Iterable[Term]) -> Sources:
    return {symbol_name(d) or "": (v.label, axis) for v in given for axis, d in enumerate(v.shape)}
