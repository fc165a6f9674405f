"""Pad: zeros around a tensor, or elements of its own; other numbers that ONNX pads with are joined."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.bounds import nonnegative
from superopt.demands import require
from superopt.dim import Dim, Shape, at_most
from superopt.operators.attributes import attr
from superopt.operators.constant import filled
from superopt.operators.declare import operator
from superopt.operators.declared import Declared
from superopt.operators.layout import Concat, positive_axis
from superopt.operators.nodes import Emitter, NotUnderstood, Source, concrete
from superopt.operators.picks import Slice
from superopt.term import FACTS, Term, make

MODES = ("edge", "reflect", "wrap")
"""ONNX's modes that repeat elements; numpy has them by the same names."""


@operator("pad", onnx="Pad")
class Pad(Declared):
    """`y = x` with zeros around it: `pads` holds the widths before each axis, then after each."""

    keeps = frozenset({"nonnegative", "finite"})
    of_weights = True
    linear = (0,)
    zero = True
    moves = True
    pads: Shape = attr(size=True, sample=[(0, 0, 1, 1, 0, 0, 1, 1)])

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """Each size grows by its two widths."""
        require(len(self.pads) == 2 * len(x), f"pad: {self.pads} are not two widths for each axis of {x}")
        return tuple(d + a + b for d, a, b in zip(x, self.pads[: len(x)], self.pads[len(x) :], strict=True))

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """Zeros around."""
        widths = list(zip(self.pads[: x.ndim], self.pads[x.ndim :], strict=True))
        return np.pad(x, widths) if widths else x  # type: ignore[arg-type]

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """By known widths; negative ones cut. Other numbers than zero are joined, other modes take elements."""
        x, mode = node.inputs[0], node.attributes.get("mode", "constant")
        assert x is not None
        widths = _widths(node, x.type.rank)
        if mode in MODES:
            return _around(x, concrete(widths, "pad"), mode)
        if mode != "constant":
            raise NotUnderstood(f"pads in mode {mode}")
        value, rank = _value(node), x.type.rank
        grown = tuple(map(_grown, widths))
        if value == 0:
            x = x if all(isinstance(w, int) and w == 0 for w in grown) else make(cls(grown), (x,))
        else:
            if "float" not in x.type.dtype:
                raise NotUnderstood(f"pads of {x.type.dtype} by {value}")
            joined = concrete(grown, "pad")
            for axis in range(rank):
                x = _joined(x, axis, (joined[axis], joined[axis + rank]), value)
        cut = [max(-w, 0) if isinstance(w, int) else 0 for w in widths]
        for axis in range(rank):
            before, after = cut[axis], cut[axis + rank]
            x = make(Slice(axis, before, x.shape[axis] - after), (x,)) if before or after else x
        return x

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """With zeros."""
        return _written(out, inputs, self.pads, "constant")


@operator("pad_around")
class PadAround(Declared):
    """`y = x` with elements of its own around it, as numpy's modes have it: the outermost (`edge`), those next to it in
    turn (`reflect`), or those of the other end (`wrap`). Widths are those of `pad`.
    """

    keeps = frozenset(FACTS)
    linear = (0,)
    zero = True
    moves = True
    pads: Shape = attr(size=True, sample=[(0, 0, 1, 1, 0, 0, 1, 1)])
    mode: str = attr(default="reflect")

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """Each size grows by its two widths; a reflection has no more elements than there are but for the outermost."""
        for d, *widths in zip(x, self.pads[: len(x)], self.pads[len(x) :], strict=False):
            for w in widths if self.mode == "reflect" else ():
                require(at_most(w + 1, d), f"pad_around: {w} would reflect more than the axis of {d} has")
        return Pad(self.pads).shape(x)

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """As numpy has it."""
        widths = list(zip(self.pads[: x.ndim], self.pads[x.ndim :], strict=True))
        return np.pad(x, widths, self.mode)  # type: ignore[call-overload, no-any-return]

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """In its mode."""
        return _written(out, inputs, self.pads, self.mode)


def _written(out: Emitter, inputs: Sequence[str], pads: Shape, mode: str) -> str:
    """Widths as an attribute before opset 11, as an input after."""
    if out.opset < 11:
        return out.node("Pad", inputs, {"pads": list(concrete(pads, "pad")), "mode": mode})
    return out.node("Pad", (*inputs, out.integers(pads)), {"mode": mode})


def _grown(width: Dim) -> Dim:
    """By how much an axis grows. Raises `NotUnderstood` where it may grow or shrink."""
    if isinstance(width, int):
        return max(width, 0)
    if not nonnegative(width):
        raise NotUnderstood(f"whether the width {width} is negative depends on the sizes")
    return width


def _widths(node: Source, rank: int) -> Shape:
    """The widths before each axis, then after each."""
    widths = node.attributes.get("pads") if node.opset < 11 else node.sizes(1)
    if widths is None:
        raise NotUnderstood("the widths are computed while the model runs")
    given: Shape = tuple(widths)
    if len(node.inputs) < 4 or node.inputs[3] is None:
        return given
    axes = node.constant(3)
    if axes is None:
        raise NotUnderstood("the axes are computed while the model runs")
    full: list[Dim] = [0] * (2 * rank)
    for i, axis in enumerate(axes.ravel()):
        at = positive_axis(int(axis), rank)
        full[at], full[at + rank] = given[i], given[i + len(given) // 2]
    return tuple(full)


def _value(node: Source) -> float:
    """What is padded with."""
    if node.opset < 11:
        return float(node.attributes.get("value", 0.0))
    if len(node.inputs) < 3 or node.inputs[2] is None:
        return 0.0
    value = node.constant(2)
    if value is None:
        raise NotUnderstood("the number to pad with is computed while the model runs")
    return float(value.item())


def _joined(x: Term, axis: int, widths: tuple[int, int], value: float) -> Term:
    """With so much of a number before and after it."""
    for after, width in enumerate(widths):
        if width:
            number = filled(value, tuple(width if a == axis else d for a, d in enumerate(x.shape)))
            x = make(Concat(axis), (x, number) if after else (number, x))
    return x


def _around(x: Term, widths: tuple[int, ...], mode: str) -> Term:
    """With elements of `x` itself around it."""
    if min(widths, default=0) < 0:
        raise NotUnderstood(f"pads in mode {mode} by negative widths")
    return make(PadAround(widths, mode), (x,)) if any(widths) else x
