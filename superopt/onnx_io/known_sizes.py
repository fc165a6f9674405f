"""Values of a model that are made of the sizes of others: which they are, and their elements as `Dim`s."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.dim import Dim, Shape, product
from superopt.errors import InvalidModel, Undecided
from superopt.onnx_io.constants import Constants
from superopt.onnx_io.size_arithmetic import LONGEST, Quotient, Sizes, compute, sizes_of
from superopt.substitution import substitute

MEASURES = ("Shape", "Size")
"""The operators that read a value's shape only."""


@dataclass
class KnownSizes:
    """The values of a model that are made of sizes, by name. What comes out as numbers becomes a constant."""

    constants: Constants
    shape_of: Callable[[str], Shape | None]
    nodes: list[ir.Node] = field(default_factory=list)
    """Those that compute sizes, which stay symbolic."""
    measured: dict[str, frozenset[str]] = field(default_factory=dict)
    """By value of sizes or constant, the values whose shapes it is computed from."""
    _known: dict[str, Sizes] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def __getitem__(self, name: str) -> Sizes:
        return self._known[name]

    def data(self, name: str, values: Mapping[str, int]) -> Array:
        """A value, where its symbols have values. Raises `Undecided` where others remain."""
        known = self._known[name]
        return np.array([_number(d, values) for d in known.dims.flat]).reshape(known.dims.shape).astype(known.dtype)

    def enter(self, node: ir.Node) -> bool:
        """Whether a node computes sizes, given those of the nodes before it; they are known from now on."""
        names = [v.name or "" if v is not None else "" for v in node.inputs]
        measures = node.op_type in MEASURES
        if node.domain or len(node.outputs) != 1 or not names or not (measures or any(n in self._known for n in names)):
            return False
        attributes = {a.name: a.value for a in node.attributes.values() if not a.is_ref()}
        if measures:
            found = self._measured(names[0], node.op_type, attributes.get("start", 0), attributes.get("end"))
        else:
            given = [self._given(n) if n else None for n in names]
            unknown = any(n and g is None for n, g in zip(names, given, strict=True))
            found = None if unknown else compute(node.op_type, attributes, given)
        if found is None:
            return False
        name = node.outputs[0].name or ""
        if all(isinstance(d, int) for d in found.dims.flat):
            self.constants.learn(name, found.dims.astype(found.dtype))
        else:
            self._known[name] = found
            self.nodes.append(node)
        return True

    def trace(self, node: ir.Node) -> None:
        """Note whose shapes the values of a node, which are sizes or constants, are computed from."""
        names = [v.name or "" for v in node.inputs if v is not None]
        found = {n for n in names if node.op_type in MEASURES}
        found.update(*(self.measured.get(n, ()) for n in names))
        if found:
            self.measured.update({v.name or "": frozenset(found) for v in node.outputs})

    def _measured(self, name: str, op_type: str, start: int, end: int | None) -> Sizes | None:
        shape = self.shape_of(name)
        if shape is None:
            return None
        return Sizes(np.array(product(shape) if op_type == "Size" else shape[start:end], dtype=object), "int64")

    def _given(self, name: str) -> Sizes | None:
        """A value of sizes, or a constant that is as small as one."""
        learned = self.constants.learned(name)
        unknown = name in self._known or name not in self.constants
        shape = learned.shape if learned is not None else None if unknown else self.shape_of(name)
        if shape is None or len(shape) > 1 or not all(isinstance(d, int) and d <= LONGEST for d in shape):
            return self._known.get(name)
        try:
            return sizes_of(self.constants.data(name))
        except (InvalidModel, Undecided, ArithmeticError, ValueError):
            return None


def _number(size: Dim | Quotient, values: Mapping[str, int]) -> float:
    if isinstance(size, Quotient):
        return _number(size.top, values) / _number(size.bottom, values)
    number = substitute(size, values)
    if not isinstance(number, int):
        raise Undecided(f"the size {size} has other symbols than {', '.join(values)}")
    return number
