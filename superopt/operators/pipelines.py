"""What pipelines of classical models are made of, in ONNX's domain `ai.onnx.ml`: scalers, imputers, linear models.

ONNX has their numbers as attributes. Here these are constant inputs, so that what rules say of weights holds for them.
They are understood over 32-bit floats, in rows of a matrix, where runtime and reference agree on what they mean.
"""

from __future__ import annotations

import math

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Shape
from superopt.operators.argmax import ArgMax
from superopt.operators.attributes import attr
from superopt.operators.comparisons import Equal, IsNan
from superopt.operators.composite import Composite
from superopt.operators.composite_reductions import Norm1, Norm2
from superopt.operators.constant import filled
from superopt.operators.declare import operator, reads
from superopt.operators.declared import Declared
from superopt.operators.differences import Neg
from superopt.operators.functions import Sigmoid
from superopt.operators.layout import Expand, Transpose
from superopt.operators.logic import Where
from superopt.operators.matmul import MatMul
from superopt.operators.nodes import ML_DOMAIN, Emitter, NotUnderstood, Source, concrete, pass_over, present
from superopt.operators.normalize import Gemm, Softmax
from superopt.operators.pointwise import Add, Div, Mul
from superopt.operators.rearrange import Gather
from superopt.term import Term, make


def demand_columns(name: str, x: Shape, *vectors: Shape) -> None:
    """Raise `ShapeError` for what is no matrix `x`, or no vector of its columns."""
    require(len(x) == 2, f"{name}: a matrix is expected, not {x}")
    for v in vectors:
        require(len(v) == 1, f"{name}: a vector of columns is expected, not {v}")
        require(v[0] == x[1], f"{name}: columns differ: {x} and {v}")


def rows_of(node: Source) -> tuple[Term, int]:
    """The matrix that a node reads, and how many columns it has. Raises `NotUnderstood` for what is none.

    Of other numbers ONNX makes 32-bit floats in these operators.
    """
    (x,) = present(node.inputs, 1)
    if x.type.rank != 2 or x.type.dtype != "float32":
        raise NotUnderstood(f"a matrix of 32-bit floats is declared, not {x.type}")
    return x, concrete(x.shape[1:], "columns")[0]


def numbers(out: Emitter, name: str) -> list[float]:
    """The value of an input that is an attribute in ONNX. Raises `NotUnderstood` where it is not data."""
    data = out.constant(name)
    if data is None:
        raise NotUnderstood(f"{name} is an attribute in ONNX, and computed while the model runs")
    return [float(number) for number in data.flat]


@operator("scaler", onnx="Scaler", domain=ML_DOMAIN)
class Scaler(Composite):
    """`y = (x − offset) · scale`, by column."""

    def shape(self, x: Shape, offset: Shape, scale: Shape) -> Shape:  # type: ignore[override]
        """The shape of the input; offset and scale have its columns."""
        demand_columns(self.name, x, offset, scale)
        return x

    def eval(self, ring: Carrier, x: Array, offset: Array, scale: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, x, offset, scale)

    def definition(self, *inputs: Term) -> Term:
        """A shift, then a factor: the other way round, large numbers would cancel."""
        x, offset, scale = inputs
        shifted = Add()(x, Expand((1,), x.shape)(Neg()(offset)))
        return Mul()(shifted, Expand((1,), x.shape)(scale))

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """One number for all columns, or one for each."""
        x, columns = rows_of(node)
        return make(cls(), (x, *(node.weight(n, (columns,), repeated=True) for n in ("offset", "scale"))))

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """With its vectors as attributes."""
        x, offset, scale = inputs
        return out.node("Scaler", (x,), {"offset": numbers(out, offset), "scale": numbers(out, scale)}, ML_DOMAIN)


@operator("imputer", onnx="Imputer", domain=ML_DOMAIN)
class Imputer(Composite):
    """`y = values where x is missing, else x`, by column: missing is what is not a number, or what equals one."""

    equal: int = attr(default=0)
    missing: float = attr(default=0.0)

    def shape(self, x: Shape, values: Shape) -> Shape:  # type: ignore[override]
        """The shape of the input; there is a value for each of its columns."""
        demand_columns(self.name, x, values)
        return x

    def eval(self, ring: Carrier, x: Array, values: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, x, values)

    def definition(self, *inputs: Term) -> Term:
        """A choice."""
        x, values = inputs
        is_missing = Equal()(x, filled(self.missing, x.shape)) if self.equal else IsNan()(x)
        return Where()(is_missing, Expand((1,), x.shape)(values), x)

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """One value for all columns, or one for each."""
        x, columns = rows_of(node)
        missing = float(node.attributes.get("replaced_value_float", 0.0))
        op = cls() if math.isnan(missing) else cls(1, missing)
        return make(op, (x, node.weight("imputed_value_floats", (columns,), repeated=True)))

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """With its values as an attribute."""
        missing = self.missing if self.equal else math.nan
        given = {"imputed_value_floats": numbers(out, inputs[1]), "replaced_value_float": missing}
        return out.node("Imputer", inputs[:1], given, ML_DOMAIN)


@operator("normalizer", onnx="Normalizer", domain=ML_DOMAIN)
class Normalizer(Composite):
    """`y = x / ‖x‖` by row: by the sum of magnitudes (L1) or the root of the sum of squares (L2); rows of 0 stay."""

    norm: str = attr(default="L2", onnx="norm")

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """The shape of the input."""
        demand_columns(self.name, x)
        return x

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """The value of the definition."""
        return super().eval(ring, x)

    def definition(self, *inputs: Term) -> Term:
        """A factor for each row, which moves through a product that follows; 1 where the norm is 0."""
        (x,) = inputs
        norm = {"L1": Norm1, "L2": Norm2}[self.norm]((1,))(x)
        zero, one = (filled(number, norm.shape) for number in (0.0, 1.0))
        return Mul()(x, Expand((0,), x.shape)(Div()(one, Where()(Equal()(norm, zero), one, norm))))

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """By the largest element (MAX), runtime and reference differ: only the reference takes magnitudes."""
        x, _ = rows_of(node)
        norm = str(node.attributes.get("norm", "MAX"))
        if norm not in ("L1", "L2"):
            raise NotUnderstood(f"the norm {norm}: L1 and L2 are declared")
        return make(cls(norm), (x,))


@reads("LinearRegressor", domain=ML_DOMAIN)
def linear_regressor(node: Source) -> Term:
    """A product with a bias, and what `post_transform` makes of it."""
    return _transformed(node, _scores(node, int(node.attributes.get("targets", 1))))


@reads("LinearClassifier", domain=ML_DOMAIN)
def linear_classifier(node: Source) -> tuple[Term | None, Term]:
    """The label at the place of the largest score, and all scores. Labels of text are not covered.

    The scores of two classes by one row of coefficients are not either: there runtime and reference differ.
    """
    pass_over(node, "multi_class")  # says what the scores were learned for
    count, words = len(node.attributes.get("intercepts", ())), node.attributes.get("classlabels_strings", ())
    labels = [int(label) for label in node.attributes.get("classlabels_ints", ())]
    if count < 2 or len(words or labels) != count:
        raise NotUnderstood(f"{count} intercepts for {len(words or labels)} classes; one each is declared, two or more")
    scores = _scores(node, count)
    if words:
        return None, _transformed(node, scores)
    place = make(ArgMax(1), (scores,))
    in_order = labels == list(range(count))
    label = place if in_order else make(Gather(0), (node.weight("classlabels_ints", (count,)), place))
    return label, _transformed(node, scores)


def _scores(node: Source, count: int) -> Term:
    """`x·Wᵀ + b`; the coefficients are those of one result after the other."""
    x, columns = rows_of(node)
    weights = node.weight("coefficients", (count, columns))
    if not node.attributes.get("intercepts"):
        return make(MatMul(), (x, Transpose((1, 0))(weights)))
    bias = Expand((1,), (x.shape[0], count))(node.weight("intercepts", (count,)))
    return make(Gemm(trans_b=1), (x, weights, bias))


def _transformed(node: Source, scores: Term) -> Term:
    kind = node.attributes.get("post_transform", "NONE")
    if kind == "NONE":
        return scores
    after: dict[str, Declared] = {"LOGISTIC": Sigmoid(), "SOFTMAX": Softmax(1)}
    if kind not in after or scores.shape[1] == 1:  # the runtime leaves a single score as it is
        raise NotUnderstood(f"post_transform {kind} of {scores.shape[1]} scores")
    return make(after[kind], (scores,))
