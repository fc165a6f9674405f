"""A number for each channel, repeated over images as a resize of images of one place.

Gates of squeeze-and-excitation blocks (Hu et al., CVPR 2018) and what is pooled over a whole image beside it: runtimes
that keep images in blocks of channels resize them there, to the nearest, but what is broadcast, and all beside it, they
lay out anew before and after.
"""

from __future__ import annotations

from superopt.operators.definitions.blocks import is_of_whole_blocks
from superopt.operators.layout import Expand, Reshape
from superopt.operators.meanings import defines
from superopt.relations import equal_shapes, is_one
from superopt.term import REAL, Term

RESIZED = (REAL, "float32")
"""The element types that images are resized of in blocks."""


@defines("expand", "as a resize")
def as_a_resize(expand: Expand, x: Term) -> Term | None:
    """Of images of one place, to any size that is a number; of what is constant nothing is gained."""
    to, image = expand.to, x.inputs[0] if isinstance(x.operator, Reshape) else None
    if image is None or x.constant or image.type.dtype not in RESIZED or len(to) != 4 or image.type.rank != 4:
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
