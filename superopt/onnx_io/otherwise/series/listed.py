"""Models whose loops collect what turns make as outputs of theirs, and not in a sequence that goes from turn to turn.

That is how a script's list is exported which a loop appends to, and which is stacked in the end (`torch.stack(outs)`).
A sequence is no tensor, so a body with one is not looked into; and a runtime copies it in each turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import onnx_ir as ir

from superopt.onnx_io.naming import rename
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import is_a, number
from superopt.onnx_io.surgery import bury, output_of, pass_on

_BEFORE = 2
"""What a Loop is given before its states: how often, and whether at all."""


class _List(NamedTuple):
    """A state of a Loop that each turn appends to, by its place, what appends, and what stacks all beside the Loop."""

    place: int
    append: ir.Node
    stacks: list[ir.Node]


def listed(program: Program) -> dict[int, Put]:
    """How to collect what Loops append to sequences, by the places of these. Where a Loop has no turn, nothing can be
    stacked: the model fails.
    """

    def put(draft: Draft, loop: ir.Node) -> bool:
        return _collect(program, draft, loop, list(_lists(program, loop)))

    loops = [(i, n) for i, n in enumerate(program.model.graph) if is_a(n, "Loop")]
    return {i: put for i, loop in loops if any(True for _ in _lists(program, loop))}


def _lists(program: Program, loop: ir.Node) -> Iterator[_List]:
    body = loop.attributes["body"].as_graph()
    for place in range(len(loop.inputs) - _BEFORE):
        begins, given = loop.inputs[place + _BEFORE], body.inputs[place + _BEFORE]
        left, final = body.outputs[place + 1], loop.outputs[place]
        append, stacks = left.producer(), [user for user, _ in final.uses()]
        is_alone = [user for user, _ in given.uses()] == [append] and not left.uses() and given not in body.outputs
        if append is None or append.op_type != "SequenceInsert" or list(append.inputs[:1]) != [given] or not is_alone:
            continue
        is_last = len(append.inputs) == 2 and list(body.outputs).count(left) == 1
        begins_empty = begins is not None and is_a(begins.producer(), "SequenceEmpty")
        if (
            is_last
            and begins_empty
            and not final.is_graph_output()
            and stacks  # else items may be of several shapes
            and all(s.graph is loop.graph and _stacks(program, append, s) for s in stacks)
        ):
            yield _List(place, append, stacks)


def _stacks(program: Program, append: ir.Node, node: ir.Node) -> bool:
    """Whether a node beside a Loop puts tensors of one shape one behind the other along an axis that is new."""
    is_stack = is_a(node, "ConcatFromSequence") and number(node, "new_axis", 0) == 1
    return is_stack and (_rank(program, append, node) is not None or node.attributes["axis"].as_int() == 0)


def _rank(program: Program, append: ir.Node, stack: ir.Node) -> int | None:
    """The rank of what is stacked of what is appended, as far as it is known."""
    known, item = program.term(stack.outputs[0]), append.inputs[1]
    if known is not None:
        return known.type.rank
    return len(item.shape) + 1 if item is not None and item.shape is not None else None


def _collect(program: Program, draft: Draft, loop: ir.Node, lists: list[_List]) -> bool:
    """Let a Loop give what its turns append, behind all else that it gives, and no sequence of it."""
    body, places = loop.attributes["body"].as_graph(), [one.place for one in lists]
    read = [v for i, v in enumerate(loop.inputs) if i - _BEFORE not in places]
    states = [v for i, v in enumerate(body.inputs) if i - _BEFORE not in places]
    left = [v for i, v in enumerate(body.outputs) if i - 1 not in places]
    new = ir.Node(loop.domain, "Loop", read, name=loop.name, num_outputs=len(left) - 1 + len(lists))
    new.attributes["body"] = loop.attributes.pop("body")
    for item in (one.append.inputs[1] for one in lists):
        assert item is not None
        left.append(output_of(body, item, left, draft.taken))
    for values, now in ((body.inputs, states), (body.outputs, left)):
        values.clear()
        values.extend(now)
    body.remove([one.append for one in lists], safe=True)
    draft.model.graph.insert_before(loop, new)
    kept = [v for i, v in enumerate(loop.outputs) if i not in places]
    for old, value in zip(kept, new.outputs, strict=False):
        pass_on(old, value)
        old.replace_all_uses_with(value, replace_graph_outputs=True)
    begins = [loop.inputs[place + _BEFORE] for place in places]
    for one, items in zip(lists, new.outputs[len(kept) :], strict=True):
        items.name = "items"
        rename(items, draft.taken)
        for stack in one.stacks:
            _put_in_place(draft, stack, items, _rank(program, one.append, stack))
    if loop.graph is not None:  # else it went with the last that read it
        draft.model.graph.remove(loop, safe=True)
    for old, value in zip(kept, new.outputs, strict=False):
        value.name, old.name = old.name, None
    bury(draft.model, [v for v in begins if v is not None])
    return True


def _put_in_place(draft: Draft, stack: ir.Node, items: ir.Value, rank: int | None) -> None:
    """Let items along a first axis be what a node stacked along its own."""
    axis, made = stack.attributes["axis"].as_int(), draft.nodes("stacked")
    if axis and rank is not None:
        order = [*range(1, axis % rank + 1), 0, *range(axis % rank + 1, rank)]
        result = made.transposed(items, order)
    else:
        result = made.node("Identity", [items])
    draft.replace(stack, made, [result])
