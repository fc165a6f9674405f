"""Copies of a model that tell something of it when they run.

With each weight moved to a neighbouring number, how it differs tells how well conditioned it is: of inputs that are no
floating-point numbers, tokens or bytes, none has a neighbour that means nearly the same. With inner values as outputs,
it tells their sizes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.files import load
from superopt.onnx_io.inlining import inlined
from superopt.onnx_io.saving import save
from superopt.onnx_io.tensors import IR_TYPES
from superopt.term import Type

MOST_BYTES = 2**28
"""Weights of more bytes are not copied only to see sizes."""

_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16)


def neighbours(value: Array, rng: np.random.Generator, steps: int = 1) -> Array:
    """Floating-point numbers moved up or down to the next one, so many times, where that is finite; others stay."""
    if not np.issubdtype(value.dtype, np.floating):
        return value
    toward, moved = np.where(rng.random(value.shape) < 0.5, -np.inf, np.inf).astype(value.dtype), value
    with np.errstate(over="ignore"):
        for _ in range(steps):
            moved = np.nextafter(moved, toward)
    return np.where(np.isfinite(moved), moved, value)


def save_nudged(source: Path, target: Path, seed: int) -> None:
    """Write a copy of a model with its floating-point weights moved. A single number stays, and so do whole ones: they
    may be exponents, bounds or places, and what is no more than that is something else. Raises what `load` and `save`
    do.
    """
    model, rng = load(source), np.random.default_rng(seed)
    for graph in model.graphs():
        for value in graph.initializers.values():
            if value.const_value is not None and _is_weight(value.const_value):
                value.const_value = _moved(value.const_value, rng)
    for node, tensor in _constants(model):
        node.attributes["value"] = ir.AttrTensor("value", _moved(tensor, rng))
    save(model, target, external_data=True)


def save_showing(
    source: Path,
    target: Path,
    names: Collection[str],
    types: Mapping[str, Type] | None = None,
    wide: bool = False,
) -> list[str]:
    """Write a copy of a model whose outputs are inner values of these names, those of functions as they are called
    where these are inlined, and say which, in order: those that are there. None are, and nothing is written, where
    weights of more than `MOST_BYTES` would have to be copied. Of types that are given the element type and the rank are
    declared. Inputs of 16-bit floats, which only casts to 32 bits read, take 32 where they are to be `wide`. Raises
    what `load` and `save` do.
    """
    model = inlined(load(source))
    tensors = [v.const_value for v in model.graph.initializers.values()]
    outside = [t for t in tensors if isinstance(t, ir.ExternalTensor) and Path(t.base_dir) != target.parent]
    if sum(t.nbytes for t in outside) > MOST_BYTES:
        return []
    values = {v.name: v for node in model.graph for v in node.outputs}
    shown = [name for name in names if name in values]
    model.graph.outputs[:] = [values[name] for name in shown]
    RemoveUnusedNodesPass()(model)  # some do not run at sizes at which what is shown does
    for name, type_ in (types or {}).items():
        if name in values:
            values[name].dtype = IR_TYPES[type_.dtype]
            values[name].shape = ir.Shape([None] * type_.rank)
    for given in model.graph.inputs if wide else ():
        if given.dtype == ir.DataType.FLOAT16:
            given.dtype = ir.DataType.FLOAT
    save(model, target, shared=True)
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

    def made() -> ir.TensorProtocol:
        value = tensor.numpy()
        return ir.Tensor(np.where(value == np.round(value), value, neighbours(value, own)))

    return ir.LazyTensor(
        made,
        dtype=tensor.dtype,
        shape=ir.Shape(tensor.shape.numpy()),
        name=tensor.name,
    )
