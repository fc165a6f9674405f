"""Positions as rotations (Su and others 2021, arXiv 2104.09864), as ONNX has them since opset 23."""

from __future__ import annotations

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Shape
from superopt.operators.attention.heads import apart, joined
from superopt.operators.composite import Composite
from superopt.operators.declare import operator, reads
from superopt.operators.differences import Neg
from superopt.operators.layout import Concat, Expand
from superopt.operators.nodes import NotUnderstood, Source, pass_over
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Mul
from superopt.operators.rearrange import Gather
from superopt.relations import are_equal
from superopt.term import Term, make


@operator("rotary", onnx="RotaryEmbedding")
class Rotary(Composite):
    """`y = x · (cos, cos) + (−x₂, x₁) · (sin, sin)`, of the halves of each row, over `batch heads rows width`."""

    linear = (0,)

    def shape(self, x: Shape, cos: Shape, sin: Shape) -> Shape:  # type: ignore[override]
        """The shape of the input; each row of a batch has half as many cosines and sines as it is wide."""
        require(len(x) == 4, f"rotary: four axes are expected, not {x}")
        for given in (cos, sin):
            require(len(given) == 3, f"rotary: three axes are expected, not {given}")
            for d, wanted in zip((*given[:2], 2 * given[2]), (x[0], *x[2:]), strict=True):
                require(d == wanted, f"rotary: {given} does not fit {x}")
        return x

    def eval(self, ring: Carrier, x: Array, cos: Array, sin: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, x, cos, sin)

    def definition(self, *inputs: Term) -> Term:
        """As exporters write it: by tables for whole rows, each of a half twice."""
        x, *tables = inputs
        cos, sin = (Expand((0, 2, 3), x.shape)(Concat(2)(t, t)) for t in tables)
        return Add()(Mul()(x, cos), Mul()(turned(x), sin))


def turned(x: Term) -> Term:
    """The halves of each row exchanged, and one negative: a quarter of a turn."""
    half = x.shape[3] // 2
    return Concat(3)(Neg()(Slice(3, half, x.shape[3])(x)), Slice(3, 0, half)(x))


@reads("RotaryEmbedding")
def rotary(node: Source) -> Term:
    """Of four axes, or of rows in which heads stand side by side; tables looked up by positions. What is beyond the
    width that is turned stays.
    """
    x, cos, sin, positions = (*node.inputs, None)[:4]
    if x is None or cos is None or sin is None:
        raise NotUnderstood("an input is missing")
    if node.attributes.get("interleaved", 0):
        raise NotUnderstood("pairs stand beside each other")
    flat = x.type.rank == 3
    if flat:
        x = apart(x, int(node.attributes.get("num_heads", 0)))
    pass_over(node, "num_heads")
    if positions is not None:
        cos, sin = make(Gather(0), (cos, positions)), make(Gather(0), (sin, positions))
    width = int(node.attributes.get("rotary_embedding_dim", 0))
    if width and not are_equal(width, x.shape[3]):
        y = Concat(3)(make(Rotary(), (Slice(3, 0, width)(x), cos, sin)), Slice(3, width, x.shape[3])(x))
    else:
        y = make(Rotary(), (x, cos, sin))
    return joined(y) if flat else y
