"""Which values a runtime keeps in blocks of channels, by what makes them.

onnxruntime computes images so from the convolution that makes one to whatever cannot take it (its NCHWc transformer),
and this is what its version 1.32 takes: of all point-wise operators a few, and of sums and products those of two such
images. Factors of channels become convolutions of single channels; whatever else a convolution is scaled or shifted by
goes into its weights. Images are filled up to whole blocks; those that are joined or pooled have to be whole before.
"""

from __future__ import annotations

from superopt.operators.activations import LeakyRelu
from superopt.operators.blocks import is_of_whole_blocks
from superopt.operators.layout import Concat, Expand
from superopt.operators.linear import Conv
from superopt.operators.normalize import BatchNorm
from superopt.operators.padding import Pad
from superopt.operators.pictures import brings_channels_first
from superopt.operators.pointwise import Add, Mul
from superopt.operators.reduce import GlobalAvgPool, Pool
from superopt.term import Term, subterms

BLOCK = 16
"""Channels come in blocks of 8 or 16, by the processor; what is a multiple of this does on all."""

COMPUTED_IN_BLOCKS = frozenset({"relu", "clip", "sigmoid", "tanh", "hard_sigmoid", "hard_swish", "gelu", "cast"})
"""The functions of one image that are; a leaky relu is as part of a convolution alone."""


def in_blocks(term: Term, known: dict[Term, bool]) -> bool:
    """Whether a term's value is made in blocks. What is known, of variables at least, is added to."""
    if term not in known:
        known[term] = not term.is_variable and _made_in_blocks(term, known)
    return known[term]


def _made_in_blocks(term: Term, known: dict[Term, bool]) -> bool:
    op = term.operator
    if isinstance(op, Conv):
        return _convolved_in_blocks(op, term)
    if op.name in COMPUTED_IN_BLOCKS or (isinstance(op, BatchNorm) and all(i.constant for i in term.inputs[1:])):
        return in_blocks(term.inputs[0], known)
    if isinstance(op, LeakyRelu):
        return in_blocks(term.inputs[0], known) and _is_folded(term.inputs[0])
    if isinstance(op, Pool | GlobalAvgPool) or (isinstance(op, Concat) and op.axis == 1):
        return all(_is_whole(i) and in_blocks(i, known) for i in term.inputs)
    return isinstance(op, Add | Mul) and _combined_in_blocks(term, known)


def _convolved_in_blocks(conv: Conv, image: Term) -> bool:
    """Whether a convolution gives its image in blocks."""
    x, kernel = image.inputs
    if image.type.rank != 4 or not kernel.constant:
        return False
    taken, given, groups = x.shape[1], image.shape[1], conv.group
    if not isinstance(taken, int) or not isinstance(given, int) or not isinstance(groups, int):
        return False
    if groups == 1:
        return taken < BLOCK or is_of_whole_blocks(taken)
    if groups == taken == given:
        return is_of_whole_blocks(taken)
    return taken // groups % BLOCK == given // groups % BLOCK == 0


def _is_whole(image: Term) -> bool:
    channels = image.shape[1] if image.type.rank == 4 else None
    return isinstance(channels, int) and channels % BLOCK == 0


def _combined_in_blocks(term: Term, known: dict[Term, bool]) -> bool:
    """Whether a sum or product is computed in blocks."""
    images = [i for i in term.inputs if not isinstance(i.operator, Expand)]
    if not images or not all(in_blocks(i, known) for i in images):
        return False
    return len(images) == 2 or _is_of_channels(term, Mul) or _is_folded(term)


def _is_of_channels(term: Term, kind: type[Add | Mul]) -> bool:
    """Whether a term adds a constant to each channel, or multiplies it by one."""
    others = [i for i in term.inputs if isinstance(i.operator, Expand) and i.constant and i.operator.axes == (1,)]
    return isinstance(term.operator, kind) and len(others) == 1


def _is_folded(term: Term) -> bool:
    """Whether a term is a convolution with only factors and shifts behind it that are put into its weights."""
    while not isinstance(term.operator, Conv):
        images = [i for i in term.inputs if not isinstance(i.operator, Expand)]
        if isinstance(term.operator, BatchNorm):
            images = images[:1]
        elif not (_is_scaled(term) or _is_of_channels(term, Add) or _is_of_channels(term, Mul)):
            return False
        (term,) = images
    return True


def _is_scaled(term: Term) -> bool:
    """Whether a term is another times a constant number."""
    numbers = [i for i in term.inputs if isinstance(i.operator, Expand) and i.constant and i.operator.axes == ()]
    return isinstance(term.operator, Mul) and len(numbers) == 1


def taken_as_they_are(root: Term) -> set[Term]:
    """The images that convolutions within a kernel do not take in blocks: those of few channels, which they compute
    from as they are, those whose channels they bring to the front, and those that further channels are put beside.
    """
    images = [_taken_plainly(t.operator, t.inputs[0]) for t in subterms(root) if isinstance(t.operator, Conv)]
    return {image for image in images if image is not None}


def _taken_plainly(conv: Conv, image: Term) -> Term | None:
    """What a convolution of an image takes as it is, if anything."""
    if isinstance(image.operator, Pad) and image.shape[1] == image.inputs[0].shape[1]:
        (image,) = image.inputs
    if brings_channels_first(image) or isinstance(image.operator, Pad):
        return image.inputs[0]
    few = isinstance(image.shape[1], int) and image.shape[1] < BLOCK
    return image if few and conv.group == 1 else None
