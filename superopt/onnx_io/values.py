"""What is known of a model's values while it is read: constants, sizes, and the variables that stand for all others."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.dim import Shape, product, symbol_name
from superopt.errors import InvalidModel
from superopt.onnx_io.constants import Constants
from superopt.onnx_io.fused import Told, fused
from superopt.onnx_io.inferred import Known, inferred
from superopt.onnx_io.known_sizes import KnownSizes
from superopt.onnx_io.size_arithmetic import LONGEST
from superopt.onnx_io.skeleton import opset_of
from superopt.onnx_io.tensors import IR_TYPES, Symbols, Tensor
from superopt.operators import NotUnderstood
from superopt.term import Term, Type, variable


class Values:
    """The values of a model by name. Each node enters its own, after those that it reads.

    `sources` says of each symbol the value and axis that it was first seen at.
    """

    def __init__(self, model: ir.Model, tensors: Mapping[str, Tensor]) -> None:
        """The tensors are those of the model."""
        self.model = model
        self.tensors = tensors
        self.constants = Constants(model, self.tensors)
        self.sizes = KnownSizes(self.constants, self._shape)
        self.sources: dict[str, tuple[str, int]] = {}
        self.symbols = Symbols(self.tensors[v.name or ""] for v in model.graph.inputs if v.name in self.tensors)
        self.terms: dict[str, Term] = {}
        self._names = {v.name for node in model.graph for v in node.outputs} | {v.name for v in model.graph.inputs}
        self._names |= set(model.graph.initializers)

    def enter_known(self, node: ir.Node) -> bool:
        """Whether a node's values are constants or sizes; they are known from now on."""
        if not self.constants.enter(node) and not self.sizes.enter(node):
            return False
        self.sizes.trace(node)
        for value in node.outputs:
            self.enter(value.name or "", self._known_type(value.name or ""))
        return True

    def _known_type(self, name: str) -> Type | None:
        """The type of a constant or of sizes, where ONNX's shape inference does not have all of it."""
        if name in self.sizes:
            return Type(self.sizes[name].dtype, self.sizes[name].dims.shape)
        if name in self.tensors and all(isinstance(d, int) for d in self.tensors[name].dims):
            return None
        try:
            data = self.constants.data(name)
        except InvalidModel:
            return None
        return Type(data.dtype.name, data.shape) if data.size else None

    def _shape(self, name: str) -> Shape | None:
        """The shape of a value that was read before; an empty one has no variable."""
        if name in self.terms:
            return self.terms[name].shape
        dims = self.tensors[name].dims if name in self.tensors else (None,)
        return tuple(d for d in dims if isinstance(d, int)) if all(isinstance(d, int) for d in dims) else None

    def enter(self, name: str, type_: Type | None = None) -> None:
        """Make the variable of a value, where it is a tensor of known rank that is not empty."""
        if type_ is None and name in self.tensors and 0 not in self.tensors[name].dims:
            type_ = self.symbols.type(self.tensors[name])
            for axis, d in enumerate(type_.shape):
                self.sources.setdefault(symbol_name(d) or "", (name, axis))
        if name and type_ is not None and name not in self.terms:
            self.terms[name] = variable(name, type_.shape, type_.dtype, name in self.constants)

    def is_first(self, place: tuple[str, int]) -> bool:
        """Whether the size of a value along an axis is a symbol that no value before it has."""
        name, axis = place
        size = self.terms[name].shape[axis] if name in self.terms and axis < self.terms[name].type.rank else 1
        return self.sources.get(symbol_name(size) or "") == place

    def inferred(self, node: ir.Node) -> dict[str, Type]:
        """The types of what a node gives where ONNX's inference of the whole model left sizes open; what it leaves open
        alone too is a new symbol.
        """
        names = [v.name or "" for v in node.outputs if v.name]
        if all(n in self.tensors and all(isinstance(d, int) for d in self.tensors[n].dims) for n in names):
            return {}
        found: dict[str, Type] = {}
        for name, (dtype, dims) in self._told(node).items():
            whole = self.tensors.get(name, Tensor(dtype, (None,) * len(dims)))
            agree = (whole.dtype, len(whole.dims)) == (dtype, len(dims))
            if agree and dtype in IR_TYPES and not any(isinstance(d, int) and d == 0 for d in dims):
                own = self.symbols.shape(whole, told=dims)
                for axis, d in enumerate(own):
                    self.sources.setdefault(symbol_name(d) or "", (name, axis))
                found[name] = Type(dtype, own)
        return found

    def _told(self, node: ir.Node) -> dict[str, Told]:
        """What follows from the inputs of a node by itself."""
        known = [self.terms.get(v.name or "") if v is not None else None for v in node.inputs]
        told = fused(node, [None if term is None else term.type for term in known])
        if told:
            return told
        given: dict[str, Known] = {}
        for name in (v.name or "" for v in node.inputs if v is not None):
            if name in self.sizes and self.sizes[name].dtype == "int64" and self.sizes[name].dims.ndim == 1:
                given[name] = tuple(self.sizes[name].dims)
            elif name in self.constants and name in self.terms and _is_short(self.terms[name].shape):
                given[name] = self.constants.data(name)
            elif name in self.terms and self.terms[name].type.dtype in IR_TYPES:
                given[name] = self.terms[name].type
            elif name:
                return {}
        return inferred(node, opset_of(self.model), given)

    def number(self, value: ir.Value) -> float | None:
        """The floating-point number that a constant holds, if it is one; of a node that may stand behind too."""
        name, producer = value.name or "", value.producer()
        if producer is not None and producer.op_type == "Constant":
            self.constants.enter(producer)
        tensor = self.tensors.get(name)
        if name not in self.constants or tensor is None or any(d != 1 for d in tensor.dims):
            return None
        return float(self.constants.data(name).reshape(())) if "float" in tensor.dtype else None

    def _is_nothing(self, name: str) -> bool:
        """Whether a value is a constant vector without elements: exporters give one where an option is left out."""
        return name in self.constants and name in self.tensors and self.tensors[name].dims == (0,)

    def input(self, name: str) -> Term | None:
        """The variable of a node's input; None where it is left out. Raises `NotUnderstood`."""
        if not name or self._is_nothing(name):
            return None
        if name not in self.terms:
            raise NotUnderstood(f"input {name!r} is no tensor of known rank, or it is empty")
        if self.terms[name].type.dtype not in IR_TYPES:
            raise NotUnderstood(f"element type {self.terms[name].type.dtype} of {name!r}")
        return self.terms[name]

    def enter_weight(self, output: str, attribute: str, data: Array) -> Term:
        """The variable of what an attribute of a node holds, under a name that no value has."""
        name = f"{output}.{attribute}"
        while name in self._names:
            name += "_"
        self._names.add(name)
        self.constants.learn(name, data)
        self.enter(name, Type(data.dtype.name, data.shape))
        return self.terms[name]


def _is_short(shape: Shape) -> bool:
    """Whether a constant is small enough to be a shape, axes, or a number."""
    size = product(shape)
    return isinstance(size, int) and size <= LONGEST
