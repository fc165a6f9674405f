"""Element types: those that operators compute with, and which operators take any other."""

from __future__ import annotations

from collections.abc import Iterable

from superopt.operators.declared import Declared
from superopt.operators.nodes import NotUnderstood
from superopt.term import REAL, TRUTH, Term, subterms

ONNX_TYPES = {"float32": 1, "float64": 11}
"""The numbers of ONNX's floating-point types that are computed with."""

_INTEGERS = {"uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "uint32": 12, "uint64": 13}

MOVED_TYPES = _INTEGERS | {TRUTH: 9, "float16": 10}
"""The numbers of further types of ONNX, of which elements are moved."""

FLOATS = (REAL, *ONNX_TYPES)
"""The element types of products of matrices."""

COMPUTED = (*FLOATS, TRUTH)
"""The element types that terms compute with, and that rules are about; elements of the others are moved only."""


def type_of_number(number: int) -> str:
    """The name of one of ONNX's element types."""
    return next((t for t, n in (ONNX_TYPES | MOVED_TYPES).items() if n == number), f"ONNX's type {number}")


def demand_computed(terms: Iterable[Term]) -> None:
    """Raise `NotUnderstood` for what computes with elements that are only moved here: integers, 16-bit floats."""
    for user in subterms(*terms):
        op = user.operator
        if isinstance(op, Declared) and not (op.moves or op.any_type):
            for i in user.inputs:
                if i.type.dtype not in COMPUTED:
                    alike = (v for v in subterms(i) if v.is_variable and str(v.type) == str(i.type))
                    name = next((v.label for v in alike), str(i.operator))
                    raise NotUnderstood(f"element type {i.type.dtype} of {name!r}")
