"""Expands as they are written, or left out where ONNX broadcasts by itself."""

from __future__ import annotations

from collections.abc import Container

from superopt.dim import Shape
from superopt.onnx_io.peepholes.form import Form
from superopt.operators import Declared, Emitter, NotUnderstood
from superopt.operators.layout import Expand, Reshape, common_shape, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Gemm
from superopt.operators.pointwise import Add
from superopt.operators.reductions import Mean
from superopt.operators.repeats import is_read_anew, unwritten
from superopt.relations import equal_shapes, is_one
from superopt.term import Term


def expand(term: Term, op: Expand) -> Form:
    """Sizes that the input has need not be said again (1)."""

    def write(out: Emitter, name: str) -> str:
        said = tuple(1 if i in op.axes else d for i, d in enumerate(op.to))
        if out.opset >= 8:
            return out.node("Expand", (name, out.integers(said)))
        whole = out.node("Reshape", (name, out.integers([d if i in op.axes else 1 for i, d in enumerate(op.to)])))
        return out.node("Tile", (whole, out.integers(said)))

    return Form((aligned(term),), write)


def without_expands(term: Term, given: Container[Term]) -> tuple[Term, ...]:
    """The inputs of a term, without the expands that ONNX does by itself there."""
    op, inputs = term.operator, list(term.inputs)
    spread = [i for i, t in enumerate(inputs) if isinstance(t.operator, Expand) and t not in given]
    if isinstance(op, Gemm):
        return tuple(aligned(t) if i == 2 and i in spread else t for i, t in enumerate(inputs))
    if isinstance(op, MatMul):
        for i in spread:
            batched = inputs[1 - i]
            stack = aligned(inputs[i])
            matrices = stack.type.rank >= 2 and equal_shapes(stack.shape[-2:], inputs[i].shape[-2:])
            if matrices and 1 - i not in spread and batched.type.rank > 2:
                inputs[i] = stack
        return tuple(inputs)
    if not (isinstance(op, Declared) and op.pointwise):
        return tuple(aligned(t) if i in spread and t in unwritten(term) else t for i, t in enumerate(inputs))
    spread = [i for i in spread if op.broadcasts is None or i in op.broadcasts]
    slim = [aligned(t) if i in spread else t for i, t in enumerate(inputs)]
    if spread and not _broadcasts_to(slim, term.shape):
        # One input must have the full shape; a constant one costs nothing while the model runs.
        full = next((i for i in spread if inputs[i].constant), spread[0])
        slim[full] = inputs[full]
    return tuple(_of_full_rank(t, term) if i in spread else t for i, t in enumerate(slim))


def _of_full_rank(number: Term, term: Term) -> Term:
    """A constant number that a term reads, with as many axes as that has where it is read faster so. Not what is added
    to a mean: runtimes know a layer norm by a number without axes.
    """
    if not number.constant or not is_read_anew(number.shape, term.shape):
        return number
    is_norm = isinstance(term.operator, Add) and any(map(_is_mean, term.inputs))
    return number if is_norm else reshaped(number, (1,) * term.type.rank)


def _is_mean(term: Term) -> bool:
    """Whether a term is a mean, also one that keeps its axes."""
    below = term.inputs[0] if isinstance(term.operator, Reshape) else term
    return isinstance(below.operator, Mean)


def aligned(term: Term) -> Term:
    """What an expand repeats, under the shape that ONNX broadcasts by itself."""
    assert isinstance(term.operator, Expand)
    shape, base = term.operator.aligned(), term.inputs[0]
    # Reading drops sizes of 1 that the repeated value had: under its own shape it broadcasts as it is.
    while isinstance(base.operator, Reshape) and not _broadcast_alike(base.shape, shape, term.type.rank):
        base = base.inputs[0]
    return base if _broadcast_alike(base.shape, shape, term.type.rank) else reshaped(term.inputs[0], shape)


def _broadcast_alike(one: Shape, other: Shape, rank: int) -> bool:
    """Whether two shapes of at most a rank differ by axes of one place in front only, which ONNX adds by itself."""
    return len(one) <= rank and equal_shapes(_without_leading_ones(one), _without_leading_ones(other))


def _without_leading_ones(shape: Shape) -> Shape:
    first = next((i for i, d in enumerate(shape) if not is_one(d)), len(shape))
    return shape[first:]


def _broadcasts_to(inputs: list[Term], shape: Shape) -> bool:
    try:
        common = common_shape([t.shape for t in inputs])
    except NotUnderstood:
        return False
    return equal_shapes(common, shape)
