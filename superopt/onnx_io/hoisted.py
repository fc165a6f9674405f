"""Models whose loops compute before the first turn what is the same in all.

Compilers call that loop-invariant code motion (Allen and Cocke 1971); runtimes of ONNX leave bodies as they are, and
exporters write what a script says: keys of an attention over what an encoder gave, for each token anew.
"""

from __future__ import annotations

from collections import Counter

import onnx_ir as ir

from superopt.errors import InvalidModel
from superopt.onnx_io.bodies import bodies, kept_states
from superopt.onnx_io.constants import RANDOM, Constants
from superopt.onnx_io.files import load
from superopt.onnx_io.naming import rename, values
from superopt.onnx_io.program import Program
from superopt.onnx_io.skeleton import ONNX_DOMAIN, clone, subgraphs

_MAY_FAIL = frozenset({"Div", "Mod", "Gather", "GatherElements", "GatherND", "OneHot", "Compress", "ScatterND"})
"""What fails for some numbers, where it is of integers: a loop without a turn would not have computed it."""

_FREE = frozenset({"Constant", "Identity", "Reshape", "Shape", "Squeeze", "Unsqueeze", "Flatten"})
"""What takes hardly any time: for these alone nothing is changed."""


def hoisted(program: Program) -> ir.Model | None:
    """The model with all that turns of its loops compute of outer values alone computed before them, in a copy; None
    where there is no such thing. States that turns pass on are outer values. The interface stays as it is.
    """
    places = [body.position for body in bodies(program)]
    if not places or program.model.ir_version < 4:
        return None
    model = clone(program.model)
    counts = Counter(v.name or "" for graph in model.graphs() for v in values(graph))
    ambiguous, nodes = {name for name, times in counts.items() if times > 1}, list(model.graph)
    moving = _Moving(model, program.constants, set(counts), ambiguous)
    done = [moving.move(nodes[place]) for place in places]
    if not any(done):
        return None
    try:
        return load(model)
    except InvalidModel:
        return None  # a form that is not foreseen; the loops stay as they are


class _Moving:
    """Moves nodes out of bodies of a model, which has some outer constants; values of `ambiguous` names get others,
    that are not `taken`.
    """

    def __init__(self, model: ir.Model, constants: Constants, taken: set[str], ambiguous: set[str]) -> None:
        self._model, self._constants, self._taken, self._ambiguous = model, constants, taken, ambiguous
        self._copies: dict[ir.Value, ir.Value] = {}

    def move(self, loop: ir.Node) -> bool:
        """Move what a loop's turns share before it; whether that is anything that takes time."""
        body = loop.attributes["body"].as_graph()
        for given, outer in kept_states(loop, body):
            for user, index in tuple(given.uses()):
                if user.op_type != "Identity":  # which passes it on
                    user.replace_input_with(index, outer)
        moved = self._shared(body)
        if all(node.op_type in _FREE for node in moved):
            return False
        for node in moved:
            for index, value in enumerate(node.inputs):
                if value is not None:
                    node.replace_input_with(index, self._outside(value, body, loop))
            body.remove(node)
            self._model.graph.insert_before(loop, node)
            for value in node.outputs:
                value.shape = None  # it was declared of the first turn
                if value.name in self._ambiguous:
                    rename(value, self._taken)
        return True

    def _shared(self, body: ir.Graph) -> list[ir.Node]:
        """The nodes of a body that compute the same in each turn, of outer values and constants, but not of constants
        alone, in their order.
        """
        of_turns, constant = set(body.inputs), set(body.initializers.values())
        found: list[ir.Node] = []
        for node in body:
            read = [v for v in node.inputs if v is not None]
            if of_turns.intersection(read) or not _is_plain(node) or any(v.is_graph_output() for v in node.outputs):
                of_turns.update(node.outputs)
            elif all(v in constant or (v.name or "") in self._constants for v in read):
                constant.update(node.outputs)
            else:
                found.append(node)
        return found

    def _outside(self, value: ir.Value, body: ir.Graph, loop: ir.Node) -> ir.Value:
        """What a value is outside of a body: itself, but for constants of the body, which keeps its own."""
        node = value.producer()
        held = body.initializers.get(value.name or "") is value
        if not held and (node is None or node.graph is not body):
            return value
        if value not in self._copies and node is None:
            copy = ir.Value(name=value.name, type=value.type, shape=value.shape, const_value=value.const_value)
            rename(copy, self._taken)
            self._model.graph.register_initializer(copy)
            self._copies[value] = copy
        elif value not in self._copies and node is not None:
            read = [v and self._outside(v, body, loop) for v in node.inputs]
            attributes, count = list(node.attributes.values()), len(node.outputs)
            made = ir.Node(node.domain, node.op_type, read, attributes, num_outputs=count)
            self._model.graph.insert_before(loop, made)
            for old, new in zip(node.outputs, made.outputs, strict=True):
                new.name, new.type = old.name, old.type
                rename(new, self._taken)
                self._copies[old] = new
        return self._copies[value]


def _is_plain(node: ir.Node) -> bool:
    """Whether a node gives the same for the same, whenever it is computed, and never fails for numbers."""
    if node.domain not in ONNX_DOMAIN or any(True for _ in subgraphs(node)):
        return False
    divides = node.op_type == "Div" and any(v.dtype is not None and v.dtype.is_floating_point() for v in node.outputs)
    return divides or not (node.op_type in RANDOM | _MAY_FAIL or node.op_type.startswith(("Sequence", "Split")))
