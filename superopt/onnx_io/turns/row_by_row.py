"""Models that compute the rows of a batch one after the other, as far as that should pay.

Values of one row stay in the caches between the layer that makes them and the next that reads them, where those of a
whole batch have to come from memory again: compilers tile loops so (Wolf and Lam 1991). onnxruntime computes all rows
of a layer before the next layer. Weights are read in each turn instead of once: so layers whose weights are larger than
what they read and make stay as they are. Of a symbolic number of rows what is given is copied, with a row of zeros
where it has none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np
import onnx_ir as ir

from superopt.onnx_io.naming import deep_values, rename
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.opsets import highest_opset, outdated, raise_opset
from superopt.onnx_io.program import Program
from superopt.onnx_io.skeleton import clone, opset_of
from superopt.onnx_io.surgery import bury, let_go, pass_on, sort
from superopt.onnx_io.tensors import IR_TYPES
from superopt.onnx_io.turns.along_batch import KEEPS
from superopt.onnx_io.turns.batch import Batch
from superopt.onnx_io.turns.choosing import Chosen, batch_size, chosen

_SCANS, _SLICES = 9, 10
"""Since these opsets a Scan has no axis of batches, and a Slice may end where an input says."""


def row_by_row(program: Program, sizes: Mapping[str, int]) -> ir.Model | None:
    """The model with nodes that compute each row of a batch alone in the turns of a Scan, in a copy; None where there
    is no batch of several rows at these sizes, or nothing that should pay. Of a symbolic number of rows there may also
    be none; inputs that begin with it have as many. The interface stays as it is.
    """
    size = batch_size(program, sizes)
    if size is None or program.model.ir_version < 4:
        return None
    model = clone(program.model)
    opset = max(opset_of(model), _SCANS if isinstance(size, int) else _SLICES)
    if opset > highest_opset(program) or (opset > opset_of(model) and outdated(program, opset)):
        return None
    if opset > opset_of(model):
        raise_opset(model, opset)
    found = chosen(Batch(program, model.graph, size, opset, KEEPS), sizes)
    if found is None:
        return None
    _Turns(model, found).put()
    return model


class _Turns:
    """Moves nodes of a copy of a model into the turns of a Scan."""

    def __init__(self, model: ir.Model, chosen: Chosen) -> None:
        self._model, self._chosen, self._constant = model, chosen, chosen.batch.program.constants
        self._taken = {v.name or "" for v in deep_values(model.graph)}
        self._made = NewNodes("rows", self._taken, opset_of(model))
        self._within, self._nodes, self._held = dict[ir.Value, ir.Value](), list[ir.Node](), list[ir.Value]()

    def put(self) -> None:
        """Put the Scan in the place of the nodes."""
        graph, (batch, given, nodes) = self._model.graph, self._chosen
        leaving = [v for node in nodes for v in node.outputs if self._leaves(v)]
        body = self._body(leaving)
        several = None if isinstance(batch.size, int) else self._count(given[0])
        through = [self._made.over(v if several is None else self._some(v, several), "Unsqueeze", [1]) for v in given]
        results = self._made.several(
            "Scan", through, [ir.AttrGraph("body", body), ir.AttrInt64("num_scan_inputs", len(given))], len(leaving)
        )
        for old, stacked in zip(leaving, results, strict=True):
            new = self._made.over(stacked, "Squeeze", [1])
            if several is not None:
                new = self._made.node("Slice", [new, self._made.integers([0]), several, self._made.integers([0])])
            name = old.name
            pass_on(old, new)
            old.replace_all_uses_with(new, replace_graph_outputs=True)
            old.name, new.name = None, name
        first = next(iter(nodes))
        graph.insert_before(first, self._made.nodes)
        read = [v for node in nodes for v in let_go(node)]
        graph.remove(nodes)
        bury(self._model, dict.fromkeys(read))
        sort(graph)

    def _leaves(self, value: ir.Value) -> bool:
        """Whether something else reads a value than what goes into turns."""
        return value.is_graph_output() or any(node not in self._chosen.nodes for node, _ in value.uses())

    def _body(self, leaving: Collection[ir.Value]) -> ir.Graph:
        """What is computed in a turn, of a batch of one row. Weights are its own: runtimes prepare those of a graph."""
        _, given, nodes = self._chosen
        self._within.update({v: self._inner(v, is_row=True) for v in given})
        held = self._constants(nodes)
        for node in self._model.graph:
            if node in held or node in nodes:
                self._copy(node, leaving)
        inputs, outputs = ([self._within[v] for v in some] for some in (given, leaving))
        return ir.Graph(inputs, outputs, nodes=self._nodes, initializers=self._held, name="row")

    def _inner(self, value: ir.Value, *, is_row: bool, renamed: bool = True) -> ir.Value:
        """A value of a turn."""
        shape = value.shape
        if shape is not None and is_row:
            shape = ir.Shape([1, *shape[1:]])
        new = ir.Value(name=value.name, type=self._type(value), shape=shape, const_value=value.const_value)
        if renamed:
            rename(new, self._taken)
        return new

    def _type(self, value: ir.Value) -> ir.TypeProtocol | None:
        """The type of a value, as it is declared, or else as far as it is known."""
        known = self._chosen.batch.program.term(value)
        return value.type or (ir.TensorType(IR_TYPES[known.type.dtype]) if known is not None else None)

    def _constants(self, nodes: Iterable[ir.Node]) -> set[ir.Node]:
        """The nodes that compute constants for these, of constants alone."""
        found, stack = set[ir.Node](), list(nodes)
        while stack:
            read = [v for v in stack.pop().inputs if v is not None and (v.name or "") in self._constant]
            made = [node for v in read if (node := v.producer()) is not None and node not in found]
            more = [n for n in made if all(v is None or (v.name or "") in self._constant for v in n.inputs)]
            found.update(more)
            stack.extend(more)
        return found

    def _read(self, value: ir.Value | None) -> ir.Value | None:
        """What a node of a turn reads for a value: an outer one where that is no row, and not known before."""
        if value is None or value in self._within or (value.name or "") not in self._constant:
            return value and self._within.get(value, value)
        if value.producer() is None:
            self._within[value] = self._inner(value, is_row=False, renamed=self._leaves(value))
            self._held.append(self._within[value])
        else:  # of the shape of something, which in a turn is another
            data = NewNodes(value.name or "", self._taken, self._made.opset)
            self._within[value] = data.held(self._constant.data(value.name or ""))
            self._nodes += data.nodes
        return self._within[value]

    def _copy(self, node: ir.Node, leaving: Collection[ir.Value]) -> None:
        """Put a node into a turn; a Reshape is told the shape of one row."""
        is_row = node in self._chosen.nodes
        read = [self._read(v) for v in node.inputs]
        if is_row and node.op_type == "Reshape" and (shape := self._chosen.batch.row_shape(node)) is not None:
            own = NewNodes("row_shape", self._taken, self._made.opset)
            read[1] = own.integers(shape)
            self._nodes += own.nodes
        outputs = [self._inner(v, is_row=is_row, renamed=not is_row or v in leaving) for v in node.outputs]
        self._within.update(zip(node.outputs, outputs, strict=True))
        new = ir.Node(node.domain, node.op_type, read, list(node.attributes.values()), outputs=outputs, name=node.name)
        new.doc_string = node.doc_string
        new.metadata_props.update(node.metadata_props)
        self._nodes.append(new)

    def _count(self, value: ir.Value) -> ir.Value:
        """How many rows there are, as a row of one integer."""
        return self._made.node("Gather", [self._made.node("Shape", [value]), self._made.integers([0])])

    def _some(self, value: ir.Value, count: ir.Value) -> ir.Value:
        """So many rows, and one of zeros where there are none: a Scan has a turn, at least."""
        further = self._made.integers(range(1, len(self._chosen.batch.shape(value) or ())))
        rest = self._made.node("Gather", [self._made.node("Shape", [value]), further])
        is_none = self._made.node("Equal", [count, self._made.integers([0])])
        more = self._made.cast(is_none, ir.DataType.INT64)
        sizes = self._made.joined([more, rest], 0)
        type_ = self._type(value)
        assert type_ is not None
        nothing = ir.AttrTensor("value", ir.tensor(np.zeros(1, type_.dtype.numpy())))
        row = self._made.node("ConstantOfShape", [sizes], [nothing])
        return self._made.joined([value, row], 0)
