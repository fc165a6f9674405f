"""Numbers and truth values as another type."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.operators.attributes import attr
from superopt.operators.constant import filled
from superopt.operators.declare import operator, reads
from superopt.operators.element_types import ONNX_TYPES, type_of_number
from superopt.operators.nodes import Emitter, NotUnderstood, Source, pass_over, present
from superopt.operators.pointwise import Unary
from superopt.term import Term, Type, make


@operator("cast")
class Cast(Unary):
    """`y = x` as another type: truth values as 0 and 1, integers and floating-point numbers rounded to nearest."""

    jumps = True
    any_type = True
    linear = (0,)
    zero = True
    to: str = attr(default="float32")

    def dtype(self, inputs: Sequence[Type]) -> str:
        """The type that is named."""
        return self.to

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """The same number."""
        return np.asarray(x, ring.dtype)

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """ONNX numbers its types."""
        return out.node("Cast", inputs, {"to": ONNX_TYPES[self.to]})


@reads("Cast")
def cast(node: Source) -> Term:
    """From any type to floating-point numbers of 32 or 64 bits; to their own type, the input itself."""
    (x,) = present(node.inputs, 1)
    pass_over(node, "saturate", "round_mode")  # of 8-bit floats
    return _as_type(x, type_of_number(int(node.attributes["to"])))


@reads("ConstantOfShape")
def constant_of_shape(node: Source) -> Term:
    """A floating-point number over sizes that are known as symbols."""
    sizes, value = node.sizes(0), np.asarray(node.attributes.get("value", np.zeros(1, np.float32)))
    if sizes is None or value.dtype.name not in ONNX_TYPES:
        raise NotUnderstood(f"the sizes are computed while the model runs, or numbers are of type {value.dtype}")
    return Cast(value.dtype.name)(filled(float(value.item()), sizes))


@reads("CastLike")
def cast_like(node: Source) -> Term:
    """To the type of the second input."""
    x, like = present(node.inputs, 2)
    pass_over(node, "saturate", "round_mode")  # of 8-bit floats
    return _as_type(x, like.type.dtype)


def _as_type(x: Term, to: str) -> Term:
    if to == x.type.dtype:
        return x
    if to not in ONNX_TYPES:
        raise NotUnderstood(f"a cast from {x.type.dtype} to {to}")
    return make(Cast(to), (x,))
