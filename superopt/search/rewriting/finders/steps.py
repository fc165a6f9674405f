"""Values that are linear in some below them, but for constants that are added: what of these is read place by place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from superopt.dim import Dim, Shape, product
from superopt.operators.conv import Conv
from superopt.operators.definitions.sums import MOST_ROWS
from superopt.operators.differences import Neg, Sub
from superopt.operators.fourier import Dft
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Gemm
from superopt.operators.padding import Pad
from superopt.operators.picks import Every, Slice, Take
from superopt.operators.pointwise import Add, Div, Mul
from superopt.operators.reduce import AvgPool
from superopt.operators.reductions import Mean, Sum
from superopt.relations import is_one
from superopt.search.rewriting.finders.items import (
    Axes,
    Item,
    MixedError,
    batches_of,
    mixed,
    mixed_size,
    regrouped,
    simple,
    sizes_of,
)
from superopt.search.rewriting.narrow import narrowed
from superopt.term import Term

MOVES = (Transpose, Slice, Take, Every, Concat, Pad)
COMPOSED = (Gemm, Dft)
"""What is taken as its definition."""

STEPS = (MatMul, Conv, *COMPOSED, Add, Sub, Mul, Div, Neg, Reshape, Expand, Sum, Mean, AvgPool, *MOVES)
"""What is linear in one input, and what is in all of them together."""

MOVED = 32
"""So many additions and multiplications take as long as to move one element."""


def running(term: Term) -> list[Term]:
    """The inputs of a step that are no constants; none where it is not linear in these together."""
    op, left = term.operator, [i for i in term.inputs if not i.constant]
    if not isinstance(op, STEPS) or (isinstance(op, Div) and not term.inputs[1].constant):
        return []
    if isinstance(op, Concat) and len(left) < len(term.inputs):
        return []
    if isinstance(op, Gemm | Conv) and not (left[:1] == [term.inputs[0]] and term.inputs[1].constant):
        return []
    if isinstance(op, Conv) and not _is_row(term.inputs[0]):
        return []
    if isinstance(op, Dft) and op.definition(*term.inputs) is None:
        return []
    return left if len(left) == 1 or isinstance(op, Add | Sub | Concat) else []


def _is_row(image: Term) -> bool:
    """Whether all places and channels of an image, which a convolution mixes, may be a row of a matrix."""
    return isinstance(size := product(image.shape[1:]), int) and size <= MOST_ROWS


def opened(term: Term) -> Term:
    """A step as its definition, if it is taken as that."""
    made = term.operator.definition(*term.inputs) if isinstance(term.operator, COMPOSED) else None
    return term if made is None else made


class Steps:
    """What steps from some starts of one shape make of their axes, of which some are batches."""

    def __init__(self, starts: Sequence[Term], mixing: frozenset[int]) -> None:
        self.starts, shape = tuple(starts), starts[0].shape
        batches = {a for a in range(len(shape)) if a not in mixing}
        several = {a for a in batches if not is_one(shape[a])}  # a batch of one is told from nothing else by reshapes
        own = [simple([Item(d, a if a in (several or batches) else None)]) for a, d in enumerate(shape)]
        self._axes: dict[Term, Axes] = dict.fromkeys(starts, tuple(own))

    @property
    def begin(self) -> Axes:
        """The axes of the starts."""
        return self.of(self.starts[0])

    def of(self, term: Term) -> Axes:
        """The axes of a value. Raises `MixedError`."""
        if term not in self._axes:
            self._axes[term] = tuple(map(simple, self._of(opened(term))))
        return self._axes[term]

    def _of(self, x: Term) -> Axes:
        op = x.operator
        if x in self._axes:
            return self._axes[x]
        below = running(x)
        if not below:
            raise MixedError
        axes = self.of(below[0])
        if isinstance(op, Reshape):
            return regrouped(axes, op.to)
        if isinstance(op, Transpose):
            return tuple(axes[a] for a in op.perm)
        if isinstance(op, Expand):
            given = dict(zip(op.axes, axes, strict=True))
            return tuple(given.get(a, (Item(d),)) for a, d in enumerate(op.to))
        if isinstance(op, Slice | Take | Every | Concat):
            return self._along(op.axis, x, [self.of(i) for i in below])
        if isinstance(op, Pad):
            return self._padded(op, x, axes)
        if isinstance(op, Sum | Mean):
            for a in op.axes:
                mixed(axes[a])
            return tuple(axis for a, axis in enumerate(axes) if a not in op.axes)
        if isinstance(op, AvgPool):
            for axis in axes[2:]:
                mixed(axis)
            return (*axes[:2], *((Item(d),) for d in x.shape[2:]))
        if isinstance(op, Conv):
            for axis in axes[1:]:
                mixed(axis)
            return (axes[0], *((Item(d),) for d in x.shape[1:]))
        if isinstance(op, MatMul):
            return self._multiplied(x, axes)
        for other in below[1:]:
            _demand_alike(axes, self.of(other))
        for i in x.inputs:
            if i.constant:
                _demand_repeated(i, axes)
        return axes

    def _along(self, axis: int, x: Term, inputs: Sequence[Axes]) -> Axes:
        """Places of one axis taken or joined."""
        for axes in inputs:
            mixed(axes[axis])
            _demand_alike(_without(axes, axis), _without(inputs[0], axis))
        return (*inputs[0][:axis], (Item(x.shape[axis]),), *inputs[0][axis + 1 :])

    def _padded(self, op: Pad, x: Term, axes: Axes) -> Axes:
        """Zeros around some axes."""
        rank, found = x.type.rank, list(axes)
        for a, d in enumerate(x.shape):
            if (op.pads[a], op.pads[a + rank]) != (0, 0):
                mixed(axes[a])
                found[a] = (Item(d),)
        return tuple(found)

    def _multiplied(self, x: Term, axes: Axes) -> Axes:
        """A product with a constant matrix, or a stack of them."""
        rows = x.inputs[1].constant
        mixed(axes[-1 if rows else -2])
        _demand_repeated(x.inputs[rows], beside(x, axes))
        result = (Item(x.shape[-1 if rows else -2]),)
        return (*axes[:-1], result) if rows else (*axes[:-2], result, axes[-1])

    @property
    def taken(self) -> list[Term]:
        """The steps that were taken."""
        return [t for t in self._axes if t not in self.starts]

    def work(self, term: Term) -> Dim:
        """How much work a step is for one place of each batch, in additions and multiplications."""
        if isinstance(term.operator, (Reshape, Expand, *COMPOSED)):
            return 0
        elements, op = mixed_size(self.of(term)), term.operator
        if isinstance(op, AvgPool):
            return elements * product(op.kernel)
        if isinstance(op, Conv):
            return 2 * elements * product(term.inputs[1].shape[1:])
        if not isinstance(op, MatMul):
            return (MOVED if isinstance(op, MOVES) else 1) * elements
        return 2 * elements * term.inputs[0].shape[-1]

    def sizes(self, term: Term, counts: Mapping[int, Dim]) -> Shape:
        """The shape of a value where batches have so many places."""
        return tuple(product(sizes_of(axis, counts)) for axis in self.of(term))


def beside(x: Term, axes: Axes) -> Axes:
    """Along which axes a constant is repeated beside a value: a matrix along those of a stack, a kernel nowhere."""
    if isinstance(x.operator, Conv):
        return ((),) * x.inputs[1].type.rank
    return (*axes[:-2], (), ()) if isinstance(x.operator, MatMul) else axes


def _demand_alike(one: Axes, other: Axes) -> None:
    """Raise `MixedError` where two values have other batches, or in other places."""
    if one != other:
        raise MixedError(batches_of((*one, *other)))


def _demand_repeated(c: Term, axes: Axes) -> None:
    """Raise `MixedError` of batches along which a constant is not the same everywhere."""
    for a, axis in enumerate(axes):
        if batches_of((axis,)) and not is_one(c.shape[a]):
            repeat = narrowed((c,))[0].operator
            if not isinstance(repeat, Expand) or a in repeat.axes:
                raise MixedError(axis)


def _without(axes: Axes, axis: int) -> Axes:
    return (*axes[:axis], *axes[axis + 1 :])
