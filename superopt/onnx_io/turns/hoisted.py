"""Models whose loops compute before the first turn what is the same in all.

Compilers call that loop-invariant code motion (Allen and Cocke 1971); runtimes of ONNX leave bodies as they are, and
exporters write what a script says: keys of an attention over what an encoder gave, for each token anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

import onnx_ir as ir

from superopt.errors import InvalidModel
from superopt.onnx_io.at_once.unfailing import failing, may_be_unfailing
from superopt.onnx_io.bodies import bodies, kept_states
from superopt.onnx_io.choices import BODY
from superopt.onnx_io.files import load
from superopt.onnx_io.importer import understand
from superopt.onnx_io.naming import rename, values
from superopt.onnx_io.operator_kinds import VIEWS
from superopt.onnx_io.program import Program
from superopt.onnx_io.skeleton import clone

_FREE = frozenset({*VIEWS, "Constant", "Identity", "Shape"})
"""What takes hardly any time: for these alone nothing is changed."""

_Place = tuple[int, int]
"""The position of a loop in the main graph, and that of a node in its body."""


def hoisted(program: Program) -> ir.Model | None:
    """The model with all that turns of its loops compute of outer values alone, and never fails, computed before them,
    in a copy; None where there is no such thing. States that turns pass on are outer values. The interface stays as it
    is.
    """
    staying = set[_Place]()
    while program.model.ir_version >= 4:
        moving = _Moving(program, staying)
        for loop in [body.position for body in bodies(program)]:
            moving.move(loop)
        if not moving.names:
            break
        try:
            model = load(moving.model)
            fail = failing(understand(model), moving.names)
        except InvalidModel:
            break  # a form that is not foreseen; the loops stay as they are
        if not fail:
            return model
        staying.update(moving.names[name] for name in fail)
    return None


class _Moving:
    """Moves nodes out of bodies of a copy of a model: `names` are what they give there, and where these were."""

    def __init__(self, program: Program, staying: Collection[_Place]) -> None:
        """Nodes at places of `staying` ones are not moved."""
        self.model, self.names = clone(program.model), dict[str, _Place]()
        self._staying, self._places = staying, dict[ir.Node, _Place]()
        self._constants = {v for v in values(self.model.graph) if program.is_constant(v)}
        counts = Counter(v.name or "" for graph in self.model.graphs() for v in values(graph))
        self._nodes, self._taken = list(self.model.graph), set(counts)
        self._ambiguous = {name for name, times in counts.items() if times > 1}
        self._outer: dict[ir.Value, ir.Value] = {}

    def move(self, position: int) -> None:
        """Move what the turns of a loop share before it, where anything of it takes time."""
        loop = self._nodes[position]
        body = loop.attributes[BODY].as_graph()
        kept = dict(kept_states(loop, body))
        self._places |= {node: (position, number) for number, node in enumerate(body)}
        moved = self._shared(body, kept)
        if all(node.op_type in _FREE for node in moved):
            return
        self._outer |= kept
        for node in moved:
            for index, value in enumerate(node.inputs):
                if value is not None:
                    node.replace_input_with(index, self._outside(value, body, loop))
            body.remove(node)
            self.model.graph.insert_before(loop, node)
            for value in node.outputs:
                value.shape = None  # it was declared of the first turn
                if value.name in self._ambiguous:
                    rename(value, self._taken)
                if value.name:
                    self.names[value.name] = self._places[node]

    def _shared(self, body: ir.Graph, kept: Mapping[ir.Value, ir.Value]) -> list[ir.Node]:
        """The nodes of a body that compute the same in each turn, of outer values, states that are `kept`, and
        constants, but not of constants alone, in their order.
        """
        of_turns, constant = set(body.inputs).difference(kept), self._constants.union(body.initializers.values())
        found: list[ir.Node] = []
        for node in body:
            read = {kept.get(v, v) for v in node.inputs if v is not None}
            stays = self._places[node] in self._staying or not may_be_unfailing(node)
            if stays or of_turns.intersection(read) or any(v.is_graph_output() for v in node.outputs):
                of_turns.update(node.outputs)
            elif read <= constant:
                constant.update(node.outputs)
            else:
                found.append(node)
        return found

    def _outside(self, value: ir.Value, body: ir.Graph, loop: ir.Node) -> ir.Value:
        """What a value is outside of a body: itself, but for states that are kept, and for constants of the body, which
        keeps its own.
        """
        if value in self._outer:
            return self._outer[value]
        node = value.producer()
        held = body.initializers.get(value.name or "") is value
        if not held and (node is None or node.graph is not body):
            return value
        if value not in self._outer and node is None:
            copy = ir.Value(name=value.name, type=value.type, shape=value.shape, const_value=value.const_value)
            rename(copy, self._taken)
            self.model.graph.register_initializer(copy)
            self._outer[value] = copy
        elif value not in self._outer and node is not None:
            read = [v and self._outside(v, body, loop) for v in node.inputs]
            attributes, count = list(node.attributes.values()), len(node.outputs)
            made = ir.Node(node.domain, node.op_type, read, attributes, num_outputs=count)
            self.model.graph.insert_before(loop, made)
            for old, new in zip(node.outputs, made.outputs, strict=True):
                new.name, new.type = old.name, old.type
                rename(new, self._taken)
                self._outer[old] = new
                if new.name:
                    self.names[new.name] = self._places[node]
        return self._outer[value]
