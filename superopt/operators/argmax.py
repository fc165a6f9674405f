"""The place of the largest element along an axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.arithmetic.hashes import keyed_hash
from superopt.demands import require
from superopt.dim import Dim, Shape, product
from superopt.operators.attributes import attr
from superopt.operators.declare import operator
from superopt.operators.declared import Declared
from superopt.operators.layout import positive_axis, reshaped
from superopt.operators.nodes import Emitter, NotUnderstood, Source, present
from superopt.term import Term, Type, make


@operator("argmax", onnx="ArgMax")
class ArgMax(Declared):
    """`y = min {i : x[.., i, ..] = max x}` along an axis, which the result does not have: integers."""

    enumerated = False
    jumps = True
    needs = frozenset({"order"})
    axis: int = attr(sample=[1])

    def dtype(self, inputs: Sequence[Type]) -> str:
        """Integers of 64 bits."""
        super().dtype(inputs)
        return "int64"

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """The sizes of the other axes."""
        require(self.axis < len(x), f"argmax: no axis {self.axis} in {x}")
        return (*x[: self.axis], *x[self.axis + 1 :])

    def flops(self, result: Shape, *shapes: Shape) -> Dim:
        """One comparison an element."""
        return product(shapes[0])

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """The first place of the largest; where there is no order, a keyed hash of all in theirs."""
        if "order" in ring.has:
            return np.asarray(np.argmax(x, self.axis), ring.dtype)
        by_place = np.moveaxis(x, self.axis, 0)
        return np.asarray(ring.add(keyed_hash("argmax", *by_place), ring.constant(0.0)), ring.dtype)

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """The first of several equal ones."""
        (x,) = present(node.inputs, 1)
        if node.attributes.get("select_last_index", 0):
            raise NotUnderstood("the last of several equal ones")
        axis = positive_axis(int(node.attributes.get("axis", 0)), x.type.rank)
        y = make(cls(axis), (x,))
        keeps = node.attributes.get("keepdims", 1)
        return reshaped(y, (*x.shape[:axis], 1, *x.shape[axis + 1 :])) if keeps else y

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """Without the axis."""
        return out.node("ArgMax", inputs, {"axis": self.axis, "keepdims": 0})
