"""Which repetitions of its inputs an operator needs not have written out, since ONNX's broadcasts by itself."""

from __future__ import annotations

from superopt.operators.declared import Declared
from superopt.operators.layout import Expand
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Gemm
from superopt.term import Term


def unwritten(term: Term) -> list[Term]:
    """The inputs of a term that repeat something for it alone: it reads what they repeat."""
    op, repeated = term.operator, [(n, i) for n, i in enumerate(term.inputs) if isinstance(i.operator, Expand)]
    if isinstance(op, MatMul | Gemm) or (isinstance(op, Declared) and op.pointwise):
        return [i for _, i in repeated]
    stacks = op.stacks if isinstance(op, Declared) else ()
    return [i for n, i in repeated if n in stacks and repeats_matrices(i)]


def repeats_matrices(term: Term) -> bool:
    """Whether an expand repeats whole matrices, so that nothing is repeated along the last two axes."""
    op, rank = term.operator, term.type.rank
    return isinstance(op, Expand) and {rank - 2, rank - 1} <= set(op.axes)
