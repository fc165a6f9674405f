"""Which values a runtime keeps in blocks of channels, by what makes them.

onnxruntime computes images so from the convolution that makes one to whatever cannot take it (its NCHWc transformer),
and this is what its version 1.32 takes: of all point-wise operators a few, and of sums and products those of two such
images. Factors of channels become convolutions of single channels; whatever else a convolution is scaled or shifted by
goes into its weights. Images are filled up to whole blocks; those that are joined or pooled have to be whole before,
those that are resized need not.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from superopt.operators.activations import LeakyRelu
from superopt.operators.conv import Conv
from superopt.operators.definitions.blocks import LAID_OUT, is_of_whole_blocks
from superopt.operators.definitions.pictures import brings_channels_first
from superopt.operators.interpolate import Interpolate
from superopt.operators.layout import Concat, Expand, Reshape
from superopt.operators.nearest import Nearest
from superopt.operators.normalize import BatchNorm
from superopt.operators.padding import Pad
from superopt.operators.pointwise import Add, Mul
from superopt.operators.reduce import AvgPool, GlobalAvgPool, MaxPool, Pool
from superopt.relations import are_equal, equal_shapes
from superopt.term import Operator, Term, running, subterms

FEW = 8
"""From images of fewer channels convolutions compute as they are, on all processors."""

COMPUTED_IN_BLOCKS = frozenset({"relu", "clip", "sigmoid", "tanh", "hard_sigmoid", "hard_swish", "gelu"})
"""The functions of one image that are; a leaky relu is as part of a convolution alone."""

SHARES: Mapping[type[Operator], float] = {MaxPool: 0.4, AvgPool: 0.4, GlobalAvgPool: 0.4, Interpolate: 0.3}
"""What kernels take in blocks of what they take alone, where that is another kernel: of images of 64 by 56 by 56 to 480
by 14 by 14 numbers pools took 0.18 to 0.43, and a linear resize to twice the size 0.24 to 0.35.
"""

How = Literal["as it is", "in blocks", "as the result"]
"""How a kernel takes an image that it reads: in blocks if it comes so, or only if its result is in blocks too."""


def in_blocks(term: Term, known: dict[Term, bool], made: Mapping[Term, Term] = MappingProxyType({})) -> bool:
    """Whether a term's value is made in blocks. What is known, of variables at least, is added to; `made` are the terms
    of variables that stand for values.
    """
    if term in known:
        return known[term]
    for below in running(term, known=known):  # inputs first: a sum may have hundreds of summands
        known[below] = _made_in_blocks(below, known, made)
    return known.get(term, False)


def _made_in_blocks(term: Term, known: dict[Term, bool], made: Mapping[Term, Term]) -> bool:
    op = term.operator
    if isinstance(op, Conv):
        return _convolved_in_blocks(op, term)
    if op.name in COMPUTED_IN_BLOCKS or isinstance(op, BatchNorm):
        return in_blocks(term.inputs[0], known, made) and all(i.constant for i in term.inputs[1:])
    if isinstance(op, Pool | GlobalAvgPool) or (isinstance(op, Concat) and op.axis == 1):
        return all(_falls_into_blocks(i) and in_blocks(i, known, made) for i in term.inputs)
    if (image := resized_of(term)) is not None:
        return in_blocks(image, known, made)
    if isinstance(op, LeakyRelu):
        return in_blocks(term.inputs[0], known, made) and _is_folded(term.inputs[0], known, made)
    if not isinstance(op, Add | Mul):
        return False
    images = [i for i in term.inputs if not isinstance(i.operator, Expand)]
    if not images or not all(in_blocks(i, known, made) for i in images):
        return False
    return len(images) == 2 or _is_of_channels(term, Mul) or _is_folded(term, known, made)


def _convolved_in_blocks(conv: Conv, image: Term) -> bool:
    """Whether a convolution gives its image in blocks."""
    x, kernel = image.inputs
    if image.type.rank != 4 or not kernel.constant:
        return False
    taken, given, groups = x.shape[1], image.shape[1], conv.group
    if not isinstance(taken, int) or not isinstance(given, int) or not isinstance(groups, int):
        return False
    if groups == 1:
        return taken < FEW or is_of_whole_blocks(taken)
    if groups == taken == given:
        return is_of_whole_blocks(taken)
    return taken // groups % LAID_OUT == given // groups % LAID_OUT == 0


def resized_of(term: Term) -> Term | None:
    """The image that a term resizes as runtimes do in blocks: to a number of whole times its places, to the nearest or
    linearly; None of all else.
    """
    image = _smaller(term)
    if image is None or image.type.rank != 4 or term.type.rank != 4:
        return None
    whole = all(are_equal(d // s * s, d) for d, s in zip(term.shape, image.shape, strict=True))
    return image if whole and equal_shapes(term.shape[:2], image.shape[:2]) else None


def _smaller(term: Term) -> Term | None:
    """What a term makes larger or smaller, by repeating each element beside itself or by an operator of its own."""
    if isinstance(term.operator, Interpolate | Nearest):
        return term.inputs[0]
    if not isinstance(term.operator, Reshape) or not isinstance(term.inputs[0].operator, Expand):
        return None
    (wide,) = term.inputs
    (image,) = wide.inputs
    beside = isinstance(wide.operator, Expand) and wide.operator.axes == tuple(range(0, wide.type.rank, 2))
    merged = tuple(s * f for s, f in zip(image.shape, wide.shape[1::2], strict=False))
    return image if beside and equal_shapes(term.shape, merged) else None


def is_repeated(term: Term) -> bool:
    """Whether a term is an image whose places are repeated, each beside itself."""
    return isinstance(term.operator, Reshape | Nearest) and resized_of(term) is not None


def _falls_into_blocks(image: Term) -> bool:
    channels = image.shape[1] if image.type.rank == 4 else None
    return isinstance(channels, int) and channels % LAID_OUT == 0


def _is_of_channels(term: Term, kind: type[Add | Mul]) -> bool:
    """Whether a term adds a constant to each channel, or multiplies it by one."""
    others = [i for i in term.inputs if isinstance(i.operator, Expand) and i.constant and i.operator.axes == (1,)]
    return isinstance(term.operator, kind) and len(others) == 1


def _is_scaled(term: Term) -> bool:
    """Whether a term is another times a constant number."""
    numbers = [i for i in term.inputs if isinstance(i.operator, Expand) and i.constant and i.operator.axes == ()]
    return isinstance(term.operator, Mul) and len(numbers) == 1


def _is_folded(term: Term, known: Mapping[Term, bool], made: Mapping[Term, Term]) -> bool:
    """Whether a term is a convolution with only factors and shifts behind it that are put into its weights. What comes
    in blocks from elsewhere counts as one, which it is timed behind.
    """
    while not isinstance(term.operator, Conv):
        if term.is_variable:
            if term not in made:
                return known.get(term, False)
            term = made[term]
            continue
        images = [i for i in term.inputs if not isinstance(i.operator, Expand)]
        if isinstance(term.operator, BatchNorm):
            images = images[:1]
        elif not (_is_scaled(term) or _is_of_channels(term, Add) or _is_of_channels(term, Mul)):
            return False
        (term,) = images
    return True


def how_taken(kernel: Term) -> dict[Term, How]:
    """How a kernel takes the images that convolutions in it compute from: in blocks whatever follows, or as they are.
    So those of few channels are taken, those whose channels are brought to the front, and those that further channels
    are put beside. All else that it reads is taken as its result is.
    """
    return dict(_image_of(t.operator, t) for t in subterms(kernel) if isinstance(t.operator, Conv))


def _image_of(conv: Conv, term: Term) -> tuple[Term, How]:
    image = term.inputs[0]
    if isinstance(image.operator, Pad) and image.shape[1] == image.inputs[0].shape[1]:
        (image,) = image.inputs
    if brings_channels_first(image) or isinstance(image.operator, Pad):
        return image.inputs[0], "as it is"
    few = isinstance(image.shape[1], int) and image.shape[1] < LAID_OUT and conv.group == 1
    return image, "as it is" if few or not _convolved_in_blocks(conv, term) else "in blocks"
