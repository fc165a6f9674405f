"""Attention, as ONNX has it and as exporters write it: of four axes, or of rows in which heads stand side by side."""

from superopt.operators.attention import (
    dot_product,
    flat_heads,
    grouped,
    heads,
    nodes,
    rotary,
)

__all__ = [
    "dot_product",
    "flat_heads",
    "grouped",
    "heads",
    "nodes",
    "rotary",
]
