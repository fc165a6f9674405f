"""Copies of a model that tell something of it when they run.

With each weight moved to a neighbouring number, how it differs tells how well conditioned it is: of inputs that are no
floating-point numbers, tokens or bytes, none has a neighbour that means nearly the same. With inner values as outputs,
it tells their sizes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import onnx_ir as ir

from superopt.arithmetic import Array
from superopt.onnx_io.files import load, save

_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16)


def neighbours(value: Array, rng: np.random.Generator) -> Array:
    """Floating-point numbers moved up or down to the next one; infinities, and other numbers, stay as they are."""
    if not np.issubdtype(value.dtype, np.floating):
        return value
    toward = np.where(rng.random(value.shape) < 0.5, -np.inf, np.inf).astype(value.dtype)
    return np.where(np.isfinite(value), np.nextafter(value, toward), value)


def save_nudged(source: Path, target: Path, seed: int) -> None:
    """Write a copy of a model with its floating-point weights moved. A single number stays: it may be an exponent, or a
    bound. Raises what `load` and `save` do.
    """
    model, rng = load(source), np.random.default_rng(seed)
    for graph in model.graphs():
        for value in graph.initializers.values():
            if value.const_value is not None and _is_weight(value.const_value):
                value.const_value = _moved(value.const_value, rng)
    for node, tensor in _constants(model):
        node.attributes["value"] = ir.AttrTensor("value", _moved(tensor, rng))
    save(model, target, external_data=True)


def save_showing(source: Path, target: Path, names: Collection[str]) -> list[str]:
    """Write a copy of a model whose outputs are inner values of these names, and say which, in order: those that are
    there. Raises what `load` and `save` do.
    """
    model = load(source)
    values = {v.name: v for node in model.graph for v in node.outputs}
    shown = [name for name in names if name in values]
    model.graph.outputs[:] = [values[name] for name in shown]
    save(model, target)
    return shown


def _constants(model: ir.Model) -> Iterator[tuple[ir.Node, ir.TensorProtocol]]:
    """The nodes that hold a weight, as some exporters have it."""
    for node in model.graph.all_nodes():
        attribute = node.attributes.get("value") if node.op_type == "Constant" else None
        if attribute is not None and not attribute.is_ref() and _is_weight(attribute.as_tensor()):
            yield node, attribute.as_tensor()


def _is_weight(tensor: ir.TensorProtocol) -> bool:
    return tensor.dtype in _FLOATS and tensor.size > 1


def _moved(tensor: ir.TensorProtocol, rng: np.random.Generator) -> ir.TensorProtocol:
    """A tensor whose numbers are moved when they are asked for: one is in memory at a time."""
    own = np.random.default_rng(rng.integers(2**32))
    return ir.LazyTensor(
        lambda: ir.Tensor(neighbours(tensor.numpy(), own)),
        dtype=tensor.dtype,
        shape=ir.Shape(tensor.shape.numpy()),
        name=tensor.name,
    )
