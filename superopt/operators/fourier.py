"""Discrete Fourier transforms, which are products with matrices of waves, and of frames convolutions with them.

onnxruntime 1.32 transforms 64 rows of 100 numbers in 458 µs, and 64 of 128, a power of two, in 86. A product takes 11
and 14. Of a second of speech, in frames of 400, its STFT takes 3.1 ms, and a convolution over frames 0.15.
"""

from __future__ import annotations

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Dim, Shape, at_most, floor_div, product
from superopt.operators.attributes import attr
from superopt.operators.composite import Composite
from superopt.operators.constant import filled
from superopt.operators.conv import Conv
from superopt.operators.declare import operator
from superopt.operators.layout import Expand, Transpose, positive_axis, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.nodes import Emitter, NotUnderstood, Source
from superopt.operators.pointwise import Mul
from superopt.operators.waves import Waves
from superopt.relations import are_equal, is_one
from superopt.term import Term, make

LARGEST = 2**22
"""So many numbers of waves are kept at most."""


@operator("dft", onnx="DFT")
class Dft(Composite):
    """`y[k] = Σ_i x[i] e^(−2πj ik/n)` along an axis, of real numbers or of complex ones, whose two parts stand last;
    `inverse`, `Σ_i x[i] e^(2πj ik/n) / n`. `onesided`, of real numbers, gives the first half of it, and the middle.
    """

    needs = frozenset({"div"})
    linear = (0,)
    zero = True
    axis: int = attr(default=1)
    inverse: int = attr(default=0)
    onesided: int = attr(default=0)

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """As many waves as numbers, or as differ by more than their sign."""
        require(0 <= self.axis < len(x) - 1, f"dft: {x} has no axis {self.axis} before that of the parts")
        declared = isinstance(x[-1], int) and 1 <= x[-1] <= (1 if self.onesided else 2)
        require(declared, f"dft: numbers of {x[-1]} parts")
        require(not (self.onesided and self.inverse), "dft: one side of an inverse is not declared")
        return (*x[: self.axis], _waves(x[self.axis], self.onesided), *x[self.axis + 1 : -1], 2)

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, x)

    def definition(self, *inputs: Term) -> Term | None:
        """A product with waves, where there are not too many."""
        (x,) = inputs
        n, parts = x.shape[self.axis], x.shape[-1]
        to = _waves(n, self.onesided)
        if not isinstance(n, int) or not isinstance(to, int) or not isinstance(parts, int):
            return None
        if n * parts * to * 2 > LARGEST:
            return None
        others = [a for a in range(x.type.rank - 1) if a != self.axis]
        moved = _transposed(x, (*others, self.axis, x.type.rank - 1))
        rows = reshaped(moved, (product(moved.shape[:-2]), n * parts))
        found = MatMul()(rows, make(Waves(n, to, parts, self.inverse)))
        back = sorted(range(x.type.rank - 1), key=(*others, self.axis).__getitem__)
        return _transposed(reshaped(found, (*moved.shape[:-2], to, 2)), (*back, x.type.rank - 1))

    def flops(self, result: Shape, *shapes: Shape) -> Dim:
        """A complex product for each number and wave."""
        return product(result) * shapes[0][self.axis] * 4

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """The axis is an attribute before opset 20, an input after."""
        if out.opset < 17:
            raise NotUnderstood("DFT is of opset 17")
        given = {"inverse": self.inverse, "onesided": self.onesided}
        if out.opset < 20:
            return out.node("DFT", inputs, {**given, "axis": self.axis})
        axis = out.node("Reshape", (out.integers((self.axis,)), out.integers(())))
        return out.node("DFT", (*inputs, "", axis), given)

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """Of as many numbers as there are along the axis, which must be known."""
        x, length, axis = (*node.inputs, None, None)[:3]
        if x is None:
            raise NotUnderstood("an input is missing")
        at = node.sizes(2) if axis is not None else (int(node.attributes.get("axis", 1 if node.opset < 20 else -2)),)
        if at is None or not isinstance(at[0], int):
            raise NotUnderstood("the axis is computed while the model runs")
        op = cls(positive_axis(at[0], x.type.rank), *(int(node.attributes.get(n, 0)) for n in ("inverse", "onesided")))
        asked = None if length is None else node.sizes(1)
        if length is not None and (asked is None or not are_equal(asked[0], x.shape[op.axis])):
            raise NotUnderstood("as many numbers are transformed as there are, and neither more nor less")
        if op.inverse and op.onesided:
            raise NotUnderstood("one side of an inverse")
        return make(op, (x,))


@operator("stft", onnx="STFT")
class Stft(Composite):
    """`y[b, f, k] = Σ_i w[i] x[b, step·f + i] e^(−2πj ik/n)`: frames of real numbers, weighed and transformed."""

    needs = frozenset({"div"})
    linear = (0, 1)
    zero = True
    step: Dim = attr(size=True, least=1, sample=[1, 2])
    onesided: int = attr(default=1)

    def shape(self, x: Shape, window: Shape) -> Shape:  # type: ignore[override]
        """As many frames as fit."""
        require(len(x) == 3 and len(window) == 1, f"stft: {x} and {window} are no signals and a window")
        require(x[-1] == 1, f"stft: numbers of {x[-1]} parts")
        require(at_most(window[0], x[1]), f"stft: there is no frame of {window[0]} in {x}")
        frames = floor_div(x[1] - window[0], self.step) + 1
        return (x[0], frames, _waves(window[0], self.onesided), 2)

    def eval(self, ring: Carrier, x: Array, window: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, x, window)

    def definition(self, *inputs: Term) -> Term | None:
        """A convolution with waves, weighed by the window, where there are not too many."""
        x, window = inputs
        (n,) = window.shape
        to = _waves(n, self.onesided)
        if not isinstance(n, int) or not isinstance(to, int) or n * to * 2 > LARGEST:
            return None
        weighed = Mul()(make(Waves(n, to)), Expand((0,), (n, 2 * to))(window))
        kernel = reshaped(Transpose((1, 0))(weighed), (2 * to, 1, n))
        found = Conv((self.step,), (0, 0), (1,), 1)(reshaped(x, (x.shape[0], 1, x.shape[1])), kernel)
        return reshaped(Transpose((0, 2, 1))(found), self.shape(x.shape, window.shape))

    def flops(self, result: Shape, *shapes: Shape) -> Dim:
        """A product and a sum for each number and wave."""
        return product(result) * shapes[1][0] * 2

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """The window says how long frames are."""
        if out.opset < 17:
            raise NotUnderstood("STFT is of opset 17")
        x, window = inputs
        step = out.node("Reshape", (out.integers((self.step,)), out.integers(())))
        return out.node("STFT", (x, step, window), {"onesided": self.onesided})

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """Of real numbers, in steps and frames of known sizes; where there is no window all numbers of one count."""
        x, _, window, _ = (*node.inputs, None, None)[:4]
        steps, lengths = node.sizes(1), node.sizes(3) if len(node.inputs) > 3 and node.inputs[3] is not None else None
        if x is None or steps is None:
            raise NotUnderstood("the steps are computed while the model runs")
        if window is None:
            if lengths is None:
                raise NotUnderstood("how long frames are is computed while the model runs")
            window = filled(1.0, lengths)
        elif lengths is not None and not are_equal(lengths[0], window.shape[0]):
            raise NotUnderstood(f"frames of {lengths[0]} for a window of {window.shape[0]}")
        if x.type.rank != 3 or not is_one(x.shape[-1]):
            raise NotUnderstood(f"signals of {x.shape}: real numbers are declared, of which parts stand last")
        return make(cls(steps[0], int(node.attributes.get("onesided", 1))), (x, window))


def _waves(n: Dim, onesided: int) -> Dim:
    """How many waves there are for n numbers: of real ones half are the others with another sign."""
    return floor_div(n, 2) + 1 if onesided else n


def _transposed(x: Term, perm: tuple[int, ...]) -> Term:
    return x if perm == tuple(range(len(perm))) else Transpose(perm)(x)
