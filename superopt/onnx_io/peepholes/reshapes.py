"""Reshapes as they are written: of a reduction that keeps its axes, of repeated places, of shuffles, or plainly."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from superopt.dim import Shape
from superopt.onnx_io.peepholes.form import Form
from superopt.operators import Emitter
from superopt.operators.element_types import ONNX_TYPES
from superopt.operators.layout import Expand, Reshape, Transpose
from superopt.operators.reductions import Reduction
from superopt.operators.resize_nodes import resized
from superopt.operators.shuffles import shuffle_of
from superopt.relations import are_equal, equal_shapes
from superopt.term import REAL, Term

_RESIZED = (REAL, "float32")
"""Of these types onnxruntime has a Resize; not of 64 bits."""

_WITH_MODES = 11
"""The opset that gave DepthToSpace its modes."""


def reshape(term: Term, op: Reshape) -> Form:
    """Symbolic sizes that stay in their place are copied (0), one other is what remains (-1); more are computed."""
    (x,) = term.inputs

    def write(out: Emitter, name: str) -> str:
        return out.node("Reshape", (name, out.integers(_shape_vector(x.shape, op.to))))

    return Form((x,), write)


def keeping_axes(term: Term, op: Reshape, inner: Callable[[Term], bool]) -> Form | None:
    """A reduction whose axes are put back, with one place each, keeps them: so runtimes know what they fuse."""
    reduction = term.inputs[0].operator
    if not isinstance(reduction, Reduction) or not reduction.axes or not inner(term.inputs[0]):
        return None
    (x,) = term.inputs[0].inputs
    return (
        Form((x,), partial(reduction.written, keeping=True)) if equal_shapes(op.to, reduction.kept(x.shape)) else None
    )


def repeated(term: Term, op: Reshape, inner: Callable[[Term], bool]) -> Form | None:
    """Each place of an image repeated, along axes of their own that then merge, is one Resize to the nearest."""
    (wide,) = term.inputs
    if not isinstance(wide.operator, Expand) or not inner(wide) or term.constant:
        return None
    (x,) = wide.inputs
    to, even = wide.operator.to, tuple(range(0, len(wide.operator.to), 2))
    factors = to[1::2]
    if wide.operator.axes != even or len(op.to) != len(even) or x.type.dtype not in _RESIZED or x.type.rank != 4:
        return None
    merges = all(are_equal(d, size * factor) for d, size, factor in zip(op.to, x.shape, factors, strict=True))
    if not merges or factors[:2] != (1, 1) or not all(isinstance(f, int) for f in factors):
        return None

    def write(out: Emitter, name: str) -> str:
        if out.opset < 11:
            return _upsampled(out, name, [f for f in factors if isinstance(f, int)])
        given = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return resized(out, name, op.to, given)

    return Form((x,), write)


def _upsampled(out: Emitter, name: str, factors: list[int]) -> str:
    """The same before a Resize had modes: by factors, which were an attribute first."""
    given = {"mode": "nearest"}
    if out.opset < 9:
        return out.node("Upsample", (name,), {**given, "scales": [float(f) for f in factors]})
    by = out.node("Cast", (out.integers(factors),), {"to": ONNX_TYPES["float32"]})
    return out.node("Upsample" if out.opset == 9 else "Resize", (name, by), given)


def shuffled(term: Term, inner: Callable[[Term], bool]) -> Form | None:
    """Places that move between channels and image are one node, which takes less than the transpose."""
    found = shuffle_of(term)
    if found is None or not all(map(inner, found.within)):
        return None
    moved, parted = found.within
    assert isinstance(moved.operator, Transpose)
    perm = list(moved.operator.perm)

    def write(out: Emitter, name: str) -> str:
        if out.opset >= _WITH_MODES or found.mode == "DCR":
            return out.node(found.op_type, (name,), found.attributes)
        apart = out.node("Reshape", (name, out.integers(parted.shape)))
        return out.node("Reshape", (out.node("Transpose", (apart,), {"perm": perm}), out.integers(term.shape)))

    return Form((found.image,), write)


def _shape_vector(source: Shape, to: Shape) -> Shape:
    kept = [i for i, d in enumerate(to) if not isinstance(d, int) and i < len(source) and are_equal(d, source[i])]
    rest = [i for i, d in enumerate(to) if not isinstance(d, int) and i not in kept]
    # What remains should be the size that takes most to compute.
    remaining = max(rest, key=lambda i: len(str(to[i])), default=None)
    return tuple(0 if i in kept else -1 if i == remaining else d for i, d in enumerate(to))
