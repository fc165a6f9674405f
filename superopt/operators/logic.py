"""Truth values: comparisons make them, Where chooses by them. In every carrier they are 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Shape
from superopt.operators.attributes import attr
from superopt.operators.composite import Composite
from superopt.operators.constant import Scalar, filled
from superopt.operators.declare import operator, reads
from superopt.operators.element_types import ONNX_TYPES, demand_computed
from superopt.operators.extrema import Max, Min
from superopt.operators.layout import Expand, broadcast
from superopt.operators.nodes import Emitter, NotUnderstood, Source, pass_over, present
from superopt.operators.pointwise import Binary, BinaryReal, Pointwise, Relu, Unary, UnaryReal
from superopt.term import REAL, TRUTH, Term, Type, join_dtypes, make


class Comparison(BinaryReal):
    """Base of the comparisons: of two values, a truth value."""

    jumps = True
    needs = frozenset({"order"})
    ordered = True

    def dtype(self, inputs: Sequence[Type]) -> str:
        """Truth values, of inputs of one type."""
        join_dtypes(inputs, self.name)
        return TRUTH


@operator("less", onnx="Less")
class Less(Comparison):
    """`z = 1 where x < y, else 0`."""

    def real(self, x: Array, y: Array) -> Array:  # type: ignore[override]
        """Never where one is not a number."""
        return (x < y).astype(x.dtype)


@operator("less_or_equal", onnx="LessOrEqual")
class LessOrEqual(Comparison):
    """`z = 1 where x ≤ y, else 0`."""

    def real(self, x: Array, y: Array) -> Array:  # type: ignore[override]
        """Never where one is not a number."""
        return (x <= y).astype(x.dtype)


@reads("Greater")
def greater(node: Source) -> Term:
    """The other way round."""
    x, y = present(node.inputs, 2)
    return make(Less(), broadcast(y, x))


@reads("GreaterOrEqual")
def greater_or_equal(node: Source) -> Term:
    """The other way round."""
    x, y = present(node.inputs, 2)
    return make(LessOrEqual(), broadcast(y, x))


@operator("equal", onnx="Equal")
class Equal(Comparison):
    """`z = 1 where x = y, else 0`."""

    commutative = True

    def real(self, x: Array, y: Array) -> Array:  # type: ignore[override]
        """Never where one is not a number."""
        return np.asarray(x == y, x.dtype)


@operator("is_nan", onnx="IsNaN")
class IsNan(UnaryReal):
    """`y = 1 where x is not a number, else 0`."""

    jumps = True
    needs = frozenset({"root"})

    def dtype(self, inputs: Sequence[Type]) -> str:
        """Truth values."""
        return TRUTH

    def real(self, x: Array) -> Array:  # type: ignore[override]
        """As IEEE 754 says."""
        return np.isnan(x).astype(x.dtype)


class Logical(Pointwise):
    """Base of what makes truth values of truth values."""

    def dtype(self, inputs: Sequence[Type]) -> str:
        """Truth values only."""
        for type_ in inputs:
            require(type_.dtype in (TRUTH, REAL), f"{self.name}: truth values are expected, not {type_}")
        return join_dtypes(inputs, self.name)


@operator("not", onnx="Not")
class Not(Logical, Unary):
    """`y = 1 − x` of truth values."""

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """The complement."""
        return ring.add(ring.constant(1.0), ring.mul(ring.constant(-1.0), x))


@operator("and", onnx="And")
class And(Logical, Binary):
    """`z = x · y` of truth values."""

    commutative = True
    zero = True
    linear = (0, 1)

    def eval(self, ring: Carrier, x: Array, y: Array) -> Array:  # type: ignore[override]
        """The product."""
        return ring.mul(x, y)


@operator("or", onnx="Or")
class Or(Logical, Binary):
    """`z = x + y − x · y` of truth values."""

    commutative = True
    zero = True

    def eval(self, ring: Carrier, x: Array, y: Array) -> Array:  # type: ignore[override]
        """The complement of both complements' product."""
        return ring.add(ring.add(x, y), ring.mul(ring.constant(-1.0), ring.mul(x, y)))


@operator("where", onnx="Where")
class Where(Pointwise):
    """`z = x where c is 1, y where it is 0`."""

    def dtype(self, inputs: Sequence[Type]) -> str:
        """The type of what is chosen from."""
        require(inputs[0].dtype in (TRUTH, REAL), f"where: the condition is {inputs[0]}, no truth value")
        return join_dtypes(inputs[1:], self.name)

    def shape(self, c: Shape, x: Shape, y: Shape) -> Shape:  # type: ignore[override]
        """The shape of all three."""
        return super().shape(c, x, y)

    def eval(self, ring: Carrier, c: Array, x: Array, y: Array) -> Array:  # type: ignore[override]
        """`c·x + (1 − c)·y`; chosen in floating point, where what is not chosen may be infinite."""
        if "exp" in ring.has:
            return np.where(c != 0, x, y)
        rest = ring.add(ring.constant(1.0), ring.mul(ring.constant(-1.0), c))
        return ring.add(ring.mul(c, x), ring.mul(rest, y))

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """All three are broadcast."""
        return make(cls(), broadcast(*present(node.inputs, 3)))


@operator("cast")
class Cast(Unary):
    """`y = x` as another type: truth values as 0 and 1, integers and floating-point numbers rounded to nearest."""

    jumps = True
    any_type = True
    linear = (0,)
    zero = True
    to: str = attr(default="float32")

    def dtype(self, inputs: Sequence[Type]) -> str:
        """The type that is named."""
        return self.to

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """The same number."""
        return np.asarray(x, ring.dtype)

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """ONNX numbers its types."""
        return out.node("Cast", inputs, {"to": ONNX_TYPES[self.to]})


@reads("Cast")
def cast(node: Source) -> Term:
    """From any type to floating-point numbers of 32 or 64 bits; to their own type, the input itself."""
    (x,) = present(node.inputs, 1)
    pass_over(node, "saturate", "round_mode")  # of 8-bit floats
    number = int(node.attributes["to"])
    return _as_type(x, next((t for t, n in ONNX_TYPES.items() if n == number), f"ONNX's type {number}"))


@reads("ConstantOfShape")
def constant_of_shape(node: Source) -> Term:
    """A floating-point number over sizes that are known as symbols."""
    sizes, value = node.sizes(0), np.asarray(node.attributes.get("value", np.zeros(1, np.float32)))
    if sizes is None or value.dtype.name not in ONNX_TYPES:
        raise NotUnderstood(f"the sizes are computed while the model runs, or numbers are of type {value.dtype}")
    return Cast(value.dtype.name)(filled(float(value.item()), sizes))


@reads("CastLike")
def cast_like(node: Source) -> Term:
    """To the type of the second input."""
    x, like = present(node.inputs, 2)
    pass_over(node, "saturate", "round_mode")  # of 8-bit floats
    return _as_type(x, like.type.dtype)


def _as_type(x: Term, to: str) -> Term:
    if to == x.type.dtype:
        return x
    if to not in ONNX_TYPES:
        raise NotUnderstood(f"a cast from {x.type.dtype} to {to}")
    return make(Cast(to), (x,))


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
