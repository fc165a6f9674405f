"""Models without the names that onnxruntime gives the values of functions that it inlines.

Tools let it write what it made of a model, as its quantizer does before it begins. onnxruntime 1.32 gives the same
names again to what it inlines then, without looking who has them, and refuses the model: so it does where a candidate
has a HardSwish that the model has not, which it knows as a function.
"""

from __future__ import annotations

import onnx_ir as ir

from superopt.onnx_io.naming import deep_values, rename
from superopt.onnx_io.skeleton import clone

PREFIX = "_inlfunc_"


def without_inlined_names(model: ir.Model) -> ir.Model:
    """The model with other names for such values, in a copy; itself where it has none. The interface stays."""
    if not any(_is_inlined(value) for value in deep_values(model.graph)):
        return model
    copy = clone(model)
    taken = {value.name or "" for value in deep_values(copy.graph)}
    for value in list(deep_values(copy.graph)):
        if _is_inlined(value):
            rename(value, taken, (value.name or "").replace(PREFIX, "") or PREFIX.strip("_"))
    return copy


def _is_inlined(value: ir.Value) -> bool:
    is_inner = not (value.is_graph_input() or value.is_graph_output())
    return is_inner and (value.name or "").startswith(PREFIX)
