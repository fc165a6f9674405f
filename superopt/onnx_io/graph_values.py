"""Values of a graph with what is said of their types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import onnx_ir as ir

from superopt.dim import Shape
from superopt.onnx_io.tensors import IR_TYPES


def declare_sizes(value: ir.Value, dtype: str, shape: Shape) -> None:
    """Declare the sizes of a value that are numbers; others stay what they were said to be."""
    said = value.shape if value.shape and len(value.shape) == len(shape) else [None] * len(shape)
    value.type = value.type or ir.TensorType(IR_TYPES[dtype])
    value.shape = ir.Shape([d if isinstance(d, int) else s for d, s in zip(shape, said, strict=True)])


def graph_value(name: str, dtype: str, shape: Iterable[Any]) -> ir.Value:
    """A value of a type; sizes that are no numbers stay open, but for plain symbols, which keep their names."""
    dims = [d if isinstance(d, int) else str(d) for d in shape]
    named = [d if isinstance(d, int) or d.isidentifier() else None for d in dims]
    return ir.Value(name=name, type=ir.TensorType(IR_TYPES[dtype]), shape=ir.Shape(named))
