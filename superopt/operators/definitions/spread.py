"""What gates images, repeated as runtimes compute it in blocks of channels.

What is broadcast, and all beside it, they lay out anew before and after. A number for each channel, as of blocks of
squeeze and excitation (Hu et al., CVPR 2018) and of what is pooled over a whole image beside it, is an image of one
place that is resized to the nearest. A number for each place, as of attention gates (Oktay et al. 2018) and spatial
attention (Woo et al., ECCV 2018), is a convolution of one channel with ones.
"""

from __future__ import annotations

from superopt.operators.constant import filled
from superopt.operators.conv import Conv
from superopt.operators.definitions.blocks import LAID_OUT, is_of_whole_blocks
from superopt.operators.layout import Expand, Reshape, reshaped
from superopt.operators.meanings import defines
from superopt.relations import equal_shapes, is_one
from superopt.term import REAL, Term, make

IN_BLOCKS = (REAL, "float32")
"""The element types of images that are computed in blocks."""


@defines("expand", "as a resize")
def as_a_resize(expand: Expand, x: Term) -> Term | None:
    """Of images of one place, to any size that is a number; of what is constant nothing is gained."""
    to, image = expand.to, x.inputs[0] if isinstance(x.operator, Reshape) else None
    if image is None or x.constant or image.type.dtype not in IN_BLOCKS or len(to) != 4 or image.type.rank != 4:
        return None
    places = to[2:]
    if not is_of_whole_blocks(to[1]) or not all(isinstance(d, int) for d in places) or all(map(is_one, places)):
        return None
    if not all(map(is_one, image.shape[2:])) or not equal_shapes(image.shape[:2], to[:2]):
        return None
    if expand.axes != (0, 1) and not (expand.axes == (1,) and is_one(to[0])):
        return None
    n, c, h, w = to
    beside = Expand((0, 2, 4, 6), (n, 1, c, 1, 1, h, 1, w))  # as other images are resized to the nearest
    return Reshape(to)(beside(image))


@defines("expand", "as a convolution with ones")
def as_a_convolution(expand: Expand, x: Term) -> Term | None:
    """Of images of one channel, to any number of channels; of what is constant nothing is gained."""
    to, channels = expand.to, expand.to[1] if len(expand.to) == 4 else 0
    if x.constant or x.type.dtype not in IN_BLOCKS or not isinstance(channels, int):
        return None
    if channels < LAID_OUT or not is_of_whole_blocks(channels):
        return None
    if expand.axes != (0, 2, 3) and not (expand.axes == (2, 3) and is_one(to[0])):
        return None
    ones = filled(1.0, (channels, 1, 1, 1))
    return make(Conv(), (reshaped(x, (to[0], 1, *to[2:])), ones))
