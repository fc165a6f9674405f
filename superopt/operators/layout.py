"""Operators that move elements and change none: transpose, reshape, concat, slice, every, expand (broadcasting)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Dim, Shape, equal, product
from superopt.operators.attributes import attr
from superopt.operators.declare import operator
from superopt.operators.declared import Declared
from superopt.operators.nodes import Emitter, NotUnderstood, Source, concrete, present
from superopt.relations import are_equal, equal_shapes, is_one
from superopt.term import FACTS, Term, make


@operator("transpose", onnx="Transpose")
class Transpose(Declared):
    """`y[i_perm] = x[i]`: axis a of the result is axis perm[a] of the input."""

    keeps = frozenset(FACTS)
    of_weights = True
    linear = (0,)
    zero = True
    moves = True
    perm: tuple[int, ...] = attr(onnx="perm", sample=[(1, 0), (0, 2, 1), (1, 0, 2), (0, 2, 3, 1), (0, 3, 1, 2)])

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """The sizes, permuted."""
        require(sorted(self.perm) == list(range(len(x))), f"transpose: {self.perm} does not permute the axes of {x}")
        return tuple(x[a] for a in self.perm)

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """Axes moved."""
        return x.transpose(self.perm)

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """The default permutation reverses the axes."""
        (x,) = present(node.inputs, 1)
        return make(cls(tuple(node.attributes.get("perm", range(x.type.rank)[::-1]))), (x,))


@operator("reshape", onnx="Reshape")
class Reshape(Declared):
    """`y = x` read in row-major order under another shape of the same size."""

    keeps = frozenset(FACTS)
    of_weights = True
    linear = (0,)
    zero = True
    moves = True
    to: Shape = attr(size=True, least=1)

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """The new shape, of equal product."""
        require(product(x) == product(self.to), f"reshape: {x} and {self.to} differ in size")
        return self.to

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """The same elements."""
        return x.reshape(self.to)  # type: ignore[arg-type]

    @classmethod
    def samples(cls, *shapes: Shape) -> Iterator[Declared]:
        """Each two neighbouring axes merged."""
        (x,) = shapes
        for i in range(len(x) - 1):
            yield cls((*x[:i], x[i] * x[i + 1], *x[i + 2 :]))

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """The shape input must be known, as numbers or sizes; 0 copies a size and -1 takes what remains."""
        x, wanted = present(node.inputs, 1 + ("shape" not in node.attributes))[0], node.attributes.get("shape")
        if wanted is None:
            wanted = node.sizes(1)
        if wanted is None:
            raise NotUnderstood("the shape is computed while the model runs")
        copies = not node.attributes.get("allowzero", 0)
        to = [x.shape[i] if isinstance(d, int) and d == 0 and copies else d for i, d in enumerate(wanted)]
        at = next((i for i, d in enumerate(to) if isinstance(d, int) and d == -1), None)
        if at is not None:
            to[at] = _remaining(x.shape, [d for i, d in enumerate(to) if i != at])
        return reshaped(x, tuple(to))

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """One symbolic size is written as -1."""
        return out.node("Reshape", (inputs[0], out.integers(wildcard(self.to))))


@operator("concat", onnx="Concat")
class Concat(Declared):
    """`z = x followed by y` along an axis."""

    keeps = frozenset(FACTS)
    of_weights = True
    zero = True
    moves = True
    chains = True
    axis: int = attr(onnx="axis", sample=[0, 1])
    laws = ""

    def shape(self, x: Shape, y: Shape) -> Shape:  # type: ignore[override]
        """Sizes add up along the axis and are equal elsewhere."""
        require(len(x) == len(y) and self.axis < len(x), f"concat: no axis {self.axis} in {x} and {y}")
        for i, (a, b) in enumerate(zip(x, y, strict=True)):
            require(i == self.axis or a == b, f"concat along {self.axis}: shapes differ: {x} and {y}")
        return tuple(a + b if i == self.axis else a for i, (a, b) in enumerate(zip(x, y, strict=True)))

    def eval(self, ring: Carrier, x: Array, y: Array) -> Array:  # type: ignore[override]
        """One after the other."""
        return self.eval_chain(ring, x, y)

    def eval_chain(self, ring: Carrier, *arrays: Array) -> Array:
        """All one after the other: in steps, what comes before would be there twice."""
        return np.concatenate(arrays, axis=self.axis)

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """Several inputs are a chain that leans left."""
        inputs = present(node.inputs, len(node.inputs))
        axis = positive_axis(node.attributes.get("axis", 1), inputs[0].type.rank)
        joined = inputs[0]
        for other in inputs[1:]:
            joined = make(cls(axis), (joined, other))
        return joined


@operator("expand", onnx="Expand")
class Expand(Declared):
    """`y[i] = x[i_axes]`: axis k of the input becomes axis axes[k] of the result, repeated along the others."""

    keeps = frozenset(FACTS)
    linear = (0,)
    zero = True
    moves = True
    free: ClassVar[bool] = True
    laws = """
    (law channels-repeat (given (?x c))
      (= (reshape (n c (* h a) (* w b)) (expand (0 2 4 6) (n 1 c 1 h a w b) (expand (1) (n c h w) ?x)))
         (expand (1) (n c (* h a) (* w b)) ?x)))
    """
    axes: tuple[int, ...] = attr(sample=[(), (0,), (1,)])
    to: Shape = attr(size=True, least=1)

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """The declared shape, which has the input's sizes on its axes."""
        require(len(self.axes) == len(x), f"expand: {x} has not one axis for each of {self.axes}")
        require(sorted(set(self.axes)) == list(self.axes), f"expand: the axes {self.axes} do not increase")
        for a, d in zip(self.axes, x, strict=True):
            require(a < len(self.to), f"expand: no axis {a} in {self.to}")
            require(self.to[a] == d, f"expand: {x} does not fit on axes {self.axes} of {self.to}")
        return self.to

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """A view that repeats."""
        aligned = [1] * len(self.to)
        for a, d in zip(self.axes, x.shape, strict=True):
            aligned[a] = d
        return np.broadcast_to(x.reshape(aligned), self.to)  # type: ignore[arg-type]

    def aligned(self) -> Shape:
        """The shape, without leading ones, under which ONNX broadcasts the input to the result by itself."""
        shape: Shape = tuple(d if i in self.axes else 1 for i, d in enumerate(self.to))
        return shape[min(self.axes, default=len(shape)) :]

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """The shape input must be known, as numbers or sizes; it broadcasts with the input's shape."""
        x, wanted = node.inputs[0], node.sizes(1)
        if x is None or wanted is None:
            raise NotUnderstood("the shape is computed while the model runs")
        return spread(x, common_shape([x.shape, wanted]))

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """Written out only where the consumer does not broadcast by itself."""
        aligned = out.node("Reshape", (inputs[0], out.integers(wildcard(self.aligned()))))
        return out.node("Expand", (aligned, out.integers(concrete(self.to, "expand"))))


def common_shape(shapes: list[Shape]) -> Shape:
    """The shape that shapes broadcast to. Raises `NotUnderstood` where symbols leave it open or they do not fit."""
    rank = max(map(len, shapes))
    result: list[Dim] = []
    for column in zip(*((1,) * (rank - len(s)) + s for s in shapes), strict=True):
        wide = [d for d in column if not is_one(d)]
        if any(equal(d, wide[0]) is not True for d in wide):
            raise NotUnderstood(f"whether the shapes {shapes} broadcast is not decided")
        result.append(wide[0] if wide else 1)
    return tuple(result)


def spread(x: Term, to: Shape) -> Term:
    """`x` broadcast to a shape, explicitly; sizes of 1 are dropped from what is repeated."""
    if equal_shapes(x.shape, to):
        return x
    offset = len(to) - len(x.shape)
    kept = [i for i, d in enumerate(x.shape) if not is_one(d)]
    return make(Expand(tuple(i + offset for i in kept), to), (reshaped(x, tuple(x.shape[i] for i in kept)),))


def broadcast(*inputs: Term) -> tuple[Term, ...]:
    """Inputs of a point-wise operator, brought to their common shape by explicit `expand`s."""
    to = common_shape([i.shape for i in inputs])
    return tuple(spread(i, to) for i in inputs)


def reshaped(x: Term, to: Shape) -> Term:
    """`x` under another shape; itself where that is its own."""
    same = equal_shapes(x.shape, to)
    return x if same else make(Reshape(to), (x,))


def wildcard(shape: Shape) -> list[int]:
    """A shape as ONNX's Reshape takes it: one symbolic size becomes -1. Raises `NotUnderstood` for more of them."""
    if sum(not isinstance(d, int) for d in shape) > 1:
        raise NotUnderstood(f"{shape} has more than one symbolic size")
    return [d if isinstance(d, int) else -1 for d in shape]


def positive_axis(axis: int, rank: int) -> int:
    """An axis counted from the front."""
    return axis + rank if axis < 0 else axis


def _remaining(whole: Shape, others: Sequence[Dim]) -> Dim:
    """The size that is left of a shape: first without those sizes that both have, where that leaves no quotient."""
    rest, divisors = list(whole), []
    for d in others:
        at = next((i for i, r in enumerate(rest) if are_equal(r, d)), None)
        if at is None:
            divisors.append(d)
        else:
            del rest[at]
    return product(rest) // product(divisors)
