"""Bodies of loops as graphs of their own: what a turn is given, and of which types and sizes.

What exporters declare of that is of the first turn, where a sequence has one element that grows by one in each: such a
size is open, and what was inferred from it is forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from superopt.dim import Dim, symbol_name
from superopt.onnx_io.choices import BODY, Branch
from superopt.onnx_io.files import load
from superopt.onnx_io.importer import understand
from superopt.onnx_io.naming import itself
from superopt.onnx_io.program import Program
from superopt.onnx_io.said import is_a, scanned
from superopt.onnx_io.skeleton import opset_of
from superopt.onnx_io.tensors import IR_TYPES
from superopt.relations import are_equal
from superopt.term import Type

MOST_TRIED = 4
"""How often sizes are opened that differ in the next turn, until they are given up."""

_COUNTING = 2
"""What a Loop gives a turn before its states: its number, and whether it runs."""


def bodies(program: Program) -> list[Branch]:
    """The bodies of the loops of the main graph that have one form in all opsets."""
    if opset_of(program.model) < 9:  # before it, a Scan had an axis of batches
        return []
    nodes = enumerate(program.model.graph)
    return [Branch(place, BODY) for place, node in nodes if is_loop(node) and BODY in node.attributes]


def is_loop(node: ir.Node) -> bool:
    """Whether a node is ONNX's Loop or Scan."""
    return is_a(node, "Loop", "Scan")


def declare_given(program: Program, node: ir.Node, body: ir.Graph) -> bool:
    """Declare what a turn is given, in place, as the loop's inputs are or it says itself; whether all of that is known,
    else some of it is declared and the body is not to be used. What is computed from it is declared of a rank only.
    """
    if len(node.inputs) != len(body.inputs):
        return False
    outer = [program.term(v) for v in node.inputs]
    known = [None if term is None else term.type for term in outer]
    if node.op_type == "Loop":
        ranks = [len(v.shape) if v.shape is not None else 0 for v in body.inputs]  # vectors of one, where it says so
        known[:_COUNTING] = Type("int64", (1,) * ranks[0]), Type("bool", (1,) * ranks[1])
        body.outputs[0].type = ir.TensorType(ir.DataType.BOOL)
    else:
        known = _slices(node, known)
    for value, type_ in zip(body.inputs, known, strict=True):
        if type_ is None or type_.dtype not in IR_TYPES:
            return False
        value.type = ir.TensorType(IR_TYPES[type_.dtype])
        value.shape = ir.Shape(_sizes(value, type_))
    if node.op_type == "Loop":
        for state, result in zip(body.inputs[_COUNTING:], body.outputs[1:], strict=False):
            result.type = result.type or state.type
    for value in (v for inner in body for v in inner.outputs if v.shape is not None):
        value.shape = ir.Shape([None] * len(value.shape or ())) if value.type is not None else None
    return True


def _slices(scan: ir.Node, known: Sequence[Type | None]) -> list[Type | None]:
    """The types of what a Scan gives a turn: of what it goes through, without the axis along which it does."""
    count = scanned(scan)
    told = scan.attributes.get("scan_input_axes")
    axes = list(told.as_ints()) if told is not None else [0] * count
    through = known[len(known) - count :]
    fits = all(t is None or -t.rank <= a < t.rank for t, a in zip(through, axes, strict=False))
    if len(axes) != count or not fits:
        return [None] * len(known)
    made = [
        t and Type(t.dtype, tuple(d for i, d in enumerate(t.shape) if i != a % t.rank))
        for t, a in zip(through, axes, strict=True)
    ]
    return [*known[: len(known) - count], *made]


def _sizes(value: ir.Value, known: Type) -> list[int | str]:
    """The sizes of what a turn is given: those that are declared, and otherwise those that it begins with."""
    if value.shape is None or len(value.shape) != known.rank:
        return [declared_size(k) for k in known.shape]
    return [d if isinstance(d, int) else declared_size(k) for d, k in zip(value.shape, known.shape, strict=True)]


def declared_size(dim: Dim) -> int | str:
    """A size as models declare it."""
    return dim if isinstance(dim, int) else symbol_name(dim) or str(dim)


def states_of(loop: ir.Node, body: ir.Graph) -> list[tuple[ir.Value, ir.Value]]:
    """The states of a Loop that may be others in its next turn, as they come into one and as they leave it. Those of a
    Scan keep their sizes, and so does what is passed on to its own place.
    """
    if loop.op_type == "Scan":
        return []
    both = zip(body.inputs[_COUNTING:], body.outputs[1:], strict=False)
    given = given_again(body)
    return [
        (state, body.inputs[given[i]] if i in given else result)
        for i, (state, result) in enumerate(both, start=1)
        if given.get(i) != i + _COUNTING - 1
    ]


def kept_states(loop: ir.Node, body: ir.Graph) -> list[tuple[ir.Value, ir.Value]]:
    """The states that each turn passes on as they come, and what they begin with: they are that in all turns."""
    first, less = (_COUNTING, 1) if loop.op_type == "Loop" else (0, 0)
    states = range(
        first, len(loop.inputs) - scanned(loop)
    )  # a slice that a Scan gives again is another one in each turn
    kept = [place for i, place in given_again(body).items() if place in states and place == i + less]
    pairs = [(body.inputs[place], loop.inputs[place]) for place in kept]
    return [(given, outer) for given, outer in pairs if outer is not None]


def given_again(body: ir.Graph) -> dict[int, int]:
    """The places of a body's outputs that are copies of what it is given, and the places of that."""
    inputs = {value: place for place, value in enumerate(body.inputs)}
    found = {i: inputs.get(itself(value)) for i, value in enumerate(body.outputs)}
    return {i: place for i, place in found.items() if place is not None}


def with_open_sizes(model: ir.Model, states: Sequence[tuple[ir.Value, ir.Value]]) -> ir.Model | None:
    """The model of a body with sizes of states open that are others in the next turn, in place; None where such a state
    has no known rank, or other ranks. Raises `InvalidModel` for a model that ONNX does not accept.
    """
    if not states:
        return model
    for _ in range(MOST_TRIED):
        program, is_open = understand(load(model)), True
        for state, result in states:
            before, then = (program.term(v) for v in (state, result))
            if before is None or then is None or before.type.rank != then.type.rank:
                return None
            for axis, (old, new) in enumerate(zip(before.shape, then.shape, strict=True)):
                own = f"{state.name}_{axis}"
                if not are_equal(old, new) and state.shape is not None and str(state.shape[axis]) != own:
                    sizes = list(state.shape)
                    state.shape, is_open = ir.Shape([*sizes[:axis], own, *sizes[axis + 1 :]]), False
        if is_open:
            return model
    return None
