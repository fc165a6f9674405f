"""Activations that are made of simpler functions: each declares the term that it stands for."""

from __future__ import annotations

import math

from superopt.arithmetic.carrier import Array, Carrier
from superopt.operators.attributes import attr
from superopt.operators.composite import Composite
from superopt.operators.constant import filled
from superopt.operators.declare import operator
from superopt.operators.differences import Neg, Sub
from superopt.operators.extrema import Max, Min
from superopt.operators.functions import Erf, Exp, Sigmoid, Softplus, Tanh
from superopt.operators.layout import spread
from superopt.operators.nodes import Emitter, NotUnderstood, Source, present
from superopt.operators.pointwise import Add, Binary, Div, Mul, Relu, Unary
from superopt.term import Term, make


class Activation(Composite, Unary):
    """Base of the activations of one value: point-wise, with attributes that are numbers."""

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, x)

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """Attributes by their names, as numbers."""
        given = {f.name: float(node.attributes.get(f.facts.onnx or "", f.default)) for f in cls.fields}
        return make(cls(**given), present(node.inputs, 1))


def times(x: Term, factor: float) -> Term:
    """Every element times a number."""
    return x if factor == 1.0 else Mul()(x, filled(factor, x.shape))


def plus(x: Term, summand: float) -> Term:
    """Every element plus a number."""
    return x if summand == 0.0 else Add()(x, filled(summand, x.shape))


@operator("reciprocal", onnx="Reciprocal")
class Reciprocal(Activation):
    """`y = 1 / x`."""

    def definition(self, *inputs: Term) -> Term:
        """A quotient."""
        (x,) = inputs
        return Div()(filled(1.0, x.shape), x)


@operator("leaky_relu", onnx="LeakyRelu")
class LeakyRelu(Activation):
    """`y = x for x ≥ 0, else alpha · x`."""

    alpha: float = attr(default=0.01, onnx="alpha")

    def definition(self, *inputs: Term) -> Term:
        """The positive part, less alpha times that of −x."""
        (x,) = inputs
        return Sub()(Relu()(x), times(Relu()(Neg()(x)), self.alpha))


@operator("prelu", onnx="PRelu")
class PRelu(Composite, Binary):
    """`y = x for x ≥ 0, else slope · x`."""

    broadcasts = (1,)

    def eval(self, ring: Carrier, x: Array, slope: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, x, slope)

    def definition(self, *inputs: Term) -> Term:
        """The positive part, less the slope times that of −x."""
        x, slope = inputs
        return Sub()(Relu()(x), Mul()(slope, Relu()(Neg()(x))))

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """The slope is broadcast to the input."""
        x, slope = present(node.inputs, 2)
        return make(cls(), (x, spread(slope, x.shape)))


@operator("elu", onnx="Elu")
class Elu(Activation):
    """`y = x for x ≥ 0, else alpha · (eˣ − 1)`."""

    alpha: float = attr(default=1.0, onnx="alpha")

    def definition(self, *inputs: Term) -> Term:
        """The exponential of the negative part only, which cannot overflow."""
        (x,) = inputs
        negative = Neg()(Relu()(Neg()(x)))
        return Add()(Relu()(x), times(plus(Exp()(negative), -1.0), self.alpha))


@operator("selu", onnx="Selu")
class Selu(Activation):
    """`y = gamma · (x for x > 0, else alpha · (eˣ − 1))`."""

    alpha: float = attr(default=1.67326319217681884765625, onnx="alpha")
    gamma: float = attr(default=1.05070102214813232421875, onnx="gamma")

    def definition(self, *inputs: Term) -> Term:
        """Elu, scaled."""
        return times(_meaning(Elu(self.alpha), *inputs), self.gamma)


@operator("celu", onnx="Celu")
class Celu(Activation):
    """`y = max(x, 0) + min(0, alpha · (e^(x/alpha) − 1))`."""

    alpha: float = attr(default=1.0, onnx="alpha")

    def definition(self, *inputs: Term) -> Term:
        """Elu of x / alpha, times alpha."""
        (x,) = inputs
        negative = times(Neg()(Relu()(Neg()(x))), 1.0 / self.alpha)
        return Add()(Relu()(x), times(plus(Exp()(negative), -1.0), self.alpha))

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """Of a positive alpha."""
        if float(node.attributes.get("alpha", 1.0)) <= 0:
            raise NotUnderstood("alpha is not positive")
        return super().from_onnx(node)


@operator("softsign", onnx="Softsign")
class Softsign(Activation):
    """`y = x / (1 + |x|)`."""

    def definition(self, *inputs: Term) -> Term:
        """With the magnitude as the larger of x and −x."""
        (x,) = inputs
        return Div()(x, plus(Max()(x, Neg()(x)), 1.0))


@operator("hard_sigmoid", onnx="HardSigmoid")
class HardSigmoid(Activation):
    """`y = min(max(alpha · x + beta, 0), 1)`."""

    alpha: float = attr(default=0.2, onnx="alpha")
    beta: float = attr(default=0.5, onnx="beta")

    def definition(self, *inputs: Term) -> Term:
        """A line, bounded."""
        (x,) = inputs
        return Min()(Relu()(plus(times(x, self.alpha), self.beta)), filled(1.0, x.shape))


@operator("hard_swish", onnx="HardSwish")
class HardSwish(Activation):
    """`y = x · min(max(x / 6 + 1/2, 0), 1)`."""

    def definition(self, *inputs: Term) -> Term:
        """Times the hard sigmoid of slope 1/6."""
        (x,) = inputs
        return Mul()(x, _meaning(HardSigmoid(1 / 6, 0.5), x))


@operator("swish", onnx="Swish")
class Swish(Activation):
    """`y = x · sigmoid(alpha · x)`."""

    alpha: float = attr(default=1.0, onnx="alpha")

    def definition(self, *inputs: Term) -> Term:
        """Times the sigmoid."""
        (x,) = inputs
        return Mul()(x, Sigmoid()(times(x, self.alpha)))


@operator("mish", onnx="Mish")
class Mish(Activation):
    """`y = x · tanh(softplus(x))`."""

    def definition(self, *inputs: Term) -> Term:
        """Times the tanh of the softplus."""
        (x,) = inputs
        return Mul()(x, Tanh()(Softplus()(x)))


@operator("gelu", onnx="Gelu")
class Gelu(Activation):
    """`y = x/2 · (1 + erf(x/√2))`, or with tanh: `x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))`."""

    by_tanh: int = attr(default=0)

    def definition(self, *inputs: Term) -> Term:
        """In the form that the attribute names."""
        (x,) = inputs
        if self.by_tanh:
            cube = Mul()(Mul()(x, x), x)
            inner = Tanh()(times(Add()(x, times(cube, 0.044715)), math.sqrt(2 / math.pi)))
        else:
            inner = Erf()(times(x, math.sqrt(0.5)))
        return Mul()(times(x, 0.5), plus(inner, 1.0))

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """Which form is an attribute of text."""
        return out.node("Gelu", inputs, {"approximate": "tanh" if self.by_tanh else "none"})

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """`approximate` is none or tanh."""
        return make(cls(int(node.attributes.get("approximate", "none") == "tanh")), present(node.inputs, 1))


def _meaning(op: Activation, x: Term) -> Term:
    meaning = op.definition(x)
    assert meaning is not None
    return meaning
