"""Convolutions that are products: of single places to few channels, as scores and masks are, and of whole images.

Runtimes compute whole blocks of channels: onnxruntime 1.32 takes 86 µs for one of 64 channels of 64 by 64 places where
the image is not in blocks yet, and the product of a row with the image 14. Patches that were cut before (Qwen2-VL,
Wang et al. 2024), 256 of 3 by 2 by 14 by 14 numbers, are embedded in 12.6 ms by windows as large as they, and in 4.5 by
a product.
"""

from __future__ import annotations

from superopt.dim import product
from superopt.operators.conv import Conv
from superopt.operators.layout import Expand, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.meanings import defines
from superopt.relations import are_equal, is_one
from superopt.term import Term

FEW = 4
"""To more channels a convolution is as fast."""


@defines("conv", "of whole images")
def of_whole_images(conv: Conv, x: Term, k: Term) -> Term | None:
    """By windows as large as the image, each row of a layer: as patches that were cut before are embedded."""
    whole = x.type.rank > 2 and all(map(are_equal, x.shape[2:], k.shape[2:])) and not any(conv.pads)
    if not whole or not k.constant or not is_one(conv.group) or all(map(is_one, x.shape[2:])):
        return None
    (given, *_), inner = k.shape, product(k.shape[1:])
    weights = Transpose((1, 0))(reshaped(k, (given, inner)))
    return reshaped(MatMul()(reshaped(x, (x.shape[0], inner)), weights), (x.shape[0], given, *(1,) * (x.type.rank - 2)))


@defines("conv", "to few channels")
def to_few_channels(conv: Conv, x: Term, k: Term) -> Term | None:
    """Of each place by itself: the weights times the image, as channels by places."""
    (given, taken), window = k.shape[:2], k.shape[2:]
    plain = not any(conv.pads) and all(map(is_one, (*window, *conv.strides, conv.group)))
    if not plain or not k.constant or not isinstance(given, int) or given > FEW:
        return None
    count, places = x.shape[0], product(x.shape[2:])
    weights = reshaped(k, (given, taken))
    if is_one(count):
        y = MatMul()(weights, reshaped(x, (taken, places)))
    else:
        y = MatMul()(Expand((1, 2), (count, given, taken))(weights), reshaped(x, (count, taken, places)))
    return reshaped(y, (count, given, *x.shape[2:]))
