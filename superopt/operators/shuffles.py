"""Places that move between the channels and the image: a reshape, a transpose and a reshape that are one node."""

from __future__ import annotations

from dataclasses import dataclass

from superopt.operators.element_types import ONNX_TYPES
from superopt.operators.layout import Reshape, Transpose
from superopt.relations import equal_shapes
from superopt.term import REAL, Term

_DCR, _CRD, _BACK = (0, 3, 4, 1, 5, 2), (0, 1, 4, 2, 5, 3), (0, 3, 5, 1, 2, 4)


@dataclass(frozen=True)
class Shuffle:
    """DepthToSpace or SpaceToDepth by blocks of a side, of an image; `within` are the terms that it takes in."""

    op_type: str
    side: int
    mode: str
    image: Term
    within: tuple[Term, Term]

    @property
    def attributes(self) -> dict[str, object]:
        """Those of the node."""
        return {"blocksize": self.side, **({"mode": self.mode} if self.mode != "DCR" else {})}


def shuffle_of(term: Term) -> Shuffle | None:
    """The shuffle that a term is, written out; None where it is none, or of elements that runtimes do not shuffle."""
    if not isinstance(term.operator, Reshape) or not isinstance(term.inputs[0].operator, Transpose):
        return None
    (moved,) = term.inputs
    (parted,), perm = moved.inputs, term.inputs[0].operator.perm
    if not isinstance(parted.operator, Reshape) or term.type.dtype not in (REAL, *ONNX_TYPES):
        return None
    (image,) = parted.inputs
    if len(image.shape) != 4 or len(term.shape) != 4 or perm not in (_DCR, _CRD, _BACK):
        return None
    n, c, h, w = image.shape
    side = parted.shape[3 if perm == _BACK else 2]
    if not isinstance(side, int):
        return None
    less = c // side**2
    split, to = {
        _DCR: ((n, side, side, less, h, w), (n, less, h * side, w * side)),
        _CRD: ((n, less, side, side, h, w), (n, less, h * side, w * side)),
        _BACK: ((n, c, h // side, side, w // side, side), (n, c * side**2, h // side, w // side)),
    }[perm]
    if not equal_shapes(parted.shape, split) or not equal_shapes(term.shape, to):
        return None
    mode = "CRD" if perm == _CRD else "DCR"
    return Shuffle("SpaceToDepth" if perm == _BACK else "DepthToSpace", side, mode, image, (moved, parted))
