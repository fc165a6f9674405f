"""How a term is written: over which terms, so that ONNX's own broadcasting, bias and n-ary forms are used."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import partial

from superopt.dim import Dim, Shape
from superopt.operators import Declared, Emitter, NotUnderstood
from superopt.operators.conv import Conv
from superopt.operators.element_types import ONNX_TYPES
from superopt.operators.layout import Concat, Expand, Reshape, Transpose, common_shape, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.nodes import concrete
from superopt.operators.normalize import Gemm
from superopt.operators.picks import END, Every, Slice
from superopt.operators.pointwise import Add
from superopt.operators.reductions import Reduction
from superopt.operators.repeats import unwritten
from superopt.operators.resize_nodes import resized
from superopt.operators.shuffles import shuffle_of
from superopt.relations import are_equal, equal_shapes, is_one
from superopt.term import REAL, Term

_RESIZED = (REAL, "float32")
"""Of these types onnxruntime has a Resize; not of 64 bits."""

_WITH_MODES = 11
"""The opset that gave DepthToSpace its modes."""


@dataclass(frozen=True)
class Form:
    """The terms whose values must be there, and what writes the nodes over them and gives the result's name."""

    operands: tuple[Term, ...]
    write: Callable[..., str]


def form_of(term: Term, uses: Mapping[Term, int], given: Container[Term]) -> Form:
    """The form of a term. `uses` counts how often each term is read; those in `given` exist and are not written.

    Raises `NotUnderstood` for an operator that has no form in ONNX.
    """
    op = term.operator
    if not isinstance(op, Declared):
        raise NotUnderstood(f"{op} has no form in ONNX")

    def inner(t: Term) -> bool:
        """Whether a term is written for its one reader only, so that the reader may swallow it."""
        return t not in given and uses.get(t, 0) == 1

    if isinstance(op, Add):
        with_bias = _conv_with_bias(term, inner)
        if with_bias is not None:
            return with_bias
    if isinstance(op, Concat):
        return Form(_chained(term, op, inner), lambda out, *names: out.node("Concat", names, {"axis": op.axis}))
    if isinstance(op, Reshape):
        return _repeated(term, op, inner) or _kept(term, op, inner) or _shuffled(term, inner) or _reshape(term, op)
    if isinstance(op, Expand):
        return _expand(term, op)
    if isinstance(op, Slice):
        return _slices(term, inner)
    if isinstance(op, Every) and isinstance(term.inputs[0].operator, Slice) and inner(term.inputs[0]):
        return _strided(term.inputs[0], op) or Form(term.inputs, op.to_onnx)
    return Form(_without_expands(term, given), op.to_onnx)


def _conv_with_bias(term: Term, inner: Callable[[Term], bool]) -> Form | None:
    """`add(conv(x, k), expand((1,), b))` is a Conv of three inputs."""
    for conv, bias in (term.inputs, term.inputs[::-1]):
        spread, op = bias.operator, conv.operator
        if isinstance(op, Conv) and isinstance(spread, Expand) and spread.axes == (1,) and inner(conv):
            return Form((*conv.inputs, bias.inputs[0]), op.to_onnx)
    return None


def _chained(term: Term, op: Concat, inner: Callable[[Term], bool]) -> tuple[Term, ...]:
    """The parts of a chain of concats along one axis."""
    parts: list[Term] = []
    stack = list(reversed(term.inputs))
    while stack:
        part = stack.pop()
        if part.operator == op and inner(part) and not part.constant:
            stack.extend(reversed(part.inputs))
        else:
            parts.append(part)
    return tuple(parts)


def _reshape(term: Term, op: Reshape) -> Form:
    """Symbolic sizes that stay in their place are copied (0), one other is what remains (-1); more are computed."""
    (x,) = term.inputs

    def write(out: Emitter, name: str) -> str:
        return out.node("Reshape", (name, out.integers(_shape_vector(x.shape, op.to))))

    return Form((x,), write)


def _kept(term: Term, op: Reshape, inner: Callable[[Term], bool]) -> Form | None:
    """A reduction whose axes are put back, with one place each, keeps them: so runtimes know what they fuse."""
    reduction = term.inputs[0].operator
    if not isinstance(reduction, Reduction) or not reduction.axes or not inner(term.inputs[0]):
        return None
    (x,) = term.inputs[0].inputs
    return (
        Form((x,), partial(reduction.written, keeping=True)) if equal_shapes(op.to, reduction.kept(x.shape)) else None
    )


def _repeated(term: Term, op: Reshape, inner: Callable[[Term], bool]) -> Form | None:
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


def _shuffled(term: Term, inner: Callable[[Term], bool]) -> Form | None:
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


def _expand(term: Term, op: Expand) -> Form:
    """Sizes that the input has need not be said again (1)."""

    def write(out: Emitter, name: str) -> str:
        said = tuple(1 if i in op.axes else d for i, d in enumerate(op.to))
        if out.opset >= 8:
            return out.node("Expand", (name, out.integers(said)))
        whole = out.node("Reshape", (name, out.integers([d if i in op.axes else 1 for i, d in enumerate(op.to)])))
        return out.node("Tile", (whole, out.integers(said)))

    return Form((aligned(term),), write)


def _slices(term: Term, inner: Callable[[Term], bool]) -> Form:
    """Slices of each other along different axes are one Slice.

    A bound at a fixed distance from the end of a symbolic axis is counted from there.
    """
    cuts: dict[int, tuple[Dim, Dim]] = {}
    while isinstance(op := term.operator, Slice) and op.axis not in cuts and (not cuts or inner(term)):
        (term,) = term.inputs
        start, stop = (_from_end(bound, term.shape[op.axis]) for bound in (op.start, op.stop))
        cuts[op.axis] = start, stop

    def write(out: Emitter, name: str) -> str:
        starts, ends = zip(*cuts.values(), strict=True)
        if out.opset >= 10:
            return out.node("Slice", (name, *map(out.integers, (starts, ends, tuple(cuts)))))
        numbers = {"starts": concrete(starts, "slice"), "ends": concrete(ends, "slice"), "axes": list(cuts)}
        return out.node("Slice", (name,), numbers)

    return Form((term,), write)


def _strided(cut: Term, op: Every) -> Form | None:
    """A slice of which every so many elements are taken is one Slice with steps."""
    assert isinstance(cut.operator, Slice)
    if cut.operator.axis != op.axis:
        return None
    bounds = tuple(_from_end(b, cut.inputs[0].shape[op.axis]) for b in (cut.operator.start, cut.operator.stop))
    return Form(cut.inputs, partial(op.written, bounds=bounds))


def _from_end(bound: Dim, size: Dim) -> Dim:
    distance = bound - size
    if isinstance(bound, int) or not isinstance(distance, int) or distance > 0:
        return bound
    return distance or END


def _without_expands(term: Term, given: Container[Term]) -> tuple[Term, ...]:
    """The inputs of a term, without the expands that ONNX does by itself there."""
    op, inputs = term.operator, list(term.inputs)
    spread = [i for i, t in enumerate(inputs) if isinstance(t.operator, Expand) and t not in given]
    if isinstance(op, Gemm):
        return tuple(aligned(t) if i == 2 and i in spread else t for i, t in enumerate(inputs))
    if isinstance(op, MatMul):
        for i in spread:
            batched = inputs[1 - i]
            stack = aligned(inputs[i])
            matrices = stack.type.rank >= 2 and equal_shapes(stack.shape[-2:], inputs[i].shape[-2:])
            if matrices and 1 - i not in spread and batched.type.rank > 2:
                inputs[i] = stack
        return tuple(inputs)
    if not (isinstance(op, Declared) and op.pointwise):
        return tuple(aligned(t) if i in spread and t in unwritten(term) else t for i, t in enumerate(inputs))
    spread = [i for i in spread if op.broadcasts is None or i in op.broadcasts]
    slim = [aligned(t) if i in spread else t for i, t in enumerate(inputs)]
    if spread and not _broadcasts_to(slim, term.shape):
        # One input must have the full shape; a constant one costs nothing while the model runs.
        full = next((i for i in spread if inputs[i].constant), spread[0])
        slim[full] = inputs[full]
    return tuple(slim)


def aligned(term: Term) -> Term:
    """What an expand repeats, under the shape that ONNX broadcasts by itself."""
    assert isinstance(term.operator, Expand)
    shape, base = term.operator.aligned(), term.inputs[0]
    # Reading drops sizes of 1 that the repeated value had: under its own shape it broadcasts as it is.
    while isinstance(base.operator, Reshape) and not _broadcast_alike(base.shape, shape, term.type.rank):
        base = base.inputs[0]
    return base if _broadcast_alike(base.shape, shape, term.type.rank) else reshaped(term.inputs[0], shape)


def _broadcast_alike(one: Shape, other: Shape, rank: int) -> bool:
    """Whether two shapes of at most a rank differ by axes of one place in front only, which ONNX adds by itself."""
    return len(one) <= rank and equal_shapes(_without_leading_ones(one), _without_leading_ones(other))


def _without_leading_ones(shape: Shape) -> Shape:
    first = next((i for i, d in enumerate(shape) if not is_one(d)), len(shape))
    return shape[first:]


def _broadcasts_to(inputs: list[Term], shape: Shape) -> bool:
    try:
        common = common_shape([t.shape for t in inputs])
    except NotUnderstood:
        return False
    return equal_shapes(common, shape)
