"""What a turn of a loop computes of its own row, computed of all rows at once: along one more axis in front.

So JAX's `vmap` does it (Bradbury et al. 2018), for what has one of the forms of `forms.py`. What is the same in all
turns is computed only where that cannot fail: a loop without a turn would not have computed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx_ir as ir

from superopt.onnx_io.at_once.forms import FORMS, Form
from superopt.onnx_io.at_once.rows import Nodes, Row
from superopt.onnx_io.at_once.unfailing import fails_for_elements
from superopt.onnx_io.naming import rename
from superopt.onnx_io.program import Program
from superopt.onnx_io.said import held
from superopt.onnx_io.skeleton import ONNX_DOMAIN, opset_of
from superopt.onnx_io.surgery import let_go
from superopt.onnx_io.tensors import NUMPY_NAMES


class AllTurns:
    """The values of a turn, in all turns, and the nodes that compute them; names that are `taken` are not given.
    `forms` are those that are known.
    """

    def __init__(self, program: Program, model: ir.Model, taken: set[str], forms: Mapping[str, Form] = FORMS) -> None:
        self._program, self._graph, self._taken, self._forms = program, model.graph, taken, forms
        self.made = Nodes("turns", taken, opset_of(model), program.values)
        self.rows: dict[ir.Value, Row] = {}
        self._copies = set[ir.Value]()

    def row(self, value: ir.Value | None) -> Row | None:
        """What a value of a turn is outside; None where its shape is not known."""
        if value is None or value in self.rows:
            return None if value is None else self.rows[value]
        if (data := held(value)) is not None:
            return Row(value, tuple(data.shape.numpy()), None)
        known = self._program.term(value) if value.graph is self._graph else None
        return None if known is None else Row(value, known.shape, None)

    def take(self, node: ir.Node) -> bool:
        """Compute a node in all turns; False where it is none that can be, or computes the same in all and may fail."""
        if node.op_type == "Constant" and (data := held(node.outputs[0])) is not None:
            value = self.made.node("Constant", [], list(node.attributes.values()))
            self.rows[node.outputs[0]] = Row(value, tuple(data.shape.numpy()), None)
            return True
        rows = [row for v in node.inputs if (row := self.row(v)) is not None]
        form = self._forms.get(node.op_type) if node.domain in ONNX_DOMAIN else None
        if form is None or not rows or len(rows) < len(node.inputs):
            return False
        if all(row.turns is None for row in rows) and fails_for_elements(node.op_type, self._dtype(rows[0].value)):
            return False
        made = form(self.made, node, rows)
        if made is None or len(made) != len(node.outputs):
            return False
        self.rows.update(zip(node.outputs, made, strict=True))
        return True

    def _dtype(self, value: ir.Value) -> str | None:
        """The type of the elements of a value outside, as far as it is told by what that is computed of."""
        node, known = value.producer(), self._program.term(value)
        if (data := held(value)) is not None:
            return NUMPY_NAMES.get(data.dtype)
        if known is not None and value.graph is self._graph:
            return known.type.dtype
        if node is None or not node.inputs:
            return None
        if node.op_type == "Cast":
            return NUMPY_NAMES.get(ir.DataType(node.attributes["to"].as_int()))
        read = node.inputs[-1 if node.op_type == "Where" else 0]
        return None if read is None else self._dtype(read)

    def enter(self, body: ir.Graph, kept: Iterable[tuple[ir.Value, ir.Value]]) -> None:
        """Let weights of a body be known, which keeps its own, and states that are kept by what they begin with."""
        for value in body.initializers.values():
            copy = ir.Value(name=value.name, type=value.type, shape=value.shape, const_value=value.const_value)
            if copy.const_value is not None and not value.is_graph_input():
                self.rows[value] = Row(copy, tuple(copy.const_value.shape.numpy()), None)
                self._copies.add(copy)
        for given, outer in kept:
            if (row := self.row(outer)) is not None:
                self.rows[given] = row

    def placed(self, results: Iterable[ir.Value]) -> list[ir.Node]:
        """The nodes that compute these, for where they are to stand, and the model has the weights that they read."""
        made = dict.fromkeys(self.made.nodes)
        needed, stack = set[ir.Node](), [v.producer() for v in results]
        while stack:
            node = stack.pop()
            if node is not None and node in made and node not in needed:
                needed.add(node)
                stack.extend(v.producer() for v in node.inputs if v is not None)
        ordered = [node for node in made if node in needed]
        for copy in dict.fromkeys(v for node in ordered for v in node.inputs if v in self._copies):
            assert copy is not None
            rename(copy, self._taken)
            self._graph.register_initializer(copy)
        for node in made.keys() - needed:
            let_go(node)
        return ordered
