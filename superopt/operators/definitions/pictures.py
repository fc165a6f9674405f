"""Linear layers as convolutions of one place: the places of a picture are the rows, its channels what stands in these.

Both are the same sums. Runtimes keep the weights of convolutions, and what goes from one to the next, in blocks of
channels (onnxruntime's NCHWc, oneDNN's formats), where such a sum may take less time than as a product of matrices, of
few rows most of all. On a core of an AMD EPYC with AVX-512 onnxruntime 1.32 computes layers of 768 and 3,072 channels
of 128 rows at 211 GFLOP/s as products, and at 236 as convolutions; of 16 rows the convolutions take 0.71 of the time.
"""

from __future__ import annotations

from superopt.dim import Shape, product, symbol
from superopt.operators.conv import Conv
from superopt.operators.declared import Declared
from superopt.operators.definitions.blocks import is_of_whole_blocks
from superopt.operators.layout import Expand, Reshape, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.meanings import defines
from superopt.operators.nodes import concrete
from superopt.operators.normalize import Gemm
from superopt.operators.pointwise import Add
from superopt.operators.repeats import repeats_matrices
from superopt.relations import equal_shapes
from superopt.term import Term, make, variable

CHANNELS_FIRST, CHANNELS_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
"""How a picture is transposed whose channels stand last, and back."""

LARGE = 2**24
"""Of so many weights and more a layer stays a product: onnxruntime holds those of convolutions three times while it
loads a model, and of VGG-19's first layer each time is 0.4 GB.
"""

ENOUGH_ROWS = 16
"""Pictures of so many places and more are as good each by itself: a convolution computes some of them at once."""

DEEP = 12
"""The two transposes, a reshape of each, and between them functions that are eight operators below each other, as a
gelu by its tanh is where it is written out.
"""
_ROWS = variable("x", [symbol(name) for name in "nhwc"])


def brings_channels_first(term: Term) -> bool:
    """Whether a term is a picture whose channels stood last."""
    return isinstance(term.operator, Transpose) and term.operator.perm == CHANNELS_FIRST


def brings_channels_last(term: Term) -> bool:
    """Whether a term is a picture's rows: its channels come to stand last."""
    return isinstance(term.operator, Transpose) and term.operator.perm == CHANNELS_LAST


@defines("matmul", "as a convolution")
def product_as_convolution(op: MatMul, x: Term, w: Term) -> Term | None:
    """Rows times weights, the same for all matrices of a stack, as a convolution of one place."""
    return _convolved(x, w, None)


@defines("add", "as a convolution", depth=3)
def sum_as_convolution(op: Add, x: Term, y: Term) -> Term | None:
    """Rows times weights, and a bias that is added to each, as a convolution of one place."""
    layer, bias = (y, x) if isinstance(x.operator, Expand) else (x, y)
    if not isinstance(layer.operator, MatMul) or not _is_of_each_row(bias):
        return None
    rows, weights = layer.inputs
    return _convolved(rows, weights, bias.inputs[0])


@defines("gemm", "as a convolution")
def gemm_as_convolution(op: Gemm, x: Term, w: Term, c: Term) -> Term | None:
    """Rows times weights with a bias of each column as a convolution of one place."""
    if op.trans_a or (op.alpha, op.beta) != (1.0, 1.0) or not _is_of_each_row(c):
        return None
    return _convolved(x, Transpose((1, 0))(w) if op.trans_b else w, c.inputs[0])


@defines("transpose", "of what stays a picture", DEEP, Transpose(CHANNELS_FIRST)(_ROWS))
def stays_a_picture(op: Transpose, x: Term) -> Term | None:
    """A picture of rows that were pictures, with only functions of elements between: computed of those pictures."""
    if op.perm != CHANNELS_FIRST or isinstance(x.operator, Transpose):
        return None
    return _Pictures(op.shape(x.shape)).of(x)


def _is_of_each_row(term: Term) -> bool:
    """Whether a term is a constant row that is repeated."""
    return term.constant and isinstance(term.operator, Expand) and term.operator.axes == (term.type.rank - 1,)


def _convolved(x: Term, w: Term, bias: Term | None) -> Term | None:
    """Rows times constant weights of whole blocks, with a bias; None where they are no such."""
    weights = w.inputs[0] if repeats_matrices(w) else w
    is_layer = weights.constant and weights.type.rank == 2 and not x.constant
    if not is_layer or x.type.dtype == "float64" or not all(map(is_of_whole_blocks, weights.shape)):
        return None  # onnxruntime has no convolutions of doubles
    taken, given = concrete(weights.shape, "a convolution")
    if taken * given >= LARGE:
        return None
    picture = Transpose(CHANNELS_FIRST)(reshaped(x, (*_images_of(x.shape[:-1]), taken)))
    y = Conv()(picture, reshaped(Transpose((1, 0))(weights), (given, taken, 1, 1)))
    if bias is not None:
        y = Add()(y, Expand((1,), y.shape)(bias))
    return reshaped(Transpose(CHANNELS_LAST)(y), (*x.shape[:-1], given))


def _images_of(rows: Shape) -> Shape:
    """How many pictures, and of which places: one of all rows, where runtimes do best. With several symbols the first
    size counts pictures: ONNX copies it, where it would have to compute their product for a reshape. So does a first
    one that is a symbol where each has enough rows: runtimes take no pictures without places, as of an empty batch.
    """
    first, each = rows[0], product(rows[1:])
    symbols = sum(not isinstance(d, int) for d in rows)
    if symbols > 1 or (symbols and isinstance(each, int) and each >= ENOUGH_ROWS):
        return first, 1, each
    return 1, 1, product(rows)


class _Pictures:
    """Terms whose channels stand last, as pictures of a shape."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._made: dict[Term, Term | None] = {}

    def of(self, term: Term) -> Term | None:
        """The picture of a term; None unless all that it is computed of are such."""
        if term not in self._made:
            self._made[term] = self._picture(term)
        return self._made[term]

    def _picture(self, term: Term) -> Term | None:
        op, shape = term.operator, self._shape
        if isinstance(op, Transpose):
            (image,) = term.inputs
            return image if brings_channels_last(term) and _is_of(image, shape) else None
        if isinstance(op, Reshape):  # with as many channels at the end it has the same rows below each other
            (y,) = term.inputs
            return self.of(y) if _is_of(y, (*y.shape[:-1], shape[1])) else None
        if isinstance(op, Expand):
            if op.axes not in ((), (term.type.rank - 1,)) or not term.constant:
                return None
            return Expand((1,) if op.axes else (), shape)(*term.inputs)
        if isinstance(op, Declared) and op.pointwise:
            parts = [p for i in term.inputs if (p := self.of(i)) is not None]
            return make(op, parts) if len(parts) == len(term.inputs) else None
        return None


def _is_of(term: Term, shape: Shape) -> bool:
    """Whether a term is known to be of a shape."""
    same = len(term.shape) == len(shape)
    return same and equal_shapes(term.shape, shape)
