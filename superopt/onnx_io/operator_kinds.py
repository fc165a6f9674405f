"""Operators of ONNX that are alike in what they do to elements; what uses a list of these adds what else suits it."""

from __future__ import annotations

from superopt.operators import CATALOGUE

VIEWS = ("Flatten", "Reshape", "Squeeze", "Unsqueeze")
"""What gives all elements of its first input in their order, by other sizes."""

MOVES = (*VIEWS, "Expand", "Gather", "Identity", "Slice", "Tile", "Transpose")
"""What gives elements of its first input alone: in other places, some of them, or several times."""

_POINTWISE = (cls.onnx for cls in CATALOGUE.values() if cls.pointwise and not cls.domain)
ELEMENTWISE = frozenset(name for name in _POINTWISE if name is not None) - {"PRelu"}
"""What computes each element of its own, of inputs that broadcast to each other. Slopes do only to what they are of."""

REDUCES = frozenset({"ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceSumSquare"})
"""What gives one element for many, along axes."""
