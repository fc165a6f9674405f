"""Models in which small networks of one make stand side by side: computed at once, as stacks of their weights.

Classifiers of attributes have a head of two layers for each, an additive model a network for each feature (Agarwal et
al. 2021), tables a layer for each column, ensembles several networks for one input (Lakshminarayanan et al. 2017): a
hundred nodes, each of which takes as long as it takes to start. Where the rows are few, one node computes a layer of
all of them: 40 heads behind a row of 128 take onnxruntime 1.32 77 µs, and 18 so; 26 layers of a column each 15, and 5.
With more rows it would take longer, as weights of stacks are not prepared before. So do branches of signals, as groups
of channels (`image_layers.py`), and heads of attention as textbooks write them, one by one (`attending.py`).
"""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx_ir as ir

from superopt.dim import product
from superopt.errors import SuperoptError
from superopt.onnx_io.at_once.all_turns import AllTurns
from superopt.onnx_io.at_once.rows import Nodes, Row
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.networks.alike import Twins
from superopt.onnx_io.otherwise.networks.attending import attends, is_small_head, known_tensor, may_be_open
from superopt.onnx_io.otherwise.networks.columns import FLOATS, Columns
from superopt.onnx_io.otherwise.networks.ends import Ends, ends_at, given_of, outputs_of, replace_ends
from superopt.onnx_io.otherwise.networks.layers import LAYERS
from superopt.onnx_io.otherwise.networks.small import is_small, is_weighed_sum
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import sizes_of
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import held
from superopt.relations import is_one

KINDS = frozenset(LAYERS)
"""The operators that can be computed of all at once."""

FEWEST, FEWEST_OUTPUTS = 5, 3
"""So many networks are worth it, or of as many nodes as layers of the same value are. Of heads of attention, which
compare what they compute, two may be.
"""

FEWEST_NODES, FEWEST_OF_THE_SAME = 10, 15
"""So many nodes in all networks are worth it; layers of the same value are joined by rules, where these are few."""

MOST_STATES = 4
"""So often states of a recurrence are told from what is computed of them, until they are given up."""

_FREE = ("Unsqueeze",)
"""What takes hardly any time."""


def heads(program: Program) -> dict[int, Put]:
    """How to compute at once what networks of one make give, by the places of what joins it or adds it up."""
    puts: dict[int, Put] = {}
    columns = Columns(program)
    outputs = outputs_of(program.model.graph)
    for i, node in enumerate(program.model.graph):
        if any(_found(program, columns, ends) is not None for ends in ends_at(program, node, outputs)):
            puts[i] = partial(_put, program, columns)
    return puts


def _found(program: Program, columns: Columns, ends: Ends) -> Twins | None:
    """What is computed alike, where it is by small networks of one make; None of others."""
    found = twins_of(program, ends)
    if found is None or not found.nodes or found.nodes[-1][0] is not ends.values[0].producer() or not found.apart:
        return None
    shapes = [program.values[v.name or ""].shape for v in ends.values if v.name in program.values]
    added = ends.axis is None or not ends.nodes or len(shapes) < len(ends.values)
    freed = found.freed(ends.nodes, ends.values)
    if (added and len(set(shapes)) != 1) or (ends.axis is not None and not shapes[0]):
        return None
    attend = may_be_open(ends.axis, shapes[0]) and any(attends(program, node) for node, *_ in found.nodes)
    if not _are_many(ends, len(freed), attend, bool(found.read)):
        return None
    placed = [columns.of_values(row) for row in found.read]
    if not all(one is not None and all(isinstance(d, int) for d in one.type.shape) for one in placed):
        return None
    if found.is_mixed and not all(one is not None and one.type.dtype in FLOATS for one in placed):
        return None  # axes or sizes may be among them, which operators have to be told
    others = sum(one is None or not one.are_few for one in placed)  # which have to be put beside each other
    working = sum(several[0].op_type not in _FREE for several in freed)
    if not (_are_floats(found) and len(freed) == len(found.nodes) if found.weights else placed and others <= working):
        return None
    nodes = [node for node, *_ in found.nodes]
    if attend and all(is_small_head(program, node) for node in nodes):
        return found
    are_small = all(is_small(program, node, bool(found.weights)) for node in nodes)
    return found if are_small or is_weighed_sum(program, nodes) else None


def _are_many(ends: Ends, nodes: int, attend: bool, read: bool) -> bool:
    """Whether networks of so many nodes each are enough to be worth it."""
    fewest = FEWEST_NODES if read and ends.nodes else FEWEST_OF_THE_SAME
    networks = len(ends.values)
    return networks * nodes >= fewest and (attend or networks >= (FEWEST if ends.nodes else FEWEST_OUTPUTS))


def twins_of(program: Program, ends: Ends) -> Twins | None:
    """What computes values alike; where each is made of the one before, as steps of a recurrence are, of that."""
    if len({program.values[v.name or ""].type for v in ends.values if v.name in program.values}) > 1:
        return None
    given = set[ir.Value]()
    for _ in range(MOST_STATES):
        found = Twins(KINDS, given, partial(known_tensor, program))
        is_told = found.follow(ends.values)
        if not found.states:
            return found if is_told else None
        given |= found.states
    return None


def _are_floats(found: Twins) -> bool:
    """Whether constants that differ are weights or masks, and not axes or sizes, with which networks differ in make."""
    return all(a.dtype.name in (*FLOATS, "bool") for data in found.weights.values() for a in data)


def _put(program: Program, columns: Columns, draft: Draft, end: ir.Node) -> bool:
    """Let what is joined or added up be computed at once."""
    known = ((e, _found(program, columns, e)) for e in ends_at(program, end, outputs_of(draft.model.graph)))
    ends, found = next(((ends, found) for ends, found in known if found is not None), (None, None))
    if ends is None or found is None:  # what another one changed
        return False
    made, turns = draft.nodes("heads"), AllTurns(program, *draft, LAYERS)
    _enter(program, columns, found, made, turns)
    try:
        whole = turns.rows.get(ends.values[0]) if all(turns.take(node) for node, *_ in found.nodes) else None
    except SuperoptError:  # sizes that are not told apart
        whole = None
    if whole is None or whole.turns is None:
        turns.placed(())
        return False
    after = draft.nodes("heads")
    results = _results(after, turns.made, whole, ends)
    draft.model.graph.insert_before(end, [*made.nodes, *turns.placed([whole.value, *results]), *after.nodes])
    replace_ends(draft.model, end, ends, results)
    return True


def _enter(program: Program, columns: Columns, found: Twins, made: NewNodes, turns: AllTurns) -> None:
    """Let what networks read be known: weights and values of their own, one behind the other, and what all read."""
    for row, data in found.weights.items():
        turns.rows[row[0]] = Row(made.held(np.stack(data)), data[0].shape, len(row))
    for constant in dict.fromkeys(v for node, *_ in found.nodes for v in node.inputs if v is not None):
        if held(constant) is None and (tensor := known_tensor(program, constant)) is not None:
            turns.rows.setdefault(constant, Row(made.held(tensor.numpy()), tuple(tensor.shape.numpy()), None))
    for row, beside in zip(found.read, columns.beside_each_other(made, found.read), strict=True):
        turns.rows[row[0]] = beside
    turns.rows.update({given: turns.rows[same] for given, same in found.same.items() if same in turns.rows})


def _results(after: NewNodes, turns: Nodes, whole: Row, ends: Ends) -> list[ir.Value]:
    """What is to be given in the place of nodes that join or add up, or as each of some outputs."""
    if ends.axis is None:
        return [turns.over(whole.value, "ReduceSum", [0], [ir.AttrInt64("keepdims", 0)])]
    return given_of(after, _joined(after, whole, ends.axis), ends, whole.shape)


def _joined(made: NewNodes, whole: Row, axis: int) -> ir.Value:
    """Values of all turns, one after the other along an axis."""
    rank = len(whole.shape)
    at = axis % rank
    others = [d for a, d in enumerate(whole.shape) if a != at and isinstance(d, int)]
    if at and is_one(whole.shape[at]) and len(others) == rank - 1:  # then what is moved is all that there is to do
        turns = [d for d in (whole.turns,) if isinstance(d, int)]
        less = made.reshaped(whole.value, [*turns, *others])
        return made.transposed(less, [*range(1, at + 1), 0, *range(at + 1, rank)])
    order = [*range(1, at + 1), 0, *range(at + 1, rank + 1)]
    moved = made.transposed(whole.value, order) if at else whole.value
    many = whole.turns or 1
    to = tuple(product((d, many)) if a == at else d for a, d in enumerate(whole.shape))
    sizes = sizes_of((*whole.shape[:at], many, *whole.shape[at:]), to)
    assert sizes is not None
    return made.reshaped(moved, sizes)
