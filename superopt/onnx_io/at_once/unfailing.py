"""What cannot fail, whatever numbers it is given: a loop without a turn would not have computed it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

import onnx_ir as ir

from superopt.dim import Shape
from superopt.errors import InvalidModel
from superopt.onnx_io.program import Program
from superopt.onnx_io.skeleton import ONNX_DOMAIN, subgraphs
from superopt.relations import are_equal


def _named(operators: str) -> frozenset[str]:
    return frozenset(operators.split())


_ALONE = _named(
    """Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Constant Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish
    Identity IsInf IsNaN LeakyRelu Log LogSoftmax Mish Neg Not Reciprocal Relu Round Selu Shape Sigmoid Sign Sin Sinh
    Size Softmax Softplus Softsign Sqrt Tan Tanh ThresholdedRelu Transpose"""
)
"""What takes one input of any size."""

_BROADCAST = _named(
    "Add And Cast Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mul Or Pow Sub Sum Where Xor"
)
"""What takes inputs whose sizes go together; some only of elements of some types."""

_READ = _named(
    """Clip Concat ConstantOfShape Flatten Gemm MatMul PRelu ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax
    ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Slice Squeeze Unsqueeze"""
)
"""What takes inputs of sizes that its declaration demands, of which each may be nothing."""

_SIZED = _named(
    """AveragePool BatchNormalization Conv ConvTranspose GlobalAveragePool GlobalMaxPool GroupNormalization
    InstanceNormalization LRN LayerNormalization MaxPool RMSNormalization Reshape"""
)
"""The same where no size may be nothing, or windows have to fit: with sizes that are numbers."""

_FLOATS = ("float16", "float32", "float64")


def may_be_unfailing(node: ir.Node) -> bool:
    """Whether a node is of an operator that gives the same for the same, and fails for sizes alone."""
    named = node.op_type in _ALONE | _BROADCAST | _READ | _SIZED
    return named and node.domain in ONNX_DOMAIN and not any(True for _ in subgraphs(node))


def fails_for_elements(op_type: str, dtype: str | None) -> bool:
    """Whether an operator may fail for elements of a type, or of one that is not known, where it does not for others:
    integers are not divided by 0, and not all words are numbers.
    """
    return (op_type == "Div" and dtype not in _FLOATS) or (op_type == "Cast" and dtype in (None, "string"))


def failing(program: Program, names: Iterable[str]) -> set[str]:
    """Which of these values of a program, whose operators may be unfailing, are not known to be computed without fail
    whatever comes.
    """
    understood = {name for step in program.steps if not step.reason for name in step.outputs}
    makers = {v.name: node for node in program.model.graph for v in node.outputs}
    return {name for name in names if not _is_unfailing(program, makers.get(name), name in understood)}


def _is_unfailing(program: Program, node: ir.Node | None, is_read: bool) -> bool:
    if node is None:
        return False
    names = [v.name for v in (*node.inputs, *node.outputs) if v is not None and v.name]
    if node.op_type in _ALONE:
        return True
    if any(name not in program.values for name in names):  # no tensor of a known type, or it may be empty
        return False
    shapes = [program.values[name].shape for name in names]
    if node.op_type in _BROADCAST:
        fails = fails_for_elements(node.op_type, program.values[names[0]].type.dtype)
        return not fails and _go_together(shapes[: -len(node.outputs)])
    if node.op_type == "MatMul" and _multiply(*shapes[:2]):  # also of types that nothing is declared of
        return True
    is_sized = node.op_type not in _SIZED or all(isinstance(d, int) for shape in shapes for d in shape)
    return is_sized and (is_read or _is_computed(program, names[-1]))


def _go_together(shapes: Sequence[Shape]) -> bool:
    """Whether shapes are broadcast to each other whatever their symbols are."""
    for sizes in zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1):
        others = [d for d in sizes if not (isinstance(d, int) and d == 1)]
        if not all(are_equal(d, others[0]) for d in others):
            return False
    return True


def _multiply(left: Shape, right: Shape) -> bool:
    """Whether matrices of these shapes are multiplied whatever their symbols are."""
    is_matrices = len(left) > 1 and len(right) > 1
    return is_matrices and are_equal(left[-1], right[-2]) and _go_together((left[:-2], right[:-2]))


def _is_computed(program: Program, name: str) -> bool:
    """Whether a value is a constant that can be computed."""
    try:
        return name in program.constants and program.data(name) is not None
    except InvalidModel:
        return False
