"""Transposed convolutions by phases: the places of a result that meet the same elements of a kernel are convolutions.

Along an axis of stride s, `y[s·t + a] = Σ_m x[t − m] · k[s·m + a]`: those of one phase a meet every s-th element of the
kernel, last first. onnxruntime 1.32 multiplies matrices and adds the columns up where they fall, in the layout that its
convolutions do not have. On an AMD EPYC with AVX-512 it does 140 to 190 GFLOP/s so, and 230 in convolutions, which
leave the results of phases as channels that have to be moved to their places.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import reduce
from typing import NamedTuple, TypeAlias

from superopt.operators.conv import Conv
from superopt.operators.definitions.blocks import with_zeros
from superopt.operators.definitions.frames import as_row
from superopt.operators.definitions.phases import side_by_side, within
from superopt.operators.layout import Concat, Expand, Transpose, reshaped
from superopt.operators.meanings import defines
from superopt.operators.nodes import concrete
from superopt.operators.picks import Every, Slice, Take
from superopt.operators.pointwise import Add
from superopt.operators.transposed import ConvTranspose
from superopt.term import Term, make

MOST = 64
"""Of more phases a runtime has more nodes to run than it saves."""


Meaning: TypeAlias = "Callable[[ConvTranspose, Term, Term, Term | None], Term | None]"
"""What makes of a transposed convolution of pictures, its inputs and its bias, if it has one, a term of equal value."""


class _Axis(NamedTuple):
    """What a window axis has: elements of the kernel, stride, and what is cut off before and after, less what is more
    there. All phases have elements of the kernel.
    """

    kernel: int
    stride: int
    before: int
    after: int

    def reach(self, first: int) -> int:
        """How many elements of the kernel a phase meets, of which this is the first."""
        return -(-(self.kernel - first) // self.stride)

    def alone(self, phase: int) -> tuple[int, int, int]:
        """The first element that a phase of the result meets, and the pads of its own convolution."""
        ahead, first = divmod(phase + self.before, self.stride)
        last = -(-(self.kernel - self.before - self.after) // self.stride)
        return first, self.reach(first) - 1 - ahead, ahead + last - 1

    def together(self) -> tuple[int, int]:
        """The pads of a convolution of all phases at once."""
        return self.reach(0) - 1 - self.before // self.stride, (self.kernel - self.after - 1) // self.stride


@defines("conv_transpose", "phase by phase")
def phase_by_phase(op: ConvTranspose, x: Term, k: Term) -> Term | None:
    """A convolution for each phase, by its own elements of the kernel."""
    return _pictured(op, x, k, None, _phase_by_phase)


@defines("conv_transpose", "by phases")
def by_phases(op: ConvTranspose, x: Term, k: Term) -> Term | None:
    """One convolution for all phases, with zeros where a phase meets fewer elements of the kernel."""
    return _pictured(op, x, k, None, _by_phases)


@defines("add", "phase by phase")
def sum_phase_by_phase(op: Add, x: Term, y: Term) -> Term | None:
    """With a bias, which each phase has."""
    return with_bias(x, y, _phase_by_phase)


@defines("add", "by phases")
def sum_by_phases(op: Add, x: Term, y: Term) -> Term | None:
    """Likewise, in one convolution."""
    return with_bias(x, y, _by_phases)


def with_bias(x: Term, y: Term, meaning: Meaning) -> Term | None:
    """A meaning of a transposed convolution with a constant for each channel; None of any other sum."""
    y, x = (x, y) if isinstance(y.operator, ConvTranspose) else (y, x)
    op, repeat = x.operator, y.operator
    if not isinstance(op, ConvTranspose) or not isinstance(repeat, Expand) or repeat.axes != (1,) or not y.constant:
        return None
    image, kernel = x.inputs
    return _pictured(op, image, kernel, y.inputs[0], meaning)


def _phase_by_phase(op: ConvTranspose, x: Term, k: Term, bias: Term | None) -> Term | None:
    axes = _axes(op, x, k)
    if axes is None:
        return None
    rows, columns = axes
    parts = []
    for a, b in itertools.product(range(rows.stride), range(columns.stride)):
        (i, top, bottom), (j, left, right) = rows.alone(a), columns.alone(b)
        pads = (top, left, bottom, right)
        if min(pads) < 0:
            return None
        y = make(Conv((1, 1), pads, (1, 1), op.group), (x, _kernel(k, axes, (i, j), op)))
        parts.append(_plus(y, bias))
    y = side_by_side(reduce(lambda p, q: Concat(1)(p, q), parts), (rows.stride, columns.stride))
    return within(y, op.shape(x.shape, k.shape))


def _by_phases(op: ConvTranspose, x: Term, k: Term, bias: Term | None) -> Term | None:
    return in_one_convolution(op, x, k, bias, lambda conv, image, kernel: make(conv, (image, kernel)))


def in_one_convolution(
    op: ConvTranspose, x: Term, k: Term, bias: Term | None, convolved: Callable[[Conv, Term, Term], Term | None]
) -> Term | None:
    """All phases at once, by what convolves a picture; None where that, or where these, cannot be."""
    axes = _axes(op, x, k) if op.group == 1 else None
    if axes is None:
        return None
    rows, columns = axes
    (top, bottom), (left, right) = rows.together(), columns.together()
    pads, steps = (top, left, bottom, right), (rows.stride, columns.stride)
    if min(pads) < 0:
        return None
    phases = itertools.product(range(steps[0]), range(steps[1]))
    kernel = reduce(lambda p, q: Concat(0)(p, q), [_of_full_reach(_kernel(k, axes, p, op), axes) for p in phases])
    biases = bias and reduce(lambda p, q: Concat(0)(p, q), [bias] * math.prod(steps))
    if (phases_of := convolved(Conv((1, 1), pads), x, kernel)) is None:
        return None
    y = side_by_side(_plus(phases_of, biases), steps)
    return within(y, op.shape(x.shape, k.shape), (rows.before % rows.stride, columns.before % columns.stride))


def _plus(y: Term, bias: Term | None) -> Term:
    return y if bias is None else Add()(y, Expand((1,), y.shape)(bias))


def _axes(op: ConvTranspose, x: Term, k: Term) -> tuple[_Axis, _Axis] | None:
    """Both window axes of a transposed convolution of pictures by a constant kernel, which has phases; else None."""
    sizes = (*op.strides, *op.pads, *op.dilations, *op.more, op.group, *k.shape)
    if x.type.rank != 4 or not k.constant or not all(isinstance(d, int) for d in sizes):
        return None
    kernel, strides, pads, more = (concrete(s, "phases") for s in (k.shape[2:], op.strides, op.pads, op.more))
    if op.dilations != (1, 1) or not 1 < math.prod(strides) <= MOST:
        return None
    axes = [_Axis(kernel[a], strides[a], pads[a], pads[a + 2] - more[a]) for a in (0, 1)]
    return (axes[0], axes[1]) if all(axis.kernel >= axis.stride for axis in axes) else None


def _kernel(k: Term, axes: tuple[_Axis, _Axis], first: tuple[int, int], op: ConvTranspose) -> Term:
    """The elements that a phase meets, these the first, as the kernel of a convolution: last first."""
    for at, (axis, start) in enumerate(zip(axes, first, strict=True), start=2):
        k = Slice(at, start, axis.kernel)(k) if start else k
        k = Every(at, axis.stride)(k) if axis.stride > 1 else k
        size = axis.reach(start)
        k = Take(at, tuple(range(size - 1, -1, -1)))(k) if size > 1 else k
    taken, given = concrete(k.shape[:2], "phases")
    (groups,) = concrete((op.group,), "phases")
    apart = reshaped(k, (groups, taken // groups, given, *k.shape[2:]))
    return reshaped(Transpose((0, 2, 1, 3, 4))(apart), (groups * given, taken // groups, *k.shape[2:]))


def _of_full_reach(kernel: Term, axes: tuple[_Axis, _Axis]) -> Term:
    """A phase's kernel, with zeros for those elements before its own that another phase meets."""
    for at, axis in enumerate(axes, start=2):
        (own,) = concrete((kernel.shape[at],), "phases")
        kernel = with_zeros(kernel, at, 0, axis.reach(0) - own) if own < axis.reach(0) else kernel
    return kernel


def _pictured(op: ConvTranspose, x: Term, k: Term, bias: Term | None, meaning: Meaning) -> Term | None:
    """A meaning of a transposed convolution of pictures; along one axis, of pictures of one row."""
    if x.type.rank != 3:
        return meaning(op, x, k, bias)
    (stride,), (before, after), (dilation,), (more,) = op.strides, op.pads, op.dilations, op.more
    picture = ConvTranspose((1, stride), (0, before, 0, after), (1, dilation), op.group, (0, more))
    y = meaning(picture, as_row(x), reshaped(k, (*k.shape[:2], 1, k.shape[2])), bias)
    return None if y is None else reshaped(y, op.shape(x.shape, k.shape))
