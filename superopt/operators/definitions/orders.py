"""Places in another order, as the channels of an image are that comes as BGR: what weights meet need not be moved.

onnxruntime 1.32 turns three numbers around at each of 224 by 224 places in 0.16 ms, which is as long as a small
network's first convolution takes. Whole channels it moves in 0.012; and weights are put in order once.
"""

from __future__ import annotations

from collections.abc import Sequence

from superopt.operators.casts import Cast
from superopt.operators.conv import Conv
from superopt.operators.layout import Concat, Expand, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.meanings import defines
from superopt.operators.picks import Slice, Take, taken
from superopt.operators.pointwise import Binary
from superopt.relations import are_equal
from superopt.term import Term

MOST_JOINED = 64
"""More places than these are no channels of an image: they are joined as fast as they are taken."""


@defines("transpose", "of another order")
def transpose_of_another_order(op: Transpose, x: Term) -> Term | None:
    """The axes are moved first: then places may be whole channels."""
    pick = _ordering(x)
    return None if pick is None else Take(op.perm.index(pick.axis), pick.indices)(op(*x.inputs))


@defines("cast", "of another order")
def cast_of_another_order(op: Cast, x: Term) -> Term | None:
    """Each element is cast where it was."""
    pick = _ordering(x)
    return None if pick is None else pick(op(*x.inputs))


@defines("add", "of another order")
@defines("sub", "of another order")
@defines("mul", "of another order")
@defines("div", "of another order")
def of_another_order(op: Binary, x: Term, y: Term) -> Term | None:
    """`f(take(x), y) = take(f(x, y'))`, where y' is a constant whose places stand in the order that x has."""
    pick = None if x.constant == y.constant else _ordering(y if x.constant else x)
    return (
        None
        if pick is None
        else pick(op(*(_before(i, pick, pick.axis) if i.constant else i.inputs[0] for i in (x, y))))
    )


@defines("conv", "of another order")
def conv_of_another_order(op: Conv, x: Term, k: Term) -> Term | None:
    """The channels of the kernel stand in the order that the image has."""
    pick = _ordering(x)
    if pick is None or pick.axis != 1 or op.group != 1 or not k.constant:
        return None
    return op(x.inputs[0], _before(k, pick, 1))


@defines("matmul", "of another order")
def matmul_of_another_order(op: MatMul, x: Term, w: Term) -> Term | None:
    """The rows of the weights stand in the order that the columns have."""
    pick = _ordering(x)
    if pick is None or pick.axis != x.type.rank - 1 or not w.constant:
        return None
    return op(x.inputs[0], _before(w, pick, w.type.rank - 2))


@defines("concat", "of places of one")
def of_places_of_one(op: Concat, x: Term, y: Term) -> Term | None:
    """Places of one tensor that are picked along an axis and joined again are picked at once."""
    first, second = _places(x, op.axis), _places(y, op.axis)
    if first is None or second is None or x.inputs[0] is not y.inputs[0]:
        return None
    both = (*first, *second)
    return taken(x.inputs[0], op.axis, both) if len(both) <= MOST_JOINED else None


@defines("take", "of what is taken")
def take_of_what_is_taken(op: Take, x: Term) -> Term | None:
    """Places of places are taken at once, and what is between need not be there."""
    there = _places(x, op.axis)
    return None if there is None else taken(x.inputs[0], op.axis, [there[i] for i in op.indices])


def _places(term: Term, axis: int) -> Sequence[int] | None:
    """Which places of its input a term picks along an axis; None where it does not, or not known ones."""
    pick = term.operator
    if isinstance(pick, Take) and pick.axis == axis:
        return pick.indices
    if not isinstance(pick, Slice) or pick.axis != axis:
        return None
    return range(pick.start, pick.stop) if isinstance(pick.start, int) and isinstance(pick.stop, int) else None


def _ordering(term: Term) -> Take | None:
    """What a term puts in another order, each place once; None where it does not."""
    pick = term.operator
    if not isinstance(pick, Take) or not are_equal(term.inputs[0].shape[pick.axis], len(pick.indices)):
        return None
    return pick if len(set(pick.indices)) == len(pick.indices) else None


def _before(constant: Term, pick: Take, axis: int) -> Term:
    """The constant that is put in this order along an axis; what it repeats stays as small."""
    order = tuple(sorted(range(len(pick.indices)), key=pick.indices.__getitem__))
    repeat = constant.operator
    if not isinstance(repeat, Expand):
        return Take(axis, order)(constant)
    (base,) = constant.inputs
    return repeat(Take(repeat.axes.index(axis), order)(base)) if axis in repeat.axes else constant
