"""Maps resized to the nearest elements, where sizes are symbols: those that are numbers are read as moves."""

from __future__ import annotations

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.dim import Dim, Shape
from superopt.operators.attributes import attr
from superopt.operators.declare import operator
from superopt.operators.declared import Declared
from superopt.operators.nodes import Emitter, NotUnderstood, Source, concrete
from superopt.operators.places import demand_maps
from superopt.operators.resize import resizes
from superopt.operators.resize_nodes import resized
from superopt.term import FACTS, Term, make


@operator("nearest", onnx="Resize")
class Nearest(Declared):
    """`y[n,c,p,q] = x[n,c,⌊p·h/i⌋,⌊q·w/j⌋]` for maps of h by w that become i by j, by quotients of 32 bits."""

    keeps = frozenset(FACTS)
    linear = (0,)
    zero = True
    moves = True
    named_axes = "n c (h) (w) -> n c (h) (w)"
    laws = """
    (law nearest-shift (given (?x n c h w) (?y c))
      (= (nearest (i j) (add ?x (expand (1) ?y))) (add (nearest (i j) ?x) (expand (1) ?y))))
    (law nearest-relu (given (?x n c h w))
      (= (nearest (i j) (relu ?x)) (relu (nearest (i j) ?x))))
    (law nearest-conv-point (given (?x n c h w) (?k o d 1 1))
      (= (nearest (i j) (conv :group g ?x ?k)) (conv :group g (nearest (i j) ?x) ?k)))
    """
    to: Shape = attr(size=True, least=1, sample=[(10, 12)])

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """The sizes asked for, of one or more axes after the channels."""
        return demand_maps("nearest", x, self.to, "asymmetric")

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """One axis after the other; places as onnxruntime 1.32 computes them, which may lie beside the exact ones."""
        for axis, size in enumerate(concrete(self.to, "nearest"), 2):
            factor = np.float32(size) / np.float32(x.shape[axis])
            places = np.floor(np.arange(size, dtype=np.float32) / factor).astype(int)
            x = np.take(x, np.minimum(places, x.shape[axis] - 1), axis)
        return x

    def flops(self, result: Shape, *shapes: Shape) -> Dim:
        """None: elements are moved."""
        return 0

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """Since opset 11; the sizes of sample and channels as they are."""
        if out.opset < 11:
            raise NotUnderstood("Resize takes sizes since opset 11")
        (x,) = inputs
        by = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return resized(out, x, (*out.shape(x)[:2], *self.to), by)


@resizes("nearest")
def _nearest(node: Source, x: Term, to: Shape, by: str) -> Term:
    """By the elements before each place, as torch has it."""
    rounding = node.attributes.get("nearest_mode", "round_prefer_floor")
    if (by, rounding) != ("asymmetric", "floor"):
        raise NotUnderstood(f"resize of {x.shape} to the nearest by {by}, {rounding}")
    return make(Nearest(to), (x,))


@resizes("repeated")
def _repeated(node: Source, x: Term, to: Shape, by: str) -> Term:
    """Likewise: each element a whole number of times."""
    return make(Nearest(to), (x,))
