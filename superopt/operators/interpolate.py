"""Images made larger or smaller linearly between neighbours."""

from __future__ import annotations

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.dim import Dim, Shape, product
from superopt.operators.attributes import attr
from superopt.operators.declare import operator
from superopt.operators.declared import Declared
from superopt.operators.nodes import Emitter, NotUnderstood, concrete
from superopt.operators.places import demand_maps, place_within
from superopt.operators.resize_nodes import resized


@operator("interpolate", onnx="Resize")
class Interpolate(Declared):
    """`y[n,c,p,q] = Σ_ij a[p,i] · b[q,j] · x[n,c,i,j]`, where a row of a or b weighs the two neighbours of a place."""

    needs = frozenset({"div"})
    linear = (0,)
    zero = True
    named_axes = "n c (h) (w) -> n c (h) (w)"
    laws = """
    (law interpolate-shift (given (?x n c h w) (?y c))
      (= (interpolate (i j) (add ?x (expand (1) ?y))) (add (interpolate (i j) ?x) (expand (1) ?y))))
    (law interpolate-shift (given (?x n c h w) (?y c))
      (= (interpolate (i j) :by asymmetric (add ?x (expand (1) ?y)))
         (add (interpolate (i j) :by asymmetric ?x) (expand (1) ?y))))
    (law interpolate-shift (given (?x n c h w) (?y c))
      (= (interpolate (i j) :by align_corners (add ?x (expand (1) ?y)))
         (add (interpolate (i j) :by align_corners ?x) (expand (1) ?y))))
    (law interpolate-conv-point (given (?x n c h w) (?k o d 1 1))
      (= (interpolate (i j) (conv :group g ?x ?k)) (conv :group g (interpolate (i j) ?x) ?k)))
    (law interpolate-conv-point (given (?x n c h w) (?k o d 1 1))
      (= (interpolate (i j) :by asymmetric (conv :group g ?x ?k))
         (conv :group g (interpolate (i j) :by asymmetric ?x) ?k)))
    (law interpolate-conv-point (given (?x n c h w) (?k o d 1 1))
      (= (interpolate (i j) :by align_corners (conv :group g ?x ?k))
         (conv :group g (interpolate (i j) :by align_corners ?x) ?k)))
    """
    to: Shape = attr(size=True, least=1, sample=[(10, 12)])
    by: str = attr(default="half_pixel")

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """The sizes asked for, of one or more axes after the channels."""
        return demand_maps("interpolate", x, self.to, self.by)

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """One axis after the other, each element between its two neighbours."""
        for axis, size in enumerate(concrete(self.to, "interpolate"), 2):
            if size != x.shape[axis]:
                x = self._along(ring, x, axis, size)
        return x

    def _along(self, ring: Carrier, x: Array, axis: int, size: int) -> Array:
        places = [place_within(p, x.shape[axis], size, self.by) for p in range(size)]
        low = [int(p) for p in places]
        high = [min(i + 1, x.shape[axis] - 1) for i in low]
        shape = [size if a == axis else 1 for a in range(x.ndim)]
        parts = []
        for at, share in (
            (low, [1 - p + i for p, i in zip(places, low, strict=True)]),
            (high, [p - i for p, i in zip(places, low, strict=True)]),
        ):
            tops, bottoms = ([int(v) for v in vs] for vs in zip(*(s.as_integer_ratio() for s in share), strict=True))
            weight = ring.div(ring.constant(1) * np.asarray(tops), ring.constant(1) * np.asarray(bottoms))
            parts.append(ring.mul(np.take(x, at, axis), weight.reshape(shape)))
        return ring.add(*parts)

    def flops(self, result: Shape, *shapes: Shape) -> Dim:
        """A multiplication and an addition for each of the neighbours, two along each axis."""
        return product(result) * (2 << len(self.to))

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """Since opset 11; the sizes of sample and channels as they are."""
        if out.opset < 11:
            raise NotUnderstood("Resize takes sizes since opset 11")
        (x,) = inputs
        to = (*out.shape(x)[:2], *self.to)
        return resized(out, x, to, {"mode": "linear", "coordinate_transformation_mode": self.by})
