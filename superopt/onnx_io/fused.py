"""The types of what onnxruntime's own operators give: ONNX's inference ends at the first of them, so that of a model
which the runtime's tools have fused nothing behind it was understood.

Nothing is computed with these operators here. Each was compared with what the runtime gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import onnx_ir as ir

from superopt.dim import Dim, product
from superopt.onnx_io.skeleton import ONNX_DOMAIN
from superopt.term import Type

Told: TypeAlias = "tuple[str, tuple[Dim | None, ...]]"

RUNTIMES = "com.microsoft"

_AS_THE_FIRST: Mapping[str, Sequence[int]] = {
    **dict.fromkeys(("BiasGelu", "FastGelu", "Gelu", "QuickGelu", "BiasSoftmax", "RotaryEmbedding"), (0,)),
    **dict.fromkeys(("MoE", "QMoE", "DequantizeLinear"), (0,)),
    **dict.fromkeys(("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), (0, 3)),
}
"""Operators whose outputs of these places have the shape of the first input."""

_EXPERIMENTS = frozenset(
    ["Affine", "ImageScaler", "ParametricSoftplus", "Scale", "ScaledTanh", "SimplifiedLayerNormalization"]
)
"""The same of those that runtimes alone have among ONNX's own."""


def fused(node: ir.Node, inputs: Sequence[Type | None]) -> dict[str, Told]:
    """The element type and sizes of each output of a node that follow from its inputs, as far as these are known."""
    given = {at: type_ for at, type_ in enumerate(inputs) if type_ is not None}
    if 0 not in given:
        return {}
    found: dict[int, Told] = {}
    if node.domain == RUNTIMES:
        found = _given(node, given)
    elif node.domain in ONNX_DOMAIN and node.op_type in _EXPERIMENTS:
        of = 1 if node.op_type == "SimplifiedLayerNormalization" else 0  # of the scale's type
        found = {0: (given[of].dtype, given[0].shape)} if of in given else {}
    return {node.outputs[at].name or "": told for at, told in found.items() if at < len(node.outputs)}


def _given(node: ir.Node, given: Mapping[int, Type]) -> dict[int, Told]:
    first, kind = given[0], node.op_type
    if kind in _AS_THE_FIRST:
        scale = given.get(1) if kind == "DequantizeLinear" else first
        return {} if scale is None else dict.fromkeys(_AS_THE_FIRST[kind], (scale.dtype, first.shape))
    if kind == "EmbedLayerNormalization" and 2 in given and first.rank == 2:
        whole = given[2].dtype, (*first.shape, given[2].shape[-1])
        return {0: whole, 1: ("int32", first.shape[:1]), 2: whole}
    scale = given.get(2) if kind == "MatMulIntegerToFloat" else first  # whose type is that of the product
    columns = _columns(node, given) if first.rank else None
    return {} if columns is None or scale is None else {0: (scale.dtype, (*first.shape[:-1], columns))}


def _columns(node: ir.Node, given: Mapping[int, Type]) -> Dim | None:
    """The last size of the only output that is told of, whose other sizes are those of the first input."""
    first = given[0]
    match node.op_type:
        case "MatMulNBits":
            return _integer(node, "N")
        case "MatMulIntegerToFloat" | "DynamicQuantizeMatMul" if _is_matrix(given.get(1)):
            return given[1].shape[1]
        case "FusedMatMul" if _is_matrix(given.get(1)) and first.rank >= 2:
            turned = [_integer(node, name) for name in ("transA", "transBatchA", "transBatchB")]
            return None if any(turned) else given[1].shape[0 if _integer(node, "transB") else 1]
        case "Attention" if _is_matrix(given.get(1)) and first.rank == 3:
            sizes = node.attributes.get("qkv_hidden_sizes")
            if sizes is not None and (numbers := sizes.as_ints()):
                return numbers[2] if len(numbers) == 3 else None
            weights = given[1].shape[1]
            return weights // 3 if isinstance(weights, int) and weights % 3 == 0 else None
        case "MultiHeadAttention" if first.rank == 3 and 2 in given:
            shape = given[2].shape
            return product((shape[1], shape[3])) if len(shape) == 4 else shape[2] if len(shape) == 3 else None
        case "GroupQueryAttention" if first.rank == 3 and len(node.inputs) > 1 and node.inputs[1] is not None:
            return first.shape[2]
    return None


def _is_matrix(type_: Type | None) -> bool:
    return type_ is not None and type_.rank == 2


def _integer(node: ir.Node, name: str) -> int | None:
    attribute = node.attributes.get(name)
    return None if attribute is None or attribute.is_ref() else attribute.as_int()
