"""Reductions that are made of others: norms, and logarithms of sums."""

from __future__ import annotations

from superopt.arithmetic.carrier import Array, Carrier
from superopt.operators.attributes import attr
from superopt.operators.composite import Composite
from superopt.operators.declare import operator
from superopt.operators.differences import Abs, Sub
from superopt.operators.functions import Exp, Log
from superopt.operators.layout import Expand
from superopt.operators.pointwise import Add, Mul, Sqrt
from superopt.operators.reductions import Largest, Reduction, Sum
from superopt.term import Term


class CompositeReduction(Composite, Reduction):
    """Base of the reductions that are made of others."""

    of_one_is_itself = False

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, x)


@operator("sum_square", onnx="ReduceSumSquare")
class SumSquare(CompositeReduction):
    """`y = Σ x²` along axes."""

    axes: tuple[int, ...] = attr(sample=[(0,), (1,)])

    def definition(self, *inputs: Term) -> Term:
        """The sum of squares."""
        (x,) = inputs
        return Sum(self.axes)(Mul()(x, x))


@operator("norm1", onnx="ReduceL1")
class Norm1(CompositeReduction):
    """`y = Σ |x|` along axes."""

    axes: tuple[int, ...] = attr(sample=[(0,), (1,)])

    def definition(self, *inputs: Term) -> Term:
        """The sum of magnitudes."""
        return Sum(self.axes)(Abs()(*inputs))


@operator("norm2", onnx="ReduceL2")
class Norm2(CompositeReduction):
    """`y = √Σ x²` along axes."""

    axes: tuple[int, ...] = attr(sample=[(0,), (1,)])

    def definition(self, *inputs: Term) -> Term:
        """The root of the sum of squares."""
        (x,) = inputs
        return Sqrt()(Sum(self.axes)(Mul()(x, x)))


@operator("log_sum", onnx="ReduceLogSum")
class LogSum(CompositeReduction):
    """`y = ln Σ x` along axes."""

    axes: tuple[int, ...] = attr(sample=[(0,), (1,)])

    def definition(self, *inputs: Term) -> Term:
        """The logarithm of the sum."""
        return Log()(Sum(self.axes)(*inputs))


@operator("log_sum_exp", onnx="ReduceLogSumExp")
class LogSumExp(CompositeReduction):
    """`y = ln Σ eˣ` along axes, computed from `x − max x` (stable only in this form)."""

    axes: tuple[int, ...] = attr(sample=[(0,), (1,)])

    def definition(self, *inputs: Term) -> Term:
        """Shifted by the maximum, which is added back."""
        (x,) = inputs
        top = Largest(self.axes)(x)
        kept = tuple(a for a in range(x.type.rank) if a not in self.axes)
        shifted = Sub()(x, Expand(kept, x.shape)(top))
        return Add()(Log()(Sum(self.axes)(Exp()(shifted))), top)
