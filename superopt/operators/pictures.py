"""Linear layers as convolutions of one place: the places of a picture are the rows, its channels what stands in these.

Both are the same sums. Runtimes keep the weights of convolutions, and what goes from one to the next, in blocks of
channels (onnxruntime's NCHWc, oneDNN's formats), where such a sum may take less time than as a product of matrices, of
few rows most of all. On a core of an AMD EPYC with AVX-512 onnxruntime 1.32 computes layers of 768 and 3,072 channels
by products at 211 GFLOP/s where rows are 128, by convolutions at 236; 16 rows take these 0.71 of the time.
"""

from __future__ import annotations

from superopt.dim import Shape, equal, product
from superopt.operators.blocks import is_of_whole_blocks
from superopt.operators.declare import Declared, defines
from superopt.operators.layout import Expand, Reshape, Transpose, reshaped
from superopt.operators.linear import Conv, MatMul
from superopt.operators.normalize import Gemm
from superopt.operators.pointwise import Add
from superopt.operators.repeats import repeats_matrices
from superopt.term import Term, make

CHANNELS_FIRST, CHANNELS_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
"""How a picture is transposed whose channels stand last, and back."""


@defines("matmul", "as a convolution")
def product_as_convolution(op: MatMul, x: Term, w: Term) -> Term | None:
    """Of rows by weights, which are the same for all matrices of a stack."""
    return _convolved(x, w, None)


@defines("add", "as a convolution")
def sum_as_convolution(op: Add, x: Term, y: Term) -> Term | None:
    """Likewise, with what is added to each row."""
    layer, bias = (y, x) if isinstance(x.operator, Expand) else (x, y)
    if not isinstance(layer.operator, MatMul) or not _is_of_each_row(bias):
        return None
    rows, weights = layer.inputs
    return _convolved(rows, weights, bias.inputs[0])


@defines("gemm", "as a convolution")
def gemm_as_convolution(op: Gemm, x: Term, w: Term, c: Term) -> Term | None:
    """The same of what is one operator."""
    if op.trans_a or (op.alpha, op.beta) != (1.0, 1.0) or not _is_of_each_row(c):
        return None
    return _convolved(x, Transpose((1, 0))(w) if op.trans_b else w, c.inputs[0])


@defines("transpose", "of what stays a picture", depth=8)
def stays_a_picture(op: Transpose, x: Term) -> Term | None:
    """What becomes a picture, and is computed of pictures element by element, whose channels were brought to the end
    before: it is computed of them as they were.
    """
    if op.perm != CHANNELS_FIRST or isinstance(x.operator, Transpose):
        return None
    return _as_picture(x, op.shape(x.shape), {})


def _is_of_each_row(term: Term) -> bool:
    """Whether a term is a constant row that is repeated."""
    return term.constant and isinstance(term.operator, Expand) and term.operator.axes == (term.type.rank - 1,)


def _convolved(x: Term, w: Term, bias: Term | None) -> Term | None:
    """Rows times constant weights of whole blocks, with a bias; None where they are no such."""
    weights = w.inputs[0] if repeats_matrices(w) else w
    if x.constant or not weights.constant or weights.type.rank != 2 or not all(map(is_of_whole_blocks, weights.shape)):
        return None
    taken, given = weights.shape
    picture = Transpose(CHANNELS_FIRST)(reshaped(x, (*_images_of(x.shape[:-1]), taken)))
    y = Conv()(picture, reshaped(Transpose((1, 0))(weights), (given, taken, 1, 1)))
    if bias is not None:
        y = Add()(y, Expand((1,), y.shape)(bias))
    return reshaped(Transpose(CHANNELS_LAST)(y), (*x.shape[:-1], given))


def _images_of(rows: Shape) -> Shape:
    """How many pictures, and of which places: one of all rows, where runtimes do best. Of several symbols ONNX copies
    the first, so that no product of them need be computed for a reshape.
    """
    if sum(not isinstance(d, int) for d in rows) > 1:
        return rows[0], 1, product(rows[1:])
    return 1, 1, product(rows)


def _as_picture(term: Term, shape: Shape, done: dict[Term, Term | None]) -> Term | None:
    """A term whose channels stand last, as a picture of a shape; None unless all it is computed of are such."""
    if term not in done:
        done[term] = _made_picture(term, shape, done)
    return done[term]


def _made_picture(term: Term, shape: Shape, done: dict[Term, Term | None]) -> Term | None:
    op = term.operator
    if isinstance(op, Transpose):
        (image,) = term.inputs
        fits = op.perm == CHANNELS_LAST and all(equal(a, b) is True for a, b in zip(image.shape, shape, strict=True))
        return image if fits else None
    if isinstance(op, Reshape):
        (y,) = term.inputs
        return _as_picture(y, shape, done) if equal(y.shape[-1], shape[1]) is True else None
    if isinstance(op, Expand):
        if op.axes not in ((), (term.type.rank - 1,)) or not term.constant:
            return None
        return Expand((1,) if op.axes else (), shape)(*term.inputs)
    if isinstance(op, Declared) and op.pointwise:
        parts = [_as_picture(i, shape, done) for i in term.inputs]
        return None if None in parts else make(op, [p for p in parts if p is not None])
    return None
