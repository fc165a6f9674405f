"""Softmax, and the composite operators: each declares the term of simpler ones that it stands for."""

from __future__ import annotations

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Shape, product
from superopt.operators.activations import times
from superopt.operators.attributes import attr
from superopt.operators.composite import Composite
from superopt.operators.constant import Band, filled
from superopt.operators.conv import Conv
from superopt.operators.declare import operator
from superopt.operators.declared import Declared
from superopt.operators.differences import Sub
from superopt.operators.layout import Expand, Transpose, positive_axis, reshaped, spread
from superopt.operators.matmul import MatMul
from superopt.operators.nodes import Emitter, NotUnderstood, Source, pass_over, present
from superopt.operators.pointwise import Add, Div, Mul, Sqrt
from superopt.operators.powers import power
from superopt.operators.reduce import AvgPool
from superopt.operators.reductions import Mean
from superopt.term import Term, make


class AlongAxis(Declared):
    """Base of softmax and its logarithm: before opset 13 ONNX had them along all axes from one on."""

    axis: int

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """The shape of the input."""
        require(self.axis < len(x), f"{self.name}: no axis {self.axis} in {x}")
        return x

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """Before opset 13 all axes from `axis` on were one."""
        (x,) = present(node.inputs, 1)
        axis = positive_axis(node.attributes.get("axis", 1 if node.opset < 13 else -1), x.type.rank)
        if node.opset >= 13 or axis == x.type.rank - 1:
            return make(cls(axis), (x,))  # type: ignore[call-arg]
        flat = reshaped(x, (product(x.shape[:axis]), product(x.shape[axis:])))
        return reshaped(make(cls(1), (flat,)), x.shape)  # type: ignore[call-arg]

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """Before opset 13 all axes from `axis` on were one, so there it must be the last."""
        assert self.onnx is not None
        last = len(out.shape(inputs[0])) - 1
        if out.opset >= 13 or self.axis == last:
            return out.node(self.onnx, inputs, {"axis": self.axis})
        perm = list(range(last + 1))
        perm[self.axis], perm[last] = last, self.axis
        moved = out.node("Transpose", inputs, {"perm": perm})
        return out.node("Transpose", (out.node(self.onnx, (moved,), {"axis": last}),), {"perm": perm})


@operator("softmax", onnx="Softmax")
class Softmax(AlongAxis):
    """`y = exp(x) / Σ exp(x)` along an axis, computed from `x − max x` (stable only in this form)."""

    keeps = frozenset({"finite"})
    gives = frozenset({"nonnegative"})
    needs = frozenset({"exp"})
    axis: int = attr(sample=[1])

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """Shifted by the maximum in floating point."""
        return ring.softmax(x, self.axis)


def demand_channels(name: str, x: Shape, *vectors: Shape) -> None:
    """Raise `ShapeError` for what is no vector of the channels of `x`."""
    for v in vectors:
        require(len(v) == 1, f"{name}: a vector of channels is expected, not {v}")
        require(v[0] == x[1], f"{name}: channels differ: {x} and {v}")


@operator("batchnorm", onnx="BatchNormalization")
class BatchNorm(Composite):
    """`y = (x − mean) / √(variance + ε) · scale + bias`, by channel, at inference."""

    epsilon: float = attr(default=1e-5, onnx="epsilon")

    def shape(self, x: Shape, scale: Shape, bias: Shape, mean: Shape, variance: Shape) -> Shape:  # type: ignore[override]
        """The shape of the input; the other four have its channels."""
        require(len(x) >= 2, f"batchnorm: no channels in {x}")
        demand_channels(self.name, x, scale, bias, mean, variance)
        return x

    def eval(self, ring: Carrier, x: Array, scale: Array, bias: Array, mean: Array, variance: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, x, scale, bias, mean, variance)

    def definition(self, *inputs: Term) -> Term:
        """One factor and one summand a channel."""
        x, scale, bias, mean, variance = inputs
        c = scale.shape
        factor = Div()(scale, Sqrt()(Add()(variance, filled(self.epsilon, c))))
        summand = Add()(bias, Mul()(filled(-1.0, c), Mul()(mean, factor)))
        return Add()(Mul()(x, Expand((1,), x.shape)(factor)), Expand((1,), x.shape)(summand))

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """In training mode by the mean and the variance of the input itself, as exporters standardize the weights of
        convolutions (Qiao et al. 2019); what it learns of them, further outputs, is not declared. Before opset 14 these
        outputs alone say that it is in that mode.
        """
        x, scale, bias, *moments = present(node.inputs, 5)
        pass_over(node, "momentum")
        if node.attributes.get("training_mode", 0) or (node.opset < 14 and node.outputs > 1):
            moments = _moments(x)
        return make(cls(float(node.attributes.get("epsilon", 1e-5))), (x, scale, bias, *moments))


def _moments(x: Term) -> list[Term]:
    """The mean and the variance of each channel."""
    mean = Mean(tuple(a for a in range(x.type.rank) if a != 1))
    centre = mean(x)
    from_centre = Sub()(x, Expand((1,), x.shape)(centre))
    return [centre, mean(Mul()(from_centre, from_centre))]


@operator("lrn", onnx="LRN")
class Lrn(Composite):
    """`y = x / (bias + alpha/size · Σ x²)^beta`, the sum over the `size` channels around each."""

    size: int = attr(onnx="size")
    alpha: float = attr(default=1e-4, onnx="alpha")
    beta: float = attr(default=0.75, onnx="beta")
    bias: float = attr(default=1.0, onnx="bias")

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """The shape of the input."""
        require(len(x) == 4, f"lrn: the input has four axes, not {x}")
        return x

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, x)

    def definition(self, *inputs: Term) -> Term:
        """The window sum as a banded 1×1 convolution, the power as roots: y^0.75 = √y·√√y, as y is positive."""
        (x,) = inputs
        c = x.shape[1]
        below, above = self._reach
        kernel = reshaped(Mul()(Band(c, below, above)(), filled(self.alpha / self.size, (c, c))), (c, c, 1, 1))
        return self._quotient(x, Conv()(Mul()(x, x), kernel))

    def definitions(self, *inputs: Term) -> tuple[Term, ...]:
        """The window sum as a banded convolution, or as a mean over windows of a third axis: that of the channels."""
        (x,) = inputs
        n, c, h, w = x.shape
        below, above = self._reach
        ones = (1, 1, 1)
        pool = AvgPool((self.size, 1, 1), ones, (below, 0, 0, above, 0, 0), ones, 1)
        mean = reshaped(pool(reshaped(Mul()(x, x), (n, 1, c, h, w))), x.shape)
        return (*super().definitions(x), self._quotient(x, Mul()(mean, filled(self.alpha, x.shape))))

    @property
    def _reach(self) -> tuple[int, int]:
        """How many channels the window reaches before its own, and after it."""
        return (self.size - 1) // 2, self.size // 2

    def _quotient(self, x: Term, scaled_sum: Term) -> Term:
        y = Add()(scaled_sum, filled(self.bias, x.shape))
        root = power(y, round(self.beta * 4) / 4)
        assert root is not None, f"beta {self.beta}"  # others are not read
        return Div()(x, root)

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """Over four axes, of a power that roots give, and of a base that is never negative."""
        (x,) = present(node.inputs, 1)
        given = node.attributes
        op = cls(
            int(given["size"]), *(float(given.get(n, d)) for n, d in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0)))
        )
        quarters = op.beta * 4
        if x.type.rank != 4 or quarters != round(quarters) or not 1 <= quarters <= 4 or op.alpha < 0 or op.bias <= 0:
            raise NotUnderstood(
                f"{op} over {x.shape}: four axes, beta in 0.25 … 1, alpha >= 0 and bias > 0 are declared"
            )
        return make(op, (x,))


@operator("gemm", onnx="Gemm")
class Gemm(Composite):
    """`y = alpha · A′·B′ + beta · c`, where A′ and B′ are A and B or their transposes."""

    alpha: float = attr(default=1.0, onnx="alpha")
    beta: float = attr(default=1.0, onnx="beta")
    trans_a: int = attr(default=0, onnx="transA")
    trans_b: int = attr(default=0, onnx="transB")

    def shape(self, a: Shape, b: Shape, c: Shape) -> Shape:  # type: ignore[override]
        """Rows of A′, columns of B′; c has that shape."""
        require(len(a) == 2 == len(b) == len(c), f"gemm: matrices are expected, not {a}, {b} and {c}")
        (m, k), (l, n) = a[:: -1 if self.trans_a else 1], b[:: -1 if self.trans_b else 1]
        require(k == l, f"gemm: inner sizes differ: {a} and {b}")
        require(c[0] == m, f"gemm: {c} does not fit {m} rows")
        require(c[1] == n, f"gemm: {c} does not fit {n} columns")
        return (m, n)

    def eval(self, ring: Carrier, a: Array, b: Array, c: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, a, b, c)

    def definition(self, *inputs: Term) -> Term:
        """Transposes, a product, scalings, a sum."""
        a, b, c = inputs
        a = Transpose((1, 0))(a) if self.trans_a else a
        b = Transpose((1, 0))(b) if self.trans_b else b
        return Add()(times(MatMul()(a, b), self.alpha), times(c, self.beta))

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """Without c, what remains of the definition."""
        a, b, c = (*node.inputs, None)[:3]
        if a is None or b is None:
            raise NotUnderstood("an input is missing")
        given = node.attributes
        scales = [float(given.get(n, 1.0)) for n in ("alpha", "beta")]
        op = cls(scales[0], scales[1], int(given.get("transA", 0)), int(given.get("transB", 0)))
        if c is None:
            a, b = (Transpose((1, 0))(t) if swap else t for t, swap in ((a, op.trans_a), (b, op.trans_b)))
            return times(MatMul()(a, b), op.alpha)
        to = (a.shape[1 if op.trans_a else 0], b.shape[0 if op.trans_b else 1])
        return make(op, (a, b, spread(c, to)))
