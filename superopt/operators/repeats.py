"""Which repetitions of its inputs an operator needs not have written out, since ONNX's broadcasts by itself, and which
runtimes do so slowly.
"""

from __future__ import annotations

from superopt.dim import Shape
from superopt.operators.declared import Declared
from superopt.operators.layout import Expand
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Gemm
from superopt.relations import is_one
from superopt.term import Term


def unwritten(term: Term) -> list[Term]:
    """The inputs of a term that repeat something for it alone: it reads what they repeat."""
    op, repeated = term.operator, [(n, i) for n, i in enumerate(term.inputs) if isinstance(i.operator, Expand)]
    if isinstance(op, MatMul | Gemm) or (isinstance(op, Declared) and op.pointwise):
        return [i for _, i in repeated]
    stacks = op.stacks if isinstance(op, Declared) else ()
    return [i for n, i in repeated if n in stacks and repeats_matrices(i)]


def is_read_anew(number: Shape, beside: Shape) -> bool:
    """Whether a number of this shape is read anew for each element of what it stands beside.

    onnxruntime 1.32 does so where that is in rows of one element and has more axes: a number is added to 16,384 by 1 in
    98 µs, and to 1 by 16,384, or as one of two axes, in 2.
    """
    fewer_axes = len(beside) > 1 and len(number) < len(beside)
    return fewer_axes and is_one(beside[-1]) and all(map(is_one, number))


def repeats_matrices(term: Term) -> bool:
    """Whether an expand repeats whole matrices, so that nothing is repeated along the last two axes."""
    op, rank = term.operator, term.type.rank
    return isinstance(op, Expand) and {rank - 2, rank - 1} <= set(op.axes)
