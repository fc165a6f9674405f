"""Convolutions of single places to few channels, as products: scores of places, masks, attention over an image.

Runtimes compute whole blocks of channels: onnxruntime 1.32 takes 86 µs for one of 64 channels of 64 by 64 places where
the image is not in blocks yet, and the product of a row with the image 14.
"""

from __future__ import annotations

from superopt.dim import product
from superopt.operators.conv import Conv
from superopt.operators.layout import Expand, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.meanings import defines
from superopt.relations import is_one
from superopt.term import Term

FEW = 4
"""To more channels a convolution is as fast."""


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
