"""Models whose softmax gives what is masked a share next to nothing, and not one that is too small for a number.

Attention masks what is not to be looked at with numbers far below all others: −∞, the least number there is, −10⁴, or
−100 as windows that are shifted have it (Liu et al. 2021). The exponentials of these underflow, which processors handle
one by one: on an Intel Xeon onnxruntime 1.32 takes 1.3 ms for eight heads of 256 by 256 scores of which half are
masked, and 0.2 where none is. The products behind that are slow too where shares come out that are below the least
normal number. What is raised to 64 below the largest of its row has a share of e⁻⁶⁴ at most, which is 2⁻⁹²: nothing
that it is added to can tell, in 64 bits neither. So that is done to what is masked where its shares weigh a sum.

What only inputs mask, as the ends of shorter texts, may be little or nothing, and a floor costs as much as a softmax of
that: it has one only where it is known what inputs are. Patterns that are constant or made of sizes always mask some.

Exporters guard shares against rows that are masked as a whole by −∞, of which no share is a number: each share that is
none becomes 0, which takes as long as the softmax. What is largest in a row tells that for all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import onnx_ir as ir

from superopt.onnx_io.masks import MASKING, MOST_NODES, MOVES, PARTS, Mask, mask_of
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of, is_softmax_of_rows
from superopt.onnx_io.replacing import Draft, Put, replaced
from superopt.onnx_io.said import is_a, number
from superopt.onnx_io.skeleton import opset_of

FURTHER = 1.0001
"""What is masked twice, in rows that are masked as a whole, is to stay below the others: there a floor is so many times
as low, where 64 less is the same number.
"""

BELOW = 64.0
"""So far below the largest of its row is the least that is left."""

BROADCASTS = 8
"""Since this opset Max does."""

TYPES = ("float32",)
"""Of what has these it is known that small shares are slow."""

_SUMS = ("MatMul", "Einsum", "ReduceSum")
_KEEPS = (*MOVES, *PARTS, "Where", "Mul", "Div", "Dropout", "Pad")


def is_masking(program: Program, are_known: bool) -> bool:
    """Whether there is a softmax of what is masked, whose shares weigh a sum; where inputs are known, by these too."""
    return any(True for _ in _places(program, are_known))


def floored(program: Program, are_known: bool) -> ir.Model | None:
    """The model with a floor below what each such softmax is of, in a copy; None where there is none."""
    puts: dict[int, Put] = {place: partial(_raise, program, mask) for place, mask in _places(program, are_known)}
    return replaced(program.model, puts)


def _places(program: Program, are_known: bool) -> Iterator[tuple[int, Mask]]:
    """Where there is a softmax of what is masked."""
    if opset_of(program.model) < BROADCASTS:
        return
    for place, node in enumerate(program.model.graph):
        if _is_of_rows(program, node) and _weighs(node.outputs[0]):
            mask = mask_of(program, node.inputs[0])
            if mask.least <= MASKING and (mask.is_fixed or are_known):
                yield place, mask


def _is_of_rows(program: Program, node: ir.Node) -> bool:
    known = program.term(node.outputs[0])
    return known is not None and known.type.dtype in TYPES and is_softmax_of_rows(program, node)


def _weighs(shares: ir.Value) -> bool:
    """Whether all that comes of some shares is that they weigh sums; whether they are numbers may be asked."""
    seen, left = set[ir.Value](), [shares]
    while left:
        value = left.pop()
        if value in seen:
            continue
        seen.add(value)
        uses = [(user, place) for user, place in value.uses() if not is_a(user, *_SUMS, "IsNaN")]
        if value.is_graph_output() or not all(_keeps(*use) for use in uses) or len(seen) > MOST_NODES:
            return False
        users = [user for user, _ in uses]
        left += [output for user in users for output in user.outputs]
    return True


def _keeps(user: ir.Node, place: int) -> bool:
    """Whether what a node gives is next to nothing where this input of it is: no quotient by that, nor its truth."""
    to = number(user, "to", ir.DataType.FLOAT) if is_a(user, "Cast") else ir.DataType.FLOAT
    return is_a(user, *_KEEPS) and not (is_a(user, "Div") and place) and ir.DataType(to).is_floating_point()


def _raise(program: Program, mask: Mask, draft: Draft, node: ir.Node) -> bool:
    """Let nothing be further below the largest of its row, and what guards the shares look at that alone."""
    x = node.inputs[0]
    assert x is not None
    made, last = draft.nodes("floor"), program.values[node.outputs[0].name or ""].type.rank - 1
    largest = made.over(x, "ReduceMax", [last], [ir.AttrInt64("keepdims", 1)])
    guard = _guard(program, node.outputs[0])
    is_guarded = guard is not None and not mask.is_finite
    floor = made.node("Sub", [largest, made.held(np.array(BELOW, np.float32))])
    if mask.is_far:
        floor = made.node("Min", [floor, made.node("Mul", [largest, made.held(np.array(FURTHER, np.float32))])])
    is_some = made.node("Greater", [largest, made.held(np.array(-np.inf, np.float32))]) if is_guarded else None
    if is_some is not None:  # rows that are −∞ become equal numbers
        floor = made.node("Where", [is_some, floor, made.held(np.array(0.0, np.float32))])
    raised = made.node("Max", [x, floor])
    shares = made.node("Softmax", [raised], list(node.attributes.values()))
    if is_some is not None:
        kept = made.cast(is_some, ir.DataType.FLOAT)
        shares = made.node("Mul", [shares, kept])
    return draft.replace(node if guard is None else guard, made, [shares])


def _guard(program: Program, shares: ir.Value) -> ir.Node | None:
    """What makes 0 of all shares that are no numbers, where nothing else reads these."""
    users = [user for user, _ in shares.uses()]
    asks = next((user for user in users if is_a(user, "IsNaN")), None)
    chooses = next((user for user in users if is_a(user, "Where")), None)
    if asks is None or chooses is None or len(users) != 2 or len(asks.outputs[0].uses()) != 1:
        return None
    asked, otherwise, kept = chooses.inputs
    zero, known = data_of(program, otherwise), program.term(shares)
    if known is None or zero is None or zero.any() or zero.size != 1 or zero.ndim > known.type.rank:
        return None
    return chooses if asked is asks.outputs[0] and kept is shares else None
