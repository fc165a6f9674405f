"""The types of a model's values: element type and shape of each tensor, as ONNX's shape inference knows them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import onnx
import onnx_ir as ir
from onnx.shape_inference import InferenceError

from superopt.dim import Dim, Shape, symbol
from superopt.errors import ShapeError
from superopt.onnx_io.last_windows import nodes_of, say_last_windows
from superopt.onnx_io.skeleton import ONNX_DOMAIN, skeleton
from superopt.term import Type

NUMPY_NAMES = {
    ir.DataType.FLOAT: "float32",
    ir.DataType.DOUBLE: "float64",
    ir.DataType.FLOAT16: "float16",
    ir.DataType.BOOL: "bool",
    **{d: d.name.lower() for d in ir.DataType if re.fullmatch(r"U?INT(8|16|32|64)", d.name)},
}
"""Element types by the name that numpy gives them."""

IR_TYPES = {name: d for d, name in NUMPY_NAMES.items()}

_PROPAGATED = 2**20
"""The elements of all vectors of a model up to which sizes are propagated: ONNX makes a message of each element."""


@dataclass(frozen=True)
class Tensor:
    """What is known of a tensor: its element type, and a size, the name of a size, or None for each axis."""

    dtype: str
    dims: tuple[int | str | None, ...]

    def is_open(self, given: Container[str]) -> bool:
        """Whether a size is not known by name either: ONNX's inference makes names of its own for these, which may be
        `given` by an exporter that names its sizes so.
        """
        names = [d for d in self.dims if not isinstance(d, int)]
        return any(d is None or (d.startswith("unk__") and d not in given) for d in names)


def tensors(model: ir.Model) -> dict[str, Tensor]:
    """The values of the main graph that are tensors of known element type and rank."""
    bare = skeleton(model)
    _say_sides(bare)
    _open_slices(bare)
    say_last_windows(bare)
    # Where inference fails, what the model declares itself remains, and the shape rules of the catalogue.
    with suppress(InferenceError, RuntimeError, ValueError):
        bare = onnx.shape_inference.infer_shapes(bare, check_type=False, strict_mode=False)
        if _length_of_vectors(bare) <= _PROPAGATED:
            bare = onnx.shape_inference.infer_shapes(bare, check_type=False, strict_mode=False, data_prop=True)
    found = {i.name: Tensor(_dtype(i.data_type), tuple(i.dims)) for i in bare.graph.initializer}
    infos: Iterable[onnx.ValueInfoProto] = (*bare.graph.value_info, *bare.graph.input, *bare.graph.output)
    for info in infos:
        if info.type.HasField("tensor_type") and info.type.tensor_type.HasField("shape"):
            tensor = info.type.tensor_type
            found.setdefault(info.name, Tensor(_dtype(tensor.elem_type), tuple(map(_dim, tensor.shape.dim))))
    return found


def _say_sides(proto: onnx.ModelProto) -> None:
    """Have each STFT say that it is of one side where it does not, in place: onnx 1.23 takes that default for both."""
    for node in proto.graph.node:
        if node.op_type == "STFT" and not node.domain and not any(a.name == "onesided" for a in node.attribute):
            node.attribute.append(onnx.helper.make_attribute("onesided", 1))


_LATER = "superopt.later"
"""A domain of functions that no model has."""


def _open_slices(proto: onnx.ModelProto) -> None:
    """Have the slices of opset 10 inferred as those of opset 13, which mean the same, in place: of symbolic sizes
    onnx 1.23 says that they leave opset 10's as they were.
    """
    if not any(i.domain in ONNX_DOMAIN and i.version == 10 for i in proto.opset_import):
        return
    counts = set[int]()
    for node in nodes_of(proto.graph):
        if node.op_type == "Slice" and node.domain in ONNX_DOMAIN:
            counts.add(len(node.input))
            node.domain, node.op_type = _LATER, f"Slice{len(node.input)}"
    for count in counts:
        names = [f"x{i}" for i in range(count)]
        slices = [onnx.helper.make_node("Slice", names, ["y"])]
        opset = [onnx.helper.make_opsetid("", 13)]
        proto.functions.append(onnx.helper.make_function(_LATER, f"Slice{count}", names, ["y"], slices, opset))
    proto.opset_import.append(onnx.helper.make_opsetid(_LATER, 1))


def _length_of_vectors(proto: onnx.ModelProto) -> int:
    infos = (*proto.graph.value_info, *proto.graph.input, *proto.graph.output)
    return sum(i.type.tensor_type.shape.dim[0].dim_value for i in infos if len(i.type.tensor_type.shape.dim) == 1)


_ARITHMETIC: dict[type[ast.operator], Callable[[Dim, Dim], Dim]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
}


class Symbols:
    """Symbols for the sizes of one model: one for each name, and a new one for each size without a name.

    Exporters name some sizes by how they follow from others (`s16 + s62`, `2*s0`): those are computed, where all of
    these are sizes of inputs, from which they can be read.
    """

    def __init__(self, inputs: Iterable[Tensor]) -> None:
        self._by_name: dict[str, Dim] = {}
        self._taken: set[str] = set()
        self._names = {d for tensor in inputs for d in tensor.dims if isinstance(d, str) and d.isidentifier()}

    def shape(self, tensor: Tensor, told: Sequence[Dim | None] = ()) -> Shape:
        """A tensor's shape; a size that is told otherwise is that, where ONNX does not have it as a number."""
        told = told or (None,) * len(tensor.dims)
        return tuple(
            self._dim(d) if t is None or isinstance(d, int) else t for d, t in zip(tensor.dims, told, strict=True)
        )

    def type(self, tensor: Tensor) -> Type:
        """A tensor's type."""
        return Type(tensor.dtype, self.shape(tensor))

    def _dim(self, dim: int | str | None) -> Dim:
        if isinstance(dim, int):
            return dim
        if dim is None:
            return symbol(self._fresh("unknown"))
        if dim not in self._by_name:
            computed = self._computed(dim)
            if computed is not None:
                self._by_name[dim] = computed
                return computed
            # Symbols are words of the rule text, where a name such as "batch size" or "2" would not read back.
            clean = re.sub(r"\W+", "_", dim)
            self._by_name[dim] = symbol(self._fresh(clean if re.match(r"[^\W\d]", clean) else f"size_{clean}"))
        return self._by_name[dim]

    def _computed(self, text: str) -> Dim | None:
        """The size that a sum, product or quotient of named sizes is; a name such as `batch-size` is none."""
        if text.isidentifier() or not re.search(r"[^\W\d]", text) or re.search(r"\S[-+]\S", text):
            return None
        try:
            return self._value(ast.parse(text.strip(), mode="eval").body)
        except (SyntaxError, KeyError, RecursionError, MemoryError, ArithmeticError, ValueError, ShapeError):
            return None

    def _value(self, node: ast.AST) -> Dim:
        """Raises `KeyError` for what is no size, or no size of the model."""
        match node:
            case ast.Constant(value=int(number)) if not isinstance(number, bool):
                return number
            case ast.Name(id=name) if name in self._names:
                return self._dim(name)
            case ast.BinOp(left, op, right) if type(op) in _ARITHMETIC:
                return _ARITHMETIC[type(op)](self._value(left), self._value(right))
        raise KeyError(ast.dump(node))

    def _fresh(self, base: str) -> str:
        name, count = base, 1
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return name


def _dtype(elem_type: int) -> str:
    return NUMPY_NAMES.get(ir.DataType(elem_type), ir.DataType(elem_type).name.lower())


def _dim(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    if dim.HasField("dim_value"):
        return dim.dim_value
    return dim.dim_param or None
