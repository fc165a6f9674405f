"""Point-wise operators on repeated constants, turned into repetitions of what they make of the constants themselves.

Rewrites bring constants together that were repeated over a whole image each. Folded as they stand they would be written
at that size: 17 MB more for the batch normalizations of a DenseNet; and of a symbolic size, computed whenever the model
runs. So are convolutions, products of stacked matrices that are all the same, and of equal rows; and
what is only moved.
"""

from __future__ import annotations

from superopt.dim import Shape
from superopt.operators.along import read_along, widened
from superopt.operators.conv import Conv
from superopt.operators.declared import Declared
from superopt.operators.layout import Concat, Expand, Reshape, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.picks import Slice
from superopt.relations import equal_shapes, is_one
from superopt.term import Term, made_over, make, subterms


def narrowed(roots: tuple[Term, ...], done: dict[Term, Term] | None = None) -> tuple[Term, ...]:
    """The same values, the constants among them repeated last; `done` holds what has been narrowed, and is added to."""
    done = {} if done is None else done
    for term in subterms(*roots, known=done):
        inputs = tuple([done[i] for i in term.inputs])
        made = term if inputs == term.inputs else made_over(term, inputs)
        done[term] = _small(made) if made.constant else made
    return tuple([done[root] for root in roots])


def _small(term: Term) -> Term:
    return _repeated_last(_repeated_joined(_repeated_moved(_of_one_row(_of_one_stack(_of_one_place(term))))))


def _repeated_last(term: Term) -> Term:
    """`f(expand(a), expand(b))` as `expand(f(a, b))`, with `a` and `b` repeated as far as they differ."""
    op, repeats = term.operator, [i.operator for i in term.inputs]
    if not (term.constant and isinstance(op, Declared) and op.pointwise):
        return term
    axes = tuple(sorted({a for e in repeats if isinstance(e, Expand) for a in e.axes}))
    if len(axes) == term.type.rank or not all(isinstance(e, Expand) for e in repeats):
        return term
    inner = tuple(term.shape[a] for a in axes)
    parts = [_over(i, axes, inner) for i in term.inputs]
    return Expand(axes, term.shape)(make(op, parts))


def _repeated_joined(term: Term) -> Term:
    """Repeated constants behind each other, repeated along other axes than this: joined, and repeated then."""
    op, repeats = term.operator, [i.operator for i in term.inputs]
    if not (term.constant and isinstance(op, Concat) and all(isinstance(e, Expand) for e in repeats)):
        return term
    axes = tuple(sorted({op.axis, *(a for e in repeats if isinstance(e, Expand) for a in e.axes)}))
    if len(axes) == term.type.rank:
        return term
    parts = [_over(i, axes, tuple(i.shape[a] for a in axes)) for i in term.inputs]
    return Expand(axes, term.shape)(make(Concat(axes.index(op.axis)), parts))


def _repeated_moved(term: Term) -> Term:
    """A repeated constant that is moved, reshaped or cut, repeated after that."""
    op, repeat = term.operator, term.inputs[0].operator if term.inputs else None
    if not (term.constant and isinstance(op, Transpose | Reshape | Slice) and isinstance(repeat, Expand)):
        return term
    (x,) = term.inputs[0].inputs
    if isinstance(op, Reshape) and _are_last(repeat, x, term):
        last = tuple(range(term.type.rank - x.type.rank, term.type.rank))
        return Expand(last, term.shape)(x) if last[:1] != (0,) else x
    read = {a: at[0] for a in range(term.type.rank) if (at := read_along(term, a)) is not None}
    # What is there once is not repeated, or it would be taken out again and again.
    alike = {a: b for a, b in read.items() if b is not None and b not in repeat.axes and not is_one(repeat.to[b])}
    if not alike:
        return term
    once = Expand(repeat.axes, tuple(1 if b in alike.values() else d for b, d in enumerate(repeat.to)))(x)
    for a in alike:
        op = widened(op, a, 1)
    others = tuple(a for a in range(term.type.rank) if a not in alike)
    return Expand(others, term.shape)(reshaped(make(op, (once,)), tuple(term.shape[a] for a in others)))


def _are_last(repeat: Expand, x: Term, term: Term) -> bool:
    """Whether what is repeated are the last axes of a value, and of that reshaped: row by row both repeat them."""
    count, whole = x.type.rank, len(repeat.to)
    same = repeat.axes == tuple(range(whole - count, whole)) and count <= term.type.rank
    return same and equal_shapes(x.shape, term.shape[term.type.rank - count :])


def _of_one_place(term: Term) -> Term:
    """A convolution of a constant that is the same everywhere, without zeros around it, done at one place."""
    op = term.operator
    if not (term.constant and isinstance(op, Conv)):
        return term
    image, kernel = term.inputs
    everywhere = isinstance(image.operator, Expand) and image.operator.axes == (1,)
    if not everywhere or any(op.pads) or all(map(is_one, (term.shape[0], *term.shape[2:]))):
        return term
    ones = (1,) * (term.type.rank - 2)
    window = tuple((places - 1) * apart + 1 for places, apart in zip(kernel.shape[2:], op.dilations, strict=True))
    place = Expand((1,), (1, image.shape[1], *window))(image.inputs[0])
    result = make(Conv(ones, (0,) * (2 * len(ones)), op.dilations, op.group), (place, kernel))
    return Expand((1,), term.shape)(reshaped(result, term.shape[1:2]))


def _of_one_stack(term: Term) -> Term:
    """A product of constant matrices, stacked without need, done without."""
    op, rank = term.operator, term.type.rank
    repeats = [i.operator for i in term.inputs]
    if not (term.constant and isinstance(op, MatMul) and all(isinstance(e, Expand) for e in repeats)):
        return term
    axes = tuple(sorted({a for e in repeats if isinstance(e, Expand) for a in (*e.axes, rank - 2, rank - 1)}))
    if len(axes) == rank:
        return term
    product = _of_one_row(make(op, [_over(i, axes, tuple(i.shape[a] for a in axes)) for i in term.inputs]))
    if isinstance(product.operator, Expand):
        axes, product = tuple(axes[a] for a in product.operator.axes), product.inputs[0]
    return Expand(axes, term.shape)(product)


def _of_one_row(term: Term) -> Term:
    """A product of a constant matrix whose rows are all the same, done for one row."""
    if not (term.constant and isinstance(term.operator, MatMul) and term.type.rank == 2):
        return term
    rows, matrix = term.inputs
    if not (isinstance(rows.operator, Expand) and rows.operator.axes == (1,)):
        return term
    result = MatMul()(reshaped(rows.inputs[0], (1, *rows.shape[1:])), matrix)
    return Expand((1,), term.shape)(reshaped(result, term.shape[1:]))


def _over(term: Term, axes: tuple[int, ...], shape: Shape) -> Term:
    """What an expand repeats, over some axes of its result only."""
    op = term.operator
    assert isinstance(op, Expand)
    own = tuple(axes.index(a) for a in op.axes)
    return term.inputs[0] if len(own) == len(axes) else Expand(own, shape)(term.inputs[0])
