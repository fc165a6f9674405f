"""Reductions: what an operator makes of all elements along some axes. The result does not have these axes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Dim, Shape, product
from superopt.operators.attributes import attr
from superopt.operators.declare import operator
from superopt.operators.declared import Declared
from superopt.operators.layout import positive_axis, reshaped
from superopt.operators.nodes import Emitter, NotUnderstood, Source, pass_over
from superopt.term import FACTS, Term, make


class Reduction(Declared):
    """Base of the reductions: shape rule, reading, writing."""

    axes: tuple[int, ...]
    since_input: ClassVar[int] = 18
    """From which opset on ONNX takes the axes as an input."""

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """The sizes of the axes that stay."""
        rising = list(self.axes) == sorted(set(self.axes)) and all(0 <= a < len(x) for a in self.axes)
        require(rising, f"{self.name}: {self.axes} are not axes of {x} in rising order")
        return tuple(d for a, d in enumerate(x) if a not in self.axes)

    def flops(self, result: Shape, *shapes: Shape) -> Dim:
        """One operation an element."""
        return product(shapes[0])

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """Axes as an attribute or a constant input; none given are all, or with `noop_with_empty_axes` none."""
        x = node.inputs[0]
        assert x is not None
        pass_over(node, "keepdims", "noop_with_empty_axes")  # where no axis is reduced, or all are
        axes = _axes(cls, node, x.type.rank)
        if not axes:
            return x if cls.of_one_is_itself else _refuse("reduces no axis")
        y = make(cls(tuple(axes)), (x,))  # type: ignore[call-arg]
        if not node.attributes.get("keepdims", 1):
            return y
        return reshaped(y, cls.of(tuple(axes)).kept(x.shape))

    joins: ClassVar[str | None] = None
    """The operator that makes the result of a whole from those of its parts."""

    @classmethod
    def of(cls, axes: tuple[int, ...]) -> Reduction:
        """The reduction along axes."""
        return cls(axes)  # type: ignore[call-arg]

    nests: ClassVar[bool] = False
    """Along some axes, and then along others, it is that along all of them."""
    of_equal_is_each: ClassVar[bool] = False
    """Of elements that are equal it is each of them."""
    monotone: ClassVar[bool] = False
    """What grows with its argument, as a positive part, may be applied before or after."""

    of_one_is_itself: ClassVar[bool] = True
    """Along no axes it is its input."""

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """Without the axes that are reduced."""
        return self.written(out, *inputs, keeping=False) if self.axes else out.node("Identity", inputs)

    def written(self, out: Emitter, *inputs: str, keeping: bool) -> str:
        """A node that keeps its axes, with one place each, or does not; they are an input from some opset on."""
        assert self.onnx is not None
        if out.opset >= self.since_input:
            return out.node(self.onnx, (*inputs, out.integers(self.axes)), {"keepdims": int(keeping)})
        return out.node(self.onnx, inputs, {"axes": list(self.axes), "keepdims": int(keeping)})

    def kept(self, x: Shape) -> Shape:
        """The shape of the result where the axes are kept."""
        return tuple(1 if a in self.axes else d for a, d in enumerate(x))


def _axes(cls: type[Reduction], node: Source, rank: int) -> list[int]:
    given = node.attributes.get("axes")
    if given is None and len(node.inputs) > 1 and node.inputs[1] is not None:
        given = node.constant(1)
        if given is None:
            raise NotUnderstood("the axes are computed while the model runs")
    if given is None or not len(given):
        return [] if node.attributes.get("noop_with_empty_axes", 0) == 1 else list(range(rank))
    return sorted(positive_axis(int(a), rank) for a in given)


def _refuse(why: str) -> Term:
    raise NotUnderstood(why)


@operator("sum", onnx="ReduceSum")
class Sum(Reduction):
    """`y = Σ x` along axes."""

    since_input = 13
    keeps = frozenset({"nonnegative"})
    joins = "add"
    nests = True
    linear = (0,)
    zero = True
    laws = """
    (law sum-matmul (given (?x m k) (?w k n))
      (= (sum (0) (matmul ?x ?w)) (sum (0) (mul ?w (expand (0) (sum (0) ?x))))))
    (law sum-matmul (given (?x m k) (?w k n))
      (= (sum (1) (matmul ?x ?w)) (sum (1) (mul ?x (expand (1) (sum (1) ?w))))))
    """
    axes: tuple[int, ...] = attr(sample=[(0,), (1,)])

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """The sum."""
        return np.asarray(ring.total(x, self.axes), ring.dtype)


@operator("mean", onnx="ReduceMean")
class Mean(Reduction):
    """`y = Σ x / n` along axes of n elements."""

    keeps = frozenset({"nonnegative"})
    needs = frozenset({"div"})
    nests = True
    of_equal_is_each = True
    linear = (0,)
    zero = True
    laws = """
    (law mean-matmul (given (?x m k) (?w k n))
      (= (mean (0) (matmul ?x ?w)) (sum (0) (mul ?w (expand (0) (mean (0) ?x))))))
    (law mean-matmul (given (?x m k) (?w k n))
      (= (mean (1) (matmul ?x ?w)) (sum (1) (mul ?x (expand (1) (mean (1) ?w))))))
    """
    axes: tuple[int, ...] = attr(sample=[(0,), (1,)])

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """The sum over the count."""
        total = np.asarray(ring.total(x, self.axes), ring.dtype)
        count = ring.constant(int(np.prod([x.shape[a] for a in self.axes])))
        return ring.div(total, np.broadcast_to(count, total.shape))


@operator("largest", onnx="ReduceMax")
class Largest(Reduction):
    """`y = max x` along axes."""

    keeps = frozenset(FACTS)
    joins = "max"
    nests = True
    of_equal_is_each = True
    monotone = True
    needs = frozenset({"order"})
    zero = True
    axes: tuple[int, ...] = attr(sample=[(0,), (1,)])

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """The maximum."""
        return ring.largest(x, self.axes, np.asarray(True))


@operator("smallest", onnx="ReduceMin")
class Smallest(Reduction):
    """`y = min x` along axes."""

    keeps = frozenset(FACTS)
    joins = "min"
    nests = True
    of_equal_is_each = True
    monotone = True
    needs = frozenset({"order"})
    zero = True
    axes: tuple[int, ...] = attr(sample=[(0,), (1,)])

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """The maximum of −x, negated."""
        minus = ring.constant(-1.0)
        return ring.mul(ring.largest(ring.mul(x, minus), self.axes, np.asarray(True)), minus)
