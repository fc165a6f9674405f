"""Models that take rows of a matrix, and do not multiply it by rows that are one in one place and zero elsewhere.

`one_hot(i) @ W` is how vector-quantized autoencoders look up their codes (van den Oord et al. 2017), and how a layer
over categories is written out. Numbers that are no row's have a row of zeros, as `one_hot` has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.linear import PRODUCTS, is_linear
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import is_a, number, text
from superopt.onnx_io.skeleton import ONNX_DOMAIN, opset_of
from superopt.relations import are_equal
from superopt.substitution import elements

LEAST, LEAST_GUARDED, MOST_GUARDED = 2**14, 2**18, 2**24
"""So many products are left out at least, where numbers are rows', and where that has to be seen to; a matrix that has
a row more then has so many elements at most.
"""

INTEGERS = ("int32", "int64")

_MOVES = ("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze")
"""What keeps what numbers there are."""


class _Hot(NamedTuple):
    """Rows that are one where numbers say: these, of how many places, and which numbers they may be."""

    numbers: ir.Value
    depth: int
    wraps: bool
    """Whether -1 is the last place."""
    fails: bool
    """Whether the model fails for a number that is no place's."""


def one_hot(program: Program) -> dict[int, Put]:
    """How to take rows, by the places of the products."""
    if opset_of(program.model) < 13:  # OneHot had other places before 11, and axes were attributes before 13
        return {}
    nodes = [(i, node) for i, node in enumerate(program.model.graph) if node.op_type in PRODUCTS]
    found = ((i, _hot(program, node.inputs[0]), node) for i, node in nodes)
    return {i: lambda draft, n: _take(program, draft, n) for i, hot, node in found if hot and _pays(program, hot, node)}


def _hot(program: Program, value: ir.Value | None) -> _Hot | None:
    """What a value tells by ones and zeros."""
    node = None if value is None else value.producer()
    while is_a(node, "Cast", "Identity") and node.inputs[0] is not None:
        node = node.inputs[0].producer()
    way = _WAYS.get(node.op_type) if node is not None and node.domain in ONNX_DOMAIN else None
    hot = None if node is None or way is None or None in node.inputs else way(program, node)
    known = None if hot is None else program.term(hot.numbers)
    return hot if known is not None and known.type.dtype in INTEGERS else None


def _named(program: Program, node: ir.Node) -> _Hot | None:
    """OneHot along a last axis."""
    numbers, depth, values = (v for v in node.inputs if v is not None)
    size, ends = data_of(program, depth), data_of(program, values)
    rank = program.values[numbers.name or ""].type.rank if (numbers.name or "") in program.values else None
    axis = number(node, "axis", -1)
    if rank is None or axis not in (-1, rank) or size is None or ends is None or ends.reshape(-1).tolist() != [0, 1]:
        return None
    return _Hot(numbers, int(size.reshape(-1)[0]), wraps=True, fails=False)


def _compared(program: Program, node: ir.Node) -> _Hot | None:
    """Numbers, each along an axis of its own, that are compared with all places."""
    for spread, places in (node.inputs, node.inputs[::-1]):
        made, data = None if spread is None else spread.producer(), data_of(program, places)
        numbers = _unspread(program, made)
        if numbers is None or data is None or not data.ndim or data.shape[-1] != data.size:
            continue
        rank = program.values[numbers.name or ""].type.rank
        if data.ndim <= rank + 1 and np.array_equal(data.reshape(-1), np.arange(data.size)):
            return _Hot(numbers, data.size, wraps=False, fails=False)
    return None


def _scattered(program: Program, node: ir.Node) -> _Hot | None:
    """Ones that are put into rows of zeros, one into each."""
    zeros, at, ones = (v for v in node.inputs if v is not None)
    nothing, numbers = data_of(program, zeros), _unspread(program, at.producer())
    known, axis = program.term(at), number(node, "axis", 0)
    if nothing is None or nothing.ndim != 2 or nothing.any() or numbers is None or known is None or axis not in (1, -1):
        return None
    is_all = known.type.rank == 2 and are_equal(known.shape[0], nothing.shape[0])
    sets = text(node, "reduction", "none") == "none"
    return _Hot(numbers, nothing.shape[1], True, True) if is_all and sets and _is_one(program, ones) else None


_WAYS: dict[str, Callable[[Program, ir.Node], _Hot | None]] = {
    "Equal": _compared,
    "OneHot": _named,
    "ScatterElements": _scattered,
}


def _is_one(program: Program, value: ir.Value) -> bool:
    """Whether a value is one everywhere; what only repeats it does not matter."""
    node = value.producer()
    data = data_of(program, node.inputs[0] if is_a(node, "Expand") else value)
    return data is not None and bool((data == 1).all())


def _unspread(program: Program, node: ir.Node | None) -> ir.Value | None:
    """What a node gives a last axis of one."""
    if not is_a(node, "Unsqueeze") or None in node.inputs:
        return None
    numbers, axes = node.inputs
    known, data = program.values.get((numbers and numbers.name) or ""), data_of(program, axes)
    is_last = known is not None and data is not None and data.reshape(-1).tolist() in ([-1], [known.type.rank])
    return numbers if is_last else None


def _pays(program: Program, hot: _Hot, node: ir.Node) -> bool:
    """Whether a node multiplies such rows by a matrix of finite numbers, which takes time."""
    known = program.values[hot.numbers.name or ""]
    matrix = data_of(program, node.inputs[1]) if is_linear(program, node, known.type.rank + 1) else None
    if matrix is None or not np.isfinite(matrix).all():
        return False
    times = elements(known.shape) * matrix.size
    if hot.fails or _is_place(program, hot):
        return times >= LEAST
    return times >= LEAST_GUARDED and matrix.size <= MOST_GUARDED


def _is_place(program: Program, hot: _Hot) -> bool:
    """Whether numbers are places whatever comes: those of what is largest or smallest among no more."""
    node, known = hot.numbers.producer(), program.term(hot.numbers)
    while is_a(node, *_MOVES) and known is not None and known.type.dtype in INTEGERS:
        of = node.inputs[0]
        node, known = (None, None) if of is None else (of.producer(), program.term(of))
    of = node.inputs[0] if is_a(node, "ArgMax", "ArgMin") else None
    among = program.term(of)
    if node is None or among is None or not among.type.rank:
        return False
    size = among.shape[number(node, "axis", 0) % among.type.rank]
    return isinstance(size, int) and size <= hot.depth


def _take(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Take the rows that numbers say."""
    hot, made = _hot(program, node.inputs[0]), draft.nodes("row")
    table, *bias = node.inputs[1:]
    if hot is None or table is None:  # what another one changed
        return False
    if number(node, "transB", 0):
        table = made.transposed(table, [1, 0])
    at = hot.numbers
    if not hot.fails and not _is_place(program, hot):
        at, table = _guarded(program, made, hot, table, node)
    rows = made.node("Gather", [table, at])
    for row in bias:
        rows = rows if row is None else made.node("Add", [rows, row])
    return draft.replace(node, made, [rows])


def _guarded(program: Program, made: NewNodes, hot: _Hot, table: ir.Value, node: ir.Node) -> tuple[ir.Value, ir.Value]:
    """Numbers that are of a last row of zeros where they are no place's, and the table with that row."""
    matrix = data_of(program, node.inputs[1])
    assert matrix is not None
    zeros = made.held(np.zeros((1, matrix.size // hot.depth), matrix.dtype))
    nothing, depth = made.held(np.array(0, np.int64)), made.held(np.array(hot.depth, np.int64))
    at = made.cast(hot.numbers, ir.DataType.INT64)
    if hot.wraps:
        at = made.node("Where", [made.node("Less", [at, nothing]), made.node("Add", [at, depth]), at])
    at = made.node("Where", [made.node("Less", [at, depth]), at, depth])
    at = made.node("Where", [made.node("Less", [at, nothing]), depth, at])
    return at, made.joined([table, zeros], 0)
