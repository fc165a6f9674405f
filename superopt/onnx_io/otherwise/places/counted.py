"""Models that count how often each number comes, and do not add up rows that are one in one place and zero elsewhere.

`one_hot(i).sum(1)` is how a bag of words is written out, its largest elements are which of several tags there are, and
`(x == arange(256)).sum(-1)` is a histogram: of 200 words among 4,000 that is 800,000 numbers, which are written and
added up, for 200 that a ScatterElements adds to zeros. In onnxruntime 1.32 eight such rows take 17 ms so, and 15 µs
with it; 16,384 shades of 256 take 46 ms, and 74 µs. A number that is no place's adds zero, somewhere: it is clipped,
and one only where that left it what it was. Counts are exact; in floating-point numbers where fewer than 2²⁴ are
counted, and where sizes do not tell that, all stays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.dim import Shape
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.opsets import highest_opset, outdated, raise_opset
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import EXACT, Reduction, data_of, reduction
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import is_a, number
from superopt.onnx_io.skeleton import opset_of
from superopt.relations import is_one
from superopt.substitution import elements

OLDEST, ADDING = 13, 16
"""Since these opsets axes are inputs, and a ScatterElements may add to what is there."""

LEAST, EACH = 2**12, 16
"""So many numbers are added up at least where each symbolic size is this."""

_INTEGERS = ("int32", "int64")
_FLOATS = ("float32", "float64")
_REDUCES = {"ReduceSum": _INTEGERS + _FLOATS, "ReduceMax": _INTEGERS + _FLOATS, "ReduceMean": _FLOATS}
"""What reduces such rows, of which types."""


class _Spread(NamedTuple):
    """Numbers, that each become a row which is one in the place of that number, along an axis of so many places."""

    numbers: ir.Value
    dtype: str
    shape: Shape
    """Of the numbers, without that axis."""
    axis: int
    places: int
    wraps: bool
    """Whether -1 is the last place."""
    lies: bool
    """Whether the numbers have that axis too, of one element."""


class _Count(NamedTuple):
    """What is counted: numbers, and along which of their axes, in which type and how the counts are given."""

    spread: _Spread
    what: Reduction

    @property
    def counted(self) -> list[int]:
        """The axes of the numbers along which they are counted."""
        return [axis - (axis > self.spread.axis) for axis in self.what.axes]

    @property
    def before(self) -> list[int]:
        """The axes of the numbers that stay before that of the places."""
        return [i for i in range(self.spread.axis) if i not in self.counted]

    @property
    def after(self) -> list[int]:
        """The axes of the numbers that stay behind that of the places."""
        return [i for i in range(self.spread.axis, len(self.spread.shape)) if i not in self.counted]


def counted(program: Program) -> dict[int, Put]:
    """How to count numbers, by the places of what adds up rows of ones and zeros."""
    if opset_of(program.model) < OLDEST:
        return {}
    found = of_nodes(program, lambda node: _count(program, node) if node.op_type in _REDUCES else None)
    puts: dict[int, Put] = {i: partial(_put, count) for i, count in found.items()}
    return puts if puts and _may_add(program) else {}


def _may_add(program: Program) -> bool:
    """Whether the model is of an opset in which numbers may be added to what is there, or may be as it stands."""
    is_there = opset_of(program.model) >= ADDING
    return is_there or (highest_opset(program) >= ADDING and not outdated(program, ADDING))


def _count(program: Program, node: ir.Node) -> _Count | None:
    """What a node counts, where that takes time."""
    what = reduction(program, node, *_REDUCES)
    if what is None or what.dtype not in _REDUCES[node.op_type]:
        return None
    source = what.of.producer()
    while is_a(source, "Cast", "Identity"):
        source = None if source.inputs[0] is None else source.inputs[0].producer()
    way = None if not is_a(source, *_WAYS) else _WAYS[source.op_type]
    spread = None if way is None or source is None or None in source.inputs else way(program, source)
    if spread is None or spread.axis in what.axes or is_one(what.many) or data_of(program, spread.numbers) is not None:
        return None
    count = _Count(spread, what)
    is_sum_of_integers = node.op_type == "ReduceSum" and what.dtype in _INTEGERS
    is_many = elements(spread.shape, EACH) * spread.places >= LEAST
    return count if is_many and (what.is_exact or is_sum_of_integers) and _is_laid(count) else None


def _is_laid(count: _Count) -> bool:
    """Whether the axes along which numbers are counted can be made one."""
    sizes = [count.spread.shape[axis] for axis in (*count.counted, *count.after)]
    return len(count.counted) == 1 or all(isinstance(size, int) for size in sizes)


def _named(program: Program, node: ir.Node) -> _Spread | None:
    """Numbers that a OneHot spreads."""
    numbers, depth, values = (v for v in node.inputs if v is not None)
    size, ends, known = data_of(program, depth), data_of(program, values), program.term(numbers)
    if known is None or known.type.dtype not in _INTEGERS or size is None or size.size != 1 or ends is None:
        return None
    places, rank = int(size.reshape(-1)[0]), known.type.rank
    axis = number(node, "axis", -1)
    is_plain = ends.reshape(-1).tolist() == [0, 1] and not np.signbit(ends.astype(np.float64)).any()
    if not is_plain or not 1 <= places < EXACT or not -rank - 1 <= axis <= rank:
        return None
    return _Spread(numbers, known.type.dtype, known.shape, axis % (rank + 1), places, wraps=True, lies=False)


def _compared(program: Program, node: ir.Node) -> _Spread | None:
    """Numbers that are compared with all places, along an axis of their own or in front."""
    for numbers, places in (node.inputs, node.inputs[::-1]):
        data = data_of(program, places)
        known = program.term(numbers)
        if numbers is None or known is None or data is None or known.type.dtype not in _INTEGERS + _FLOATS:
            continue
        if not 1 < data.size < EXACT or max(data.shape) != data.size:
            continue
        if not np.array_equal(data.reshape(-1), np.arange(data.size)):
            continue
        rank = max(known.type.rank, data.ndim)
        axis = rank - data.ndim + data.shape.index(data.size)
        if known.type.rank == rank and is_one(known.shape[axis]):
            shape = (*known.shape[:axis], *known.shape[axis + 1 :])
            return _Spread(numbers, known.type.dtype, shape, axis, data.size, wraps=False, lies=True)
        if known.type.rank == rank - 1 and not axis:
            return _Spread(numbers, known.type.dtype, known.shape, 0, data.size, wraps=False, lies=False)
    return None


_WAYS: dict[str, Callable[[Program, ir.Node], _Spread | None]] = {"Equal": _compared, "OneHot": _named}


def _put(count: _Count, draft: Draft, node: ir.Node) -> bool:
    """Count numbers."""
    if opset_of(draft.model) < ADDING:
        raise_opset(draft.model, ADDING)
    made = draft.nodes("count")
    result = _counts(made, count, _laid(made, count, _numbers(count, node)))
    held = partial(np.array, dtype=count.what.dtype)
    if node.op_type == "ReduceMax":
        result = made.node("Min", [result, made.held(held(1))])
    if node.op_type == "ReduceMean":
        result = made.node("Div", [result, made.held(held(count.what.many))])
    if count.what.keeps:
        result = made.node("Unsqueeze", [result, made.integers(count.what.axes)])
    return draft.replace(node, made, [result])


def _numbers(count: _Count, node: ir.Node) -> ir.Value:
    """The numbers in a copy of the model, where this node counts them."""
    source = node
    while not is_a(source, *_WAYS):
        of = source.inputs[0]
        made = None if of is None else of.producer()
        assert made is not None
        source = made
    return next(v for v in source.inputs if v is not None and v.name == count.spread.numbers.name)


def _laid(made: NewNodes, count: _Count, numbers: ir.Value) -> ir.Value:
    """Numbers with one axis along which they are counted, where the places are to be."""
    spread, before, after = count.spread, count.before, count.after
    if spread.lies:
        numbers = made.node("Squeeze", [numbers, made.integers([spread.axis])])
    order = [*before, *count.counted, *after]
    if order != sorted(order):
        numbers = made.transposed(numbers, order)
    if len(count.counted) > 1:
        sizes = [size for size in (count.what.many, *(spread.shape[axis] for axis in after)) if isinstance(size, int)]
        numbers = made.reshaped(numbers, [0] * len(before) + sizes)
    return numbers


def _counts(made: NewNodes, count: _Count, numbers: ir.Value) -> ir.Value:
    """How often each place comes among numbers, along the axis in which they lie."""
    spread, axis, dtype = count.spread, len(count.before), np.dtype(count.what.dtype)
    at = numbers if spread.dtype in _INTEGERS else _cast(made, numbers, "int64")
    ends = (-spread.places if spread.wraps else 0, spread.places - 1)
    kind = spread.dtype if spread.dtype in _INTEGERS else "int64"
    at = made.node("Clip", [at, *(made.held(np.array(end, kind)) for end in ends)])
    same = made.node("Equal", [at if kind == spread.dtype else _cast(made, at, spread.dtype), numbers])
    ones = _cast(made, same, count.what.dtype)
    zero = ir.AttrTensor("value", ir.tensor(np.zeros(1, dtype)))
    zeros = made.node("ConstantOfShape", [_shape(made, count, numbers)], [zero])
    adding = [ir.AttrInt64("axis", axis), ir.AttrString("reduction", "add")]
    return made.node("ScatterElements", [zeros, at, ones], adding)


def _shape(made: NewNodes, count: _Count, numbers: ir.Value) -> ir.Value:
    """Of what is counted: that of the numbers, but along the axis in which they lie as many as there are places."""
    spread, axis = count.spread, len(count.before)
    sizes = [[spread.shape[i] for i in axes] for axes in (count.before, count.after)]
    known = [[size for size in side if isinstance(size, int)] for side in sizes]
    if known == sizes:
        return made.integers([*known[0], spread.places, *known[1]])
    parts = [made.integers([spread.places])]
    if count.before:
        parts.insert(0, made.node("Shape", [numbers], [ir.AttrInt64("start", 0), ir.AttrInt64("end", axis)]))
    if count.after:
        parts.append(made.node("Shape", [numbers], [ir.AttrInt64("start", axis + 1)]))
    return made.joined(parts, 0)


def _cast(made: NewNodes, x: ir.Value, dtype: str) -> ir.Value:
    return made.cast(x, ir.DataType.from_numpy(np.dtype(dtype)))
