"""A node as declarations read it: its inputs as terms, its attributes as plain values, its sizes as far as known."""

from __future__ import annotations

import math
from collections import UserDict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx.defs
import onnx.helper
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.dim import Dim, Shape
from superopt.errors import InvalidModel
from superopt.onnx_io.known_sizes import KnownSizes
from superopt.operators import NotUnderstood
from superopt.term import Term

OLDEST_WITH_SIZES = 10
"""Before it, ONNX had no remainder of integers, and cut at fixed bounds only: sizes could not be written."""


@dataclass
class NodeSource:
    """A node as declarations read it (`operators.Source`)."""

    op_type: str
    opset: int
    attributes: Mapping[str, Any]
    inputs: Sequence[Term | None]
    outputs: int
    names: Sequence[str]
    known: KnownSizes
    enter: Callable[[str, Array], Term]
    """Makes the variable of a constant that an attribute holds."""
    within: Container[int] = ()
    """The axes within which it ends, if it is a slice, though their sizes do not tell."""
    supposed: Mapping[int, Dim] = field(default_factory=dict)
    """By axis, the sizes that what it gives has whenever the model runs, though its own do not tell."""

    def constant(self, index: int) -> Array | None:
        """The value of an input, where it is known before the model runs."""
        name, constants = self._name(index), self.known.constants
        try:
            return constants.data(name) if name in constants else None
        except InvalidModel:
            return None

    def sizes(self, index: int) -> Shape | None:
        """The elements of an input of integers, where each is known as a number or as a size."""
        constant = self.constant(index)
        if constant is not None:
            return tuple(int(v) for v in constant.flat)
        name = self._name(index)
        if name not in self.known or self.opset < OLDEST_WITH_SIZES:
            return None
        return tuple(self.known[name].dims.flat)

    def ends_within(self, axis: int) -> bool:
        """Whether a slice from the start of an axis ends within it whenever the model runs, though no size tells."""
        return axis in self.within

    def has_to_be(self, shape: Shape) -> Shape:
        """The shape of what it gives, with the sizes that it has whenever the model runs."""
        return tuple(self.supposed.get(axis, d) for axis, d in enumerate(shape))

    def weight(self, attribute: str, shape: Sequence[int], *, repeated: bool = False) -> Term:
        """The numbers of an attribute as a constant of a shape, or one for all. Raises `NotUnderstood` where they do
        not fill it.
        """
        numbers = np.asarray(self.attributes.get(attribute, ()))
        if numbers.size != math.prod(shape) and not (repeated and numbers.size == 1):
            raise NotUnderstood(f"attribute {attribute} holds {numbers.size} numbers, {math.prod(shape)} are expected")
        # ONNX's attributes are of 32-bit floats, or of integers.
        typed = numbers.astype(np.float32 if numbers.dtype.kind == "f" else np.int64)
        return self.enter(attribute, np.broadcast_to(typed, shape) if typed.size == 1 else typed.reshape(shape))

    def _name(self, index: int) -> str:
        return self.names[index] if index < len(self.names) else ""


class Attributes(UserDict[str, Any]):
    """The attributes of a node, and which of them a declaration looked at."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__(given)
        self.read: set[object] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute, or a default, which is of 32 bits like what ONNX gives where none is written."""
        found = super().get(name, default)
        return float(np.float32(found)) if isinstance(found, float) else found

    def __contains__(self, name: object) -> bool:
        self.read.add(name)
        return super().__contains__(name)

    def __iter__(self) -> Iterator[str]:
        raise TypeError("a declaration looks at attributes by name: so one that it does not know is noticed")

    def demand_all_read(self, op_type: str, opset: int) -> None:
        """Raise `NotUnderstood` for one that was not: newer versions of ONNX add some, and none may be dropped."""
        for name in set(self.data) - self.read:
            declared = _schema(op_type, opset).attributes.get(name) if opset else None
            default = None if declared is None else onnx.helper.get_attribute_value(declared.default_value)
            if self.data[name] != default:
                raise NotUnderstood(f"the declaration does not know the attribute {name}")


def _schema(op_type: str, opset: int) -> onnx.defs.OpSchema:
    """An operator of ONNX's own; the newest of its name where it came later, as norms that runtimes had before."""
    try:
        return onnx.defs.get_schema(op_type, opset, "")
    except onnx.defs.SchemaError:
        return onnx.defs.get_schema(op_type)


def python_value(attribute: ir.Attr) -> Any:
    """An attribute as a plain value; a tensor as an array. Raises `NotUnderstood` for a reference."""
    if attribute.is_ref():
        raise NotUnderstood(f"attribute {attribute.name} refers to a function's")
    if attribute.type == ir.AttributeType.TENSOR:
        return np.asarray(attribute.as_tensor().numpy())
    return attribute.value.decode() if isinstance(attribute.value, bytes) else attribute.value
