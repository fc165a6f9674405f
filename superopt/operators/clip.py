"""Elements held within bounds."""

from __future__ import annotations

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Shape
from superopt.operators.composite import Composite
from superopt.operators.constant import Scalar
from superopt.operators.declare import operator
from superopt.operators.element_types import demand_computed
from superopt.operators.extrema import Max, Min
from superopt.operators.layout import Expand
from superopt.operators.nodes import Emitter, NotUnderstood, Source
from superopt.operators.pointwise import Relu
from superopt.term import Term, make


@operator("clip", onnx="Clip")
class Clip(Composite):
    """`y = min(max(x, low), high)`: high, where low is above it."""

    def shape(self, x: Shape, low: Shape, high: Shape) -> Shape:  # type: ignore[override]
        """The shape of the input; the bounds are numbers."""
        require(len(low) == 0 == len(high), f"clip: the bounds {low} and {high} are no numbers")
        return x

    def eval(self, ring: Carrier, x: Array, low: Array, high: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, x, low, high)

    def definition(self, *inputs: Term) -> Term:
        """The larger, then the smaller."""
        x, low, high = inputs
        return Min()(Max()(x, Expand((), x.shape)(low)), Expand((), x.shape)(high))

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """A bound that is missing is the largest finite number."""
        x = node.inputs[0]
        assert x is not None
        demand_computed((Relu()(x),))
        largest = float(np.finfo(x.type.dtype).max)
        given = [*node.inputs[1:3], None, None] if node.opset >= 11 else _attributes(node)
        low, high = (make(Scalar(d)) if b is None else b for b, d in zip(given, (-largest, largest), strict=False))
        return make(cls(), (x, low, high))

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """Before opset 11 the bounds are attributes, so they must be numbers; onnxruntime then refuses a low above the
        high, as drawn ones of a kernel may be, and the high alone means the same.
        """
        if out.opset >= 11:
            return out.node("Clip", inputs)
        low, high = (out.constant(name) for name in inputs[1:])
        if low is None or high is None:
            raise NotUnderstood("before opset 11 the bounds of Clip are numbers")
        return out.node("Clip", inputs[:1], {"min": min(float(low), float(high)), "max": float(high)})


def _attributes(node: Source) -> list[Term | None]:
    given = [node.attributes.get(name) for name in ("min", "max")]
    return [None if bound is None else make(Scalar(float(bound))) for bound in given]
