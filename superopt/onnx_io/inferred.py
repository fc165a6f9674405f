"""The types of what an opaque node gives, where its inputs are of symbolic sizes that ONNX's own inference has lost.

ONNX infers a model as a whole before anything is read: what it loses there, by a shape that a reshape computes, stays
unknown for all that follows. A node alone is inferred here with numbers in the place of symbols: large primes tell by
their factors what a size is made of, small ones and ones whether that holds where the symbols are small (a slice ends
at 512 of a long sequence, and of a short one at its end).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

import numpy as np
import onnx
import onnx_ir as ir
from onnx.shape_inference import InferenceError

from superopt.arithmetic.carrier import Array
from superopt.dim import Dim, Shape, product, symbol
from superopt.onnx_io.tensors import IR_TYPES, NUMPY_NAMES
from superopt.operators.nodes import concrete
from superopt.relations import are_equal
from superopt.substitution import substitute, symbols
from superopt.term import Type

LARGE = (1_000_003, 1_000_033, 1_000_037, 1_000_039, 1_000_081, 1_000_099, 1_000_117, 1_000_121)
SMALL = (3, 5, 7, 11, 13, 17, 19, 23)
"""What symbols are taken as. With more of them in one node nothing is told."""

MOST = 2**63 - 1
"""The largest size that ONNX writes down."""

Known: TypeAlias = "Type | Shape | Array"
"""An input: its type, its elements where it is a vector of sizes, or its value where it is a constant."""


def inferred(node: ir.Node, opset: int, inputs: Mapping[str, Known]) -> dict[str, tuple[str, tuple[Dim | None, ...]]]:
    """The element type of each output of a node that has a rank, and its sizes as far as they are sizes of the inputs
    or products of symbols. Nothing is told of a node with subgraphs, or of another domain.
    """
    sizes = [d for known in inputs.values() for d in _sizes(known)]
    names = sorted(set[str]().union(*map(symbols, sizes)))
    has_subgraphs = any(a.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) for a in node.attributes.values())
    if node.domain or has_subgraphs or len(names) > len(LARGE):
        return {}
    large, *smaller = (dict(zip(names, n, strict=False)) for n in (LARGE, SMALL, (1,) * len(names)))
    told = {n: d for n, d in zip(_numbers(sizes, large), sizes, strict=True) if not isinstance(d, int)}
    others = [(values, _run(node, opset, inputs, values)) for values in smaller]
    found: dict[str, tuple[str, tuple[Dim | None, ...]]] = {}
    for name, (dtype, dims) in _run(node, opset, inputs, large).items():
        made = [told[d] if d in told else _product(d, large) for d in dims]
        # Of sizes that ONNX refuses nothing need be true.
        there = [(values, ours[name][1]) for values, ours in others if name in ours]
        if there and all(len(d) == len(made) for _, d in there):
            holds = [all(_is(m, values, d[axis]) for values, d in there) for axis, m in enumerate(made)]
            found[name] = dtype, tuple(m if h else None for m, h in zip(made, holds, strict=True))
    return found


def _is(size: Dim | None, values: Mapping[str, int], number: int | None) -> bool:
    """Whether a size is a number where symbols have values."""
    return size is not None and number is not None and are_equal(substitute(size, values), number)


def _sizes(known: Known) -> Sequence[Dim]:
    if isinstance(known, Type):
        return known.shape
    return () if isinstance(known, np.ndarray) else known


def _product(number: int | None, primes: Mapping[str, int]) -> Dim | None:
    """The product of symbols, which these primes stand for, and a number that is none of them."""
    if number is None:
        return None
    rest, factors = number, list[Dim]()
    for name, prime in primes.items():
        while rest and rest % prime == 0:
            rest //= prime
            factors.append(symbol(name))
    return product([rest, *factors]) if rest < min(LARGE) else None


def _numbers(shape: Sequence[Dim], values: Mapping[str, int]) -> tuple[int, ...]:
    """Sizes whose symbols all have values."""
    return concrete(tuple(substitute(d, values) for d in shape), "a node alone")


_Found = dict[str, tuple[str, list[int | None]]]


def _run(node: ir.Node, opset: int, inputs: Mapping[str, Known], values: Mapping[str, int]) -> _Found:
    """What ONNX infers of a node with numbers for symbols; nothing where it refuses that, where a size is no number of
    64 bits, or something would have fewer elements than none: onnx 1.23 ends the process then.
    """
    given: list[onnx.ValueInfoProto] = []
    constants: list[onnx.TensorProto] = []
    if any(abs(d) > MOST for known in inputs.values() for d in _numbers(_sizes(known), values)):
        return {}
    for name, known in inputs.items():
        if isinstance(known, Type):
            dims = _numbers(known.shape, values)
            if min(dims, default=0) < 0:
                return {}
            given.append(onnx.helper.make_tensor_value_info(name, int(IR_TYPES[known.dtype]), dims))
        else:
            data = known if isinstance(known, np.ndarray) else np.array(_numbers(known, values), np.int64)
            constants.append(onnx.numpy_helper.from_array(data, name))
    outputs = [onnx.ValueInfoProto(name=v.name or "") for v in node.outputs if v.name]
    graph = onnx.helper.make_graph([ir.serde.serialize_node(node)], "node", given, outputs, constants)
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    found: _Found = {}
    with suppress(InferenceError, RuntimeError, ValueError):
        proto = onnx.shape_inference.infer_shapes(proto, strict_mode=True)
        for info in proto.graph.output:
            tensor = info.type.tensor_type
            if tensor.HasField("shape") and tensor.elem_type:
                sizes = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
                found[info.name] = NUMPY_NAMES.get(ir.DataType(tensor.elem_type), ""), sizes
    return found
