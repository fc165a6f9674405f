"""Sums of functions of numbers, each times a constant, of functions that are laid out so that they take less time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

import onnx_ir as ir

from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.bases.layout import NotLaidError
from superopt.onnx_io.otherwise.bases.multiplied import product_of
from superopt.onnx_io.otherwise.bases.products import Sum, sum_of
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import shape_of, sizes_of
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.skeleton import opset_of
from superopt.relations import equal_shapes, is_one

LEAST_OPSET = 10
"""Before it, slices had their bounds as attributes."""


class _Tried(NewNodes):
    """Nodes that are not made, to see whether they could be."""

    def several(
        self, op_type: str, inputs: Sequence[ir.Value | None], attributes: Sequence[ir.Attr] = (), outputs: int = 1
    ) -> Sequence[ir.Value]:
        """Values that nothing gives."""
        return [ir.Value() for _ in range(outputs)]


def bases(program: Program) -> dict[int, Put]:
    """How to sum up functions of numbers, by the places of what does so."""
    opset = opset_of(program.model)
    if opset < LEAST_OPSET:
        return {}
    found: dict[int, Sum] = {}
    for i, node in enumerate(program.model.graph):
        whole = sum_of(program, node)
        if whole is not None and _result(program, whole, _Tried("bases", set(), opset)) is not None:
            found[i] = whole
    return dict.fromkeys(_apart(program, found), partial(_put, program))


def _apart(program: Program, sums: Mapping[int, Sum]) -> list[int]:
    """The sums all of whose functions are computed for nothing but such sums."""
    inner = {i: _inner(program, whole) for i, whole in sums.items()}
    while True:
        own = {v.producer() for values in inner.values() for v in values} | {sums[i].by for i in inner}
        kept = {i: values for i, values in inner.items() if all(_is_read_by(program, v, own) for v in values)}
        if len(kept) == len(inner):
            return list(kept)
        inner = kept


def _inner(program: Program, whole: Sum) -> list[ir.Value]:
    """The values of functions, and those between them and their sum."""
    values, stack = [node.outputs[0] for node in whole.nodes if node is not whole.by], [term.of for term in whole.terms]
    while stack:
        one = stack.pop()
        node, shape = one.producer(), shape_of(program, one)
        if node is None or program.is_constant(one) or not shape or is_one(shape[-1]) or one in values:
            continue
        values.append(one)
        stack.extend(v for v in node.inputs if v is not None)
    return values


def _is_read_by(program: Program, value: ir.Value, nodes: Collection[ir.Node | None]) -> bool:
    """Whether only these nodes read a value, and what reads no more than its sizes."""
    others = {user for user, _ in value.uses() if user not in nodes}
    is_free = all((v.name or "") in program.sizes for user in others for v in user.outputs)
    return is_free and not value.is_graph_output()


def _put(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Sum up functions that are laid out otherwise."""
    whole, opset = sum_of(program, node), opset_of(draft.model)
    if whole is None or _result(program, whole, _Tried("bases", set(), opset)) is None:
        return False  # another has changed it
    made = draft.nodes("bases")
    result = _result(program, whole, made)
    assert result is not None
    return draft.replace(node, made, [result])


def _result(program: Program, whole: Sum, made: NewNodes) -> ir.Value | None:
    """What a sum is by new nodes; None where functions are none that can be laid out, or are so already."""
    try:
        sums = [product_of(program, term, made) for term in whole.terms]
    except NotLaidError:
        return None
    (result, shape, _), *others = sums
    if not any(is_new for *_, is_new in sums) or (to := sizes_of(shape, whole.shape)) is None:
        return None
    for other, *_ in others:
        result = made.node("Add", [result, other])
    if whole.more is not None:
        result = made.node("Add", [result, whole.more])
    if not equal_shapes(shape, whole.shape):
        result = made.reshaped(result, to)
    return result
