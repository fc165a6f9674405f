"""Normalizations over the axes of one sample: layer, root mean square, instance, group; and log-softmax."""

from __future__ import annotations

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Shape, product
from superopt.operators.activations import plus
from superopt.operators.attributes import attr
from superopt.operators.composite import Composite
from superopt.operators.composite_reductions import LogSumExp
from superopt.operators.constant import filled
from superopt.operators.declare import operator, reads
from superopt.operators.differences import Sub
from superopt.operators.layout import Expand, positive_axis, reshaped, spread
from superopt.operators.nodes import Emitter, NotUnderstood, Source, concrete, present
from superopt.operators.normalize import AlongAxis, demand_channels
from superopt.operators.pointwise import Add, Div, Mul, Sqrt
from superopt.operators.reductions import Mean
from superopt.relations import divides
from superopt.term import Term, make


def centred(x: Term, axes: tuple[int, ...]) -> Term:
    """`x` less its mean along axes."""
    return Sub()(x, _back(Mean(axes)(x), x, axes))


def over_root_mean_square(x: Term, of: Term, axes: tuple[int, ...], epsilon: float) -> Term:
    """`x / √(mean of² + ε)` along axes."""
    return over_root(x, Mean(axes)(Mul()(of, of)), axes, epsilon)


def over_root(x: Term, square: Term, axes: tuple[int, ...], epsilon: float) -> Term:
    """`x / √(square + ε)`, of a square without these axes."""
    return Div()(x, _back(Sqrt()(plus(square, epsilon)), x, axes))


def _back(y: Term, x: Term, axes: tuple[int, ...]) -> Term:
    kept = tuple(a for a in range(x.type.rank) if a not in axes)
    return Expand(kept, x.shape)(y)


@operator("layernorm", onnx="LayerNormalization")
class LayerNorm(Composite):
    """`y = (x − mean x) / √(mean (x − mean x)² + ε) · scale + bias`, over the axes from `axis` on."""

    axis: int = attr(onnx="axis")
    epsilon: float = attr(default=1e-5, onnx="epsilon")

    def shape(self, x: Shape, scale: Shape, bias: Shape) -> Shape:  # type: ignore[override]
        """The shape of the input; scale and bias have its last sizes."""
        require(self.axis < len(x), f"layernorm: no axis {self.axis} in {x}")
        for v in (scale, bias):
            require(len(v) == len(x) - self.axis, f"layernorm: {v} does not fit {x} from axis {self.axis} on")
            for a, b in zip(v, x[self.axis :], strict=True):
                require(a == b, f"layernorm: {v} does not fit {x} from axis {self.axis} on")
        return x

    def eval(self, ring: Carrier, x: Array, scale: Array, bias: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, x, scale, bias)

    def definition(self, *inputs: Term) -> Term:
        """The variance as a mean of squared differences, which does not cancel."""
        x, scale, bias = inputs
        axes = tuple(range(self.axis, x.type.rank))
        difference = centred(x, axes)
        normal = over_root_mean_square(difference, difference, axes, self.epsilon)
        return Add()(Mul()(normal, Expand(axes, x.shape)(scale)), Expand(axes, x.shape)(bias))


@reads("LayerNormalization")
def layernorm(node: Source) -> tuple[Term, ...]:
    """Scale and bias are broadcast to the sizes that are normalized; a bias that is missing is zeros.

    The further outputs are the mean and one over the root, with sizes of 1.
    """
    x, scale, bias = (*node.inputs, None)[:3]
    if x is None or scale is None:
        raise NotUnderstood("an input is missing")
    axis = positive_axis(int(node.attributes.get("axis", -1)), x.type.rank)
    epsilon, to = float(node.attributes.get("epsilon", 1e-5)), x.shape[axis:]
    axes, ones = tuple(range(axis, x.type.rank)), (*x.shape[:axis], *(1 for _ in to))
    difference = centred(x, axes)
    shift = filled(0.0, to) if bias is None else spread(bias, to)
    y = make(LayerNorm(axis, epsilon), (x, spread(scale, to), shift))
    root = Sqrt()(plus(Mean(axes)(Mul()(difference, difference)), epsilon))
    return y, reshaped(Mean(axes)(x), ones), reshaped(Div()(filled(1.0, root.shape), root), ones)


@operator("rmsnorm", onnx="RMSNormalization")
class RmsNorm(Composite):
    """`y = x / √(mean x² + ε) · scale`, over the axes from `axis` on."""

    axis: int = attr(onnx="axis")
    epsilon: float = attr(default=1e-5, onnx="epsilon")

    def shape(self, x: Shape, scale: Shape) -> Shape:  # type: ignore[override]
        """The shape of the input; the scale has its last sizes."""
        require(self.axis < len(x), f"rmsnorm: no axis {self.axis} in {x}")
        require(len(scale) == len(x) - self.axis, f"rmsnorm: {scale} does not fit {x} from axis {self.axis} on")
        for a, b in zip(scale, x[self.axis :], strict=True):
            require(a == b, f"rmsnorm: {scale} does not fit {x} from axis {self.axis} on")
        return x

    def eval(self, ring: Carrier, x: Array, scale: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, x, scale)

    def definition(self, *inputs: Term) -> Term:
        """Over the root of the mean square."""
        x, scale = inputs
        axes = tuple(range(self.axis, x.type.rank))
        return Mul()(over_root_mean_square(x, x, axes, self.epsilon), Expand(axes, x.shape)(scale))

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """The scale is broadcast to the sizes that are normalized."""
        x, scale = present(node.inputs, 2)
        axis = positive_axis(int(node.attributes.get("axis", -1)), x.type.rank)
        op = cls(axis, float(node.attributes.get("epsilon", 1e-5)))
        return make(op, (x, spread(scale, x.shape[axis:])))


@operator("instancenorm", onnx="InstanceNormalization")
class InstanceNorm(Composite):
    """`y = (x − mean x) / √(variance x + ε) · scale + bias`, by sample and channel."""

    epsilon: float = attr(default=1e-5, onnx="epsilon")

    def shape(self, x: Shape, scale: Shape, bias: Shape) -> Shape:  # type: ignore[override]
        """The shape of the input; scale and bias have its channels."""
        require(len(x) >= 3, f"instancenorm: nothing to normalize in {x}")
        demand_channels(self.name, x, scale, bias)
        return x

    def eval(self, ring: Carrier, x: Array, scale: Array, bias: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, x, scale, bias)

    def definition(self, *inputs: Term) -> Term:
        """Over all axes after the channels."""
        x, scale, bias = inputs
        axes = tuple(range(2, x.type.rank))
        difference = centred(x, axes)
        normal = over_root_mean_square(difference, difference, axes, self.epsilon)
        return Add()(Mul()(normal, Expand((1,), x.shape)(scale)), Expand((1,), x.shape)(bias))


@operator("groupnorm", onnx="GroupNormalization")
class GroupNorm(Composite):
    """`y = (x − mean x) / √(variance x + ε) · scale + bias`, by sample and group of channels."""

    groups: int = attr(onnx="num_groups")
    epsilon: float = attr(default=1e-5, onnx="epsilon")

    def shape(self, x: Shape, scale: Shape, bias: Shape) -> Shape:  # type: ignore[override]
        """The shape of the input; scale and bias have its channels, which fall into the groups."""
        require(len(x) >= 3, f"groupnorm: nothing to normalize in {x}")
        demand_channels(self.name, x, scale, bias)
        require(divides(self.groups, x[1]), f"groupnorm: {x[1]} channels do not fall into {self.groups} groups")
        return x

    def eval(self, ring: Carrier, x: Array, scale: Array, bias: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, x, scale, bias)

    def definition(self, *inputs: Term) -> Term:
        """Each group as one axis."""
        x, scale, bias = inputs
        flat = reshaped(x, (x.shape[0], self.groups, product(x.shape[1:]) // self.groups))
        difference = centred(flat, (2,))
        normal = reshaped(over_root_mean_square(difference, difference, (2,), self.epsilon), x.shape)
        return Add()(Mul()(normal, Expand((1,), x.shape)(scale)), Expand((1,), x.shape)(bias))

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """Since opset 21."""
        if out.opset < 21:
            raise NotUnderstood("before opset 21 scale and bias are of groups")
        return super().to_onnx(out, *inputs)

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """Since opset 21, when scale and bias became those of channels."""
        if node.opset < 21:
            raise NotUnderstood("before opset 21 scale and bias are of groups")
        x, scale, bias = present(node.inputs, 3)
        concrete(x.shape[1:2], "groupnorm")
        op = cls(int(node.attributes["num_groups"]), float(node.attributes.get("epsilon", 1e-5)))
        return make(op, (x, scale, bias))


@operator("log_softmax", onnx="LogSoftmax")
class LogSoftmax(Composite, AlongAxis):
    """`y = ln (exp(x) / Σ exp(x))` along an axis, computed from `x − max x` (stable only in this form)."""

    axis: int = attr(sample=[1])

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, x)

    def definition(self, *inputs: Term) -> Term:
        """Less the logarithm of the sum of exponentials."""
        (x,) = inputs
        kept = tuple(a for a in range(x.type.rank) if a != self.axis)
        return Sub()(x, Expand(kept, x.shape)(LogSumExp((self.axis,))(x)))
