"""What ONNX's operators do to tensors of sizes: `Shape → Gather → Mul → Concat`, computed on `Dim`s, not on numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.bounds import nonnegative
from superopt.dim import Dim, equal, product
from superopt.errors import Undecided
from superopt.onnx_io.tensors import NUMPY_NAMES
from superopt.relations import are_equal

LONGEST = 256
"""A tensor of more elements is no shape."""

EXACT = {"bool": 1, "int32": 2**31 - 1, "int64": 2**63 - 1, "float32": 2**24, "float64": 2**53}
"""Element types in which sizes are exact, each up to this."""

_LARGEST = (2**31 - 1, 2**63 - 1)
"""Ends of slices that say that all is meant."""

Function = Callable[..., Any]
"""Of a node's attributes, and of its inputs as arrays of sizes; absent ones are None."""


@dataclass(frozen=True, eq=False)
class Quotient:
    """A size divided by a positive one, in floats, where that may leave a rest."""

    top: Dim
    bottom: Dim

    def __mul__(self, other: Dim) -> Dim | Quotient:
        if not isinstance(self.bottom, int) or self.bottom & (self.bottom - 1):
            raise Undecided("a quotient was rounded, and is multiplied")
        return _ratio(self.top * other, self.bottom)

    __rmul__ = __mul__


@dataclass(frozen=True, eq=False)
class Sizes:
    """A tensor of sizes: an array of `Dim`s (bools where it holds truth values, or `Quotient`s) and its dtype."""

    dims: Array
    dtype: str


def sizes_of(array: Array) -> Sizes:
    """Numbers as sizes. Raises `Undecided` for those that are not exact, and what `Fraction` raises."""
    if array.dtype.name not in EXACT or array.size > LONGEST:
        raise Undecided(f"{array.size} numbers of type {array.dtype} are no sizes")
    return Sizes(_each(_plain, array.astype(object)), array.dtype.name)


def compute(op_type: str, attributes: Mapping[str, Any], inputs: Sequence[Sizes | None]) -> Sizes | None:
    """What an operator gives; None where it has no meaning here, or the sizes leave it open."""
    first = inputs[1 if op_type == "Where" else 0]
    own = first.dtype if first is not None else ""
    dtype = "bool" if op_type in COMPARISONS else own
    if op_type == "Cast":
        to = attributes["to"]  # the name of a type before opset 6
        dtype = NUMPY_NAMES.get(ir.DataType(to), "") if isinstance(to, int) else ""
    if op_type == "CastLike":
        dtype = inputs[1].dtype if inputs[1] is not None else ""
    function = OF_FLOATS.get(op_type) if own.startswith("float") else None
    function = function or TABLE.get(op_type)
    if function is None or dtype not in EXACT:
        return None
    try:
        made = function({**attributes, "dtype": dtype}, *(None if i is None else i.dims for i in inputs))
    except (Undecided, ArithmeticError, LookupError, TypeError, ValueError):
        return None  # open, or a form that the table does not have
    dims = np.array(made, dtype=object)
    fits = dims.size <= LONGEST and all(abs(d) <= EXACT[dtype] for d in dims.flat if isinstance(d, int))
    return Sizes(dims, dtype) if fits else None  # of what does not fit, runtimes keep the lower bits


def _each(function: Callable[..., Any], *arrays: Array) -> Array:
    """Element by element, with broadcasting."""
    return np.array(np.frompyfunc(function, len(arrays), 1)(*arrays), dtype=object)


def _elementwise(function: Callable[..., Any]) -> Function:
    return lambda attributes, *arrays: _each(function, *arrays)


def _folded(function: Callable[[Any, Any], Any]) -> Function:
    return lambda attributes, *arrays: reduce(lambda a, b: _each(function, a, b), arrays)


def _plain(value: Any) -> Any:
    """A float as a quotient of integers, short enough for its products with sizes to be exact."""
    if not isinstance(value, float):
        return value
    fraction = Fraction(value)
    if fraction.denominator > 2**8 or abs(fraction.numerator) >= 2**24:
        raise Undecided(f"{value} times a size would be rounded")
    return _ratio(fraction.numerator, fraction.denominator)


def _numbers(array: Array | None) -> list[int]:
    numbers = [] if array is None else list(array.flat)
    if not all(isinstance(n, int) for n in numbers):
        raise Undecided(f"{numbers} are not all decided")
    return numbers


def _same(a: Dim, b: Dim) -> bool:
    """Also where sizes are 0: what a decoder has seen before its first token is empty."""
    apart = nonnegative(a - b - 1, least=0) or nonnegative(b - a - 1, least=0)
    return not apart and bool(equal(a, b))


def _at_most(a: Dim, b: Dim) -> bool:
    """Also where sizes are 0."""
    if not nonnegative(b - a, least=0) and not nonnegative(a - b - 1, least=0):
        raise Undecided(f"whether {a} <= {b} is not decided")
    return nonnegative(b - a, least=0)


def _divided(a: Dim, b: Dim) -> Dim:
    """Of integers: towards zero in ONNX, which is downwards for sizes only."""
    if not nonnegative(a) or not nonnegative(b - 1):
        raise Undecided(f"the signs of {a} and {b} are not decided")
    return a // b


def _ratio(a: Dim, b: Dim) -> Dim | Quotient:
    if not nonnegative(b - 1):
        raise Undecided(f"the sign of {b} is not decided")
    whole = a // b
    return whole if are_equal(whole * b, a) else Quotient(a, b)


def _cast(attributes: Mapping[str, Any], values: Array) -> Array:
    if attributes["dtype"] == "bool":
        return _each(lambda v: not _same(v, 0), values)
    if attributes["dtype"].startswith("int"):
        values = _each(lambda v: _divided(v.top, v.bottom) if isinstance(v, Quotient) else v, values)
    return _each(lambda v: int(v) if isinstance(v, bool) else v, values)


def _reshape(attributes: Mapping[str, Any], values: Array, shape: Array) -> Array:
    return values.reshape([values.shape[i] if d == 0 else d for i, d in enumerate(_numbers(shape))])


def _unsqueeze(attributes: Mapping[str, Any], values: Array, axes: Array | None = None) -> Array:
    return np.expand_dims(values, tuple(attributes.get("axes") or _numbers(axes)))


def _squeeze(attributes: Mapping[str, Any], values: Array, axes: Array | None = None) -> Array:
    return np.squeeze(values, tuple(attributes.get("axes") or _numbers(axes)) or None)


def _slice(attributes: Mapping[str, Any], values: Array, *inputs: Array | None) -> Array:
    """Along any axes, backwards too."""
    given = [*inputs, *[None] * 4]
    starts, ends = (attributes.get(n) or _numbers(given[i]) for i, n in enumerate(("starts", "ends")))
    axes = attributes.get("axes") or _numbers(given[2]) or range(len(starts))
    steps = _numbers(given[3]) or [1] * len(starts)
    cut = [slice(None)] * values.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if step < 0 and end in _LARGEST:
            raise Undecided("backwards to the largest number: to nothing in ONNX, to the first in onnxruntime")
        first = max(start, -values.shape[axis]) if step < 0 else start  # before the first is there, in Python nowhere
        cut[axis] = slice(first, end, step)
    return values[tuple(cut)]


def _range(attributes: Mapping[str, Any], start: Array, limit: Array, delta: Array) -> list[Dim]:
    """Of a length that is decided."""
    first, (length,), (step,) = start.item(), _numbers(np.array(limit - start)), _numbers(delta)
    return [first + i for i in range(0, length, step)[: LONGEST + 1]]


def _product(attributes: Mapping[str, Any], values: Array, axes: Array | None = None) -> Any:
    """Of the elements of a vector, or each by itself where no axes may mean none."""
    if attributes.get("noop_with_empty_axes") == 1 and not (attributes.get("axes") or _numbers(axes)):
        return values
    if values.ndim != 1:
        raise Undecided("no vector")
    whole = product(list(values))
    return [whole] if attributes.get("keepdims", 1) else whole


COMPARISONS = frozenset(["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"])

TABLE: dict[str, Function] = {
    "Abs": _elementwise(lambda a: a if _at_most(0, a) else a * -1),
    "Add": _elementwise(operator.add),
    "Cast": _cast,
    "CastLike": lambda attributes, values, like: _cast(attributes, values),
    "Ceil": _elementwise(lambda a: -(-a.top // a.bottom) if isinstance(a, Quotient) else a),
    "Concat": lambda attributes, *parts: np.concatenate(parts, attributes.get("axis", 1)),
    "Div": _elementwise(_divided),
    "Equal": _elementwise(_same),
    "Expand": lambda _, values, to: np.broadcast_to(values, np.broadcast_shapes(values.shape, tuple(_numbers(to)))),
    "Floor": _elementwise(lambda a: a.top // a.bottom if isinstance(a, Quotient) else a),
    "Gather": lambda attributes, values, at: np.take(values, at.astype(np.int64), attributes.get("axis", 0)),
    "Greater": _elementwise(lambda a, b: not _at_most(a, b)),
    "GreaterOrEqual": _elementwise(lambda a, b: _at_most(b, a)),
    "Identity": _elementwise(lambda a: a),
    "Less": _elementwise(lambda a, b: not _at_most(b, a)),
    "LessOrEqual": _elementwise(_at_most),
    "Max": _folded(lambda a, b: b if _at_most(a, b) else a),
    "Min": _folded(lambda a, b: a if _at_most(a, b) else b),
    "Mod": _elementwise(lambda a, b: a - _divided(a, b) * b),
    "Mul": _elementwise(operator.mul),
    "Neg": _elementwise(lambda a: a * -1),
    "Range": _range,
    "ReduceProd": _product,
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Sub": _elementwise(operator.sub),
    "Transpose": lambda attributes, values: np.transpose(values, attributes.get("perm")),
    "Unsqueeze": _unsqueeze,
    "Where": _elementwise(lambda choice, a, b: a if choice else b),
}
"""What each operator does to sizes."""

OF_FLOATS: dict[str, Function] = {"Div": _elementwise(_ratio)}
"""What some do otherwise to floats."""
