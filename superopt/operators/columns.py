"""Numbers that are picked one by one: columns of rows by constant places, and elements by places of their own.

A Gather copies rows, and along the last axis rows of one number: onnxruntime 1.32 takes 1.9 ms to pick 512 columns of
512 rows, 0.18 as elements, and 0.11 as the columns that classical pipelines choose, with ONNX's operator for these. Two
columns of four, as boxes have, are a Slice in 39 µs, and 13.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Shape, at_most
from superopt.errors import ShapeError
from superopt.operators.attributes import attr
from superopt.operators.declare import operator, reads
from superopt.operators.declared import Declared
from superopt.operators.layout import positive_axis
from superopt.operators.nodes import ML_DOMAIN, Emitter, NotUnderstood, Source, present
from superopt.operators.picks import taken
from superopt.term import REAL, Term, Type, make

TYPES = (REAL, "float32", "float64", "int32", "int64")
"""The types of elements of which ONNX lets columns be chosen."""


@operator("columns", domain=ML_DOMAIN)
class Columns(Declared):
    """`y[.., j] = x[.., indices[j]]`: some of the columns of rows."""

    enumerated = False
    linear = (0,)
    zero = True
    moves = True
    indices: tuple[int, ...] = attr(sample=[(1, 0)])

    def dtype(self, inputs: Sequence[Type]) -> str:
        """That of what is taken from, where there are columns of it."""
        (x,) = inputs
        if x.dtype not in TYPES:
            raise ShapeError(f"columns: of elements of {x.dtype} none are chosen")
        return x.dtype

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """As many on the last axis as there are indices, each of which is there; not of a single row without axes."""
        require(len(x) > 1, f"columns: {x} has no rows")
        require(min(self.indices, default=-1) >= 0, f"columns: {self.indices} are none, or negative")
        require(at_most(max(self.indices) + 1, x[-1]), f"columns: {x} has no {max(self.indices)} on its last axis")
        return (*x[:-1], len(self.indices))

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """What stands there."""
        return np.take(x, self.indices, axis=-1)

    def definition(self, *inputs: Term) -> Term:
        """A take along the last axis, or a slice."""
        (x,) = inputs
        return taken(x, x.type.rank - 1, self.indices)

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """With the places as a constant."""
        return out.node("ArrayFeatureExtractor", (*inputs, out.integers(self.indices)), {}, ML_DOMAIN)


@reads("ArrayFeatureExtractor", domain=ML_DOMAIN)
def array_feature_extractor(node: Source) -> Term:
    """Some of the columns of rows, as pipelines choose them that scale some of them otherwise than others: as a take,
    which all that moves through takes knows of.
    """
    x, _ = present(node.inputs, 2)
    columns = node.constant(1)
    if columns is None or not columns.size:
        raise NotUnderstood("the columns are chosen while the model runs, or none is")
    if x.type.rank < 2:
        raise NotUnderstood(f"a matrix of rows is declared, not {x.type}")
    return taken(x, x.type.rank - 1, [int(i) for i in columns.ravel()])


@operator("elements", onnx="GatherElements")
class Elements(Declared):
    """`y[.., j, ..] = x[.., i[.., j, ..] mod n, ..]` along an axis of n elements: negative ones count from its end."""

    enumerated = False
    linear = (0,)
    zero = True
    moves = True
    axis: int = attr(default=0, onnx="axis", sample=[0, 1])

    def dtype(self, inputs: Sequence[Type]) -> str:
        """That of what is taken from."""
        return inputs[0].dtype

    def shape(self, x: Shape, i: Shape) -> Shape:  # type: ignore[override]
        """That of the indices, which is that of the elements along all other axes."""
        require(len(x) == len(i) and self.axis < len(x), f"elements: no axis {self.axis} in {x} and {i}")
        for axis, (of, at) in enumerate(zip(x, i, strict=True)):
            require(axis == self.axis or of == at, f"elements: {i} does not fit {x}")
        return i

    def eval(self, ring: Carrier, x: Array, i: Array) -> Array:  # type: ignore[override]
        """What stands there."""
        return np.take_along_axis(x, np.asarray(i, np.int64) % x.shape[self.axis], self.axis)

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """Where the indices have the sizes of the elements; fewer of them would be of the first rows alone."""
        x, i = present(node.inputs, 2)
        return make(cls(positive_axis(int(node.attributes.get("axis", 0)), x.type.rank)), (x, i))
