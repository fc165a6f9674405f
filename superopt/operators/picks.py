"""Elements picked along an axis: slices, every so-many-th, and those of given places."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.bounds import nonnegative
from superopt.demands import require
from superopt.dim import Dim, Shape, at_most
from superopt.operators.attributes import attr
from superopt.operators.declare import operator
from superopt.operators.declared import Declared
from superopt.operators.layout import positive_axis
from superopt.operators.nodes import Emitter, NotUnderstood, Source, concrete
from superopt.relations import are_equal
from superopt.term import FACTS, Term, make

END = 2**63 - 1
"""As the bound of a slice: the end of the axis. Exporters write other large numbers too."""

MOST_PLACES = 4096
"""A slice backwards of an axis with more places stays as it is: each would be written into rules and reports."""


@operator("slice", onnx="Slice")
class Slice(Declared):
    """`y = x[start : stop]` along an axis."""

    keeps = frozenset(FACTS)
    of_weights = True
    linear = (0,)
    zero = True
    moves = True
    axis: int = attr(sample=[0, 1])
    start: Dim = attr(size=True)
    stop: Dim = attr(size=True)

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """`stop - start` along the axis; not empty, and within the input."""
        require(self.axis < len(x), f"slice: no axis {self.axis} in {x}")
        require(self.start < self.stop, f"slice: {self.start} to {self.stop} is empty")
        require(self.stop <= x[self.axis], f"slice: {self.stop} is past the end of axis {self.axis} of {x}")
        return tuple(self.stop - self.start if i == self.axis else d for i, d in enumerate(x))

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """A view of a part."""
        return x[(slice(None),) * self.axis + (slice(self.start, self.stop),)]

    @classmethod
    def samples(cls, *shapes: Shape) -> Iterator[Declared]:
        """Both halves of the first two axes."""
        (x,) = shapes
        for axis, d in enumerate(x[:2]):
            if isinstance(d, int) and d >= 2:
                yield from (cls(axis, 0, d // 2), cls(axis, d // 2, d))

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """Bounds that are attributes (before opset 10) or inputs that are known as numbers or sizes."""
        x = node.inputs[0]
        assert x is not None
        names = ("starts", "ends", "axes", "steps")
        if node.opset < 10:
            given = [node.attributes.get(n) for n in names]
        else:
            given = [
                node.sizes(i) if i < len(node.inputs) and node.inputs[i] is not None else None for i in range(1, 5)
            ]
            if any(i < len(node.inputs) and node.inputs[i] is not None and given[i - 1] is None for i in range(1, 5)):
                raise NotUnderstood("the bounds are computed while the model runs")
        starts, ends, axes, steps = given
        if starts is None or ends is None:
            raise NotUnderstood("the bounds are missing")
        steps = (1,) * len(starts) if steps is None else concrete(steps, "the steps of a slice")
        axes = range(len(starts)) if axes is None else concrete(axes, "the axes of a slice")
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
            at = positive_axis(axis, x.type.rank)
            if step < 1:
                x = _backwards(x, at, start, end, step)
                continue
            x = _cut(x, at, start, end, step, node.ends_within)
            x = x if step == 1 else make(Every(at, step), (x,))
        return x

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """Bounds as attributes before opset 10, as inputs after."""
        if out.opset < 10:
            start, stop = concrete((self.start, self.stop), "slice")
            return out.node("Slice", inputs, {"starts": [start], "ends": [stop], "axes": [self.axis]})
        return out.node("Slice", (*inputs, *(out.integers((v,)) for v in (self.start, self.stop, self.axis))))


@operator("every")
class Every(Declared):
    """`y[i] = x[step · i]` along an axis: the first element of it and every `step`-th after that."""

    keeps = frozenset(FACTS)
    linear = (0,)
    zero = True
    moves = True
    axis: int = attr(sample=[0, 1])
    step: Dim = attr(size=True, least=1, sample=[2])

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """`⌈size / step⌉` along the axis."""
        require(self.axis < len(x), f"every: no axis {self.axis} in {x}")
        return tuple((d + self.step - 1) // self.step if i == self.axis else d for i, d in enumerate(x))

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """A view of a part."""
        return x[(slice(None),) * self.axis + (slice(None, None, self.step),)]

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """A Slice of the whole axis."""
        return self.written(out, *inputs, bounds=(0, END))

    def written(self, out: Emitter, *inputs: str, bounds: Shape) -> str:
        """A Slice within bounds; steps came with opset 10."""
        if out.opset < 10:
            raise NotUnderstood("before opset 10 Slice has no steps")
        return out.node("Slice", (*inputs, *(out.integers((v,)) for v in (*bounds, self.axis, self.step))))


@operator("take")
class Take(Declared):
    """`y[.., i, ..] = x[.., indices[i], ..]` along an axis."""

    linear = (0,)
    zero = True
    moves = True
    axis: int = attr(sample=[0, 1])
    indices: tuple[int, ...] = attr(sample=[(1, 0)])

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """As many along the axis as there are indices, each of which is there."""
        require(self.axis < len(x), f"take: no axis {self.axis} in {x}")
        require(min(self.indices, default=-1) >= 0, f"take: {self.indices} are none, or negative")
        require(at_most(max(self.indices) + 1, x[self.axis]), f"take: {x} has no {max(self.indices)} on {self.axis}")
        return (*x[: self.axis], len(self.indices), *x[self.axis + 1 :])

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """What stands there."""
        return np.take(x, self.indices, axis=self.axis)

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """With its indices as a constant; backwards as a Slice, which runtimes take in half the time of a Gather."""
        first, last = self.indices[0], self.indices[-1]
        if out.opset >= 10 and len(self.indices) > 1 and self.indices == tuple(range(first, last - 1, -1)):
            bounds = (first, last - 1 if last else -END, self.axis, -1)
            return out.node("Slice", (*inputs, *(out.integers((v,)) for v in bounds)))
        return out.node("Gather", (*inputs, out.integers(self.indices)), {"axis": self.axis})


def taken(x: Term, axis: int, indices: Sequence[int]) -> Term:
    """Elements along an axis by their places: a slice where these follow each other."""
    follow = list(indices) == list(range(indices[0], indices[0] + len(indices)))
    return make(Slice(axis, indices[0], indices[-1] + 1) if follow else Take(axis, tuple(indices)), (x,))


class PastTheEnd(NotUnderstood):
    """Whether a slice of neighbours from the start of an axis of several places ends within it is not decided."""

    def __init__(self, axis: int, end: Dim, size: int) -> None:
        super().__init__(f"whether {end} lies within an axis of {size} is not decided")
        self.axis, self.end = axis, end


def _cut(x: Term, axis: int, start: Dim, end: Dim, step: int, ends_within: Callable[[int], bool]) -> Term:
    size = x.shape[axis]
    start = _within(start, size)
    try:
        stop = _within(end, size)
    except NotUnderstood:
        is_of_first = step == 1 and are_equal(start, 0) and isinstance(size, int) and size > 1
        if not is_of_first or not isinstance(size, int) or isinstance(end, int):
            raise
        if not ends_within(axis):
            raise PastTheEnd(axis, end, size) from None
        stop = end
    if isinstance(start, int) and isinstance(stop, int) and start >= stop:
        raise NotUnderstood(f"the slice of axis {axis} is empty")
    whole = are_equal(start, 0) and are_equal(stop, size)
    return x if whole else make(Slice(axis, start, stop), (x,))


def _backwards(x: Term, axis: int, start: Dim, end: Dim, step: int) -> Term:
    size, first, last = concrete((x.shape[axis], start, end), "a slice backwards")
    places = range(size)[first:last:step] if step else ()
    if not places or size > MOST_PLACES:
        raise NotUnderstood(f"steps of {step} along an axis of {size}")
    return taken(x, axis, places)


def _within(bound: Dim, size: Dim) -> Dim:
    """A bound of a slice, counted from the start and held within the axis; whichever it is must be decided."""
    if isinstance(bound, int) and bound == 0:
        return 0
    if isinstance(bound, int) and bound == -1 and not isinstance(size, int):
        return size - 1  # the tensor has elements
    if isinstance(bound, int) and bound < 0:
        bound = bound + size
        if nonnegative(bound * -1):
            return 0
    elif nonnegative(bound - size) or (isinstance(bound, int) and bound >= 2**31 - 1):
        return size
    if not nonnegative(bound) or not nonnegative(size - bound):
        raise NotUnderstood(f"whether {bound} lies within an axis of {size} is not decided")
    return bound
