"""Terms as ONNX nodes and initializers: each distinct term once, constant ones folded to data."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.demands import assuming
from superopt.dim import Dim, Shape
from superopt.onnx_io.folding import folded, is_folded
from superopt.onnx_io.graph_values import declare_sizes
from superopt.onnx_io.peepholes.choosing import form_of
from superopt.onnx_io.peepholes.form import Form
from superopt.onnx_io.schemas import demand_numbers, demand_schema
from superopt.onnx_io.size_writer import SizeWriter, Sources
from superopt.onnx_io.skeleton import SMALL
from superopt.operators import NotUnderstood
from superopt.operators.reduce import Pool
from superopt.term import REAL, Term, variables


class TermWriter:
    """Collects the nodes and initializers of terms; an `operators.Emitter` for their declarations.

    Values are handled by name: those that exist already (`values`), and those that are made here, under new names.
    """

    def __init__(
        self,
        opset: int,
        values: Mapping[str, ir.Value],
        data: Callable[[str], Array],
        taken: set[str],
        sources: Sources,
        domains: Mapping[str, int] | None = None,
    ) -> None:
        """`domains` are the domains besides ONNX's own that the model imports, with their versions."""
        self.opset = opset
        self.dtype = ""
        self._domains = dict(domains or {})
        self.values = dict(values)
        self.nodes: list[ir.Node] = []
        self.initializers: list[ir.Value] = []
        self._data = data
        self._taken = taken
        self._counts: dict[str, int] = {}
        self._names: dict[tuple[Term, str], str] = {}
        self._integers: dict[tuple[int, ...], str] = {}
        self._types: dict[str, tuple[str, Shape]] = {}
        self._attentions: list[tuple[ir.Node, list[tuple[str, Shape] | None]]] = []
        # Not in a cycle: the weights that both know would stay until such are looked for.
        self._sizes = SizeWriter(weakref.proxy(self), sources)

    def write(self, roots: Sequence[tuple[Term, str]], given: Mapping[Term, str]) -> list[str]:
        """Write terms of element types and give the names of their values.

        Variables and the terms in `given` are values that exist. Raises `NotUnderstood` for a term that ONNX cannot
        express in this opset.
        """
        uses = _count_uses([term for term, _ in roots], given)
        with assuming():  # the terms are well formed where the model is; so are the reshapes that stand for expands
            return [self._root(term, dtype, uses, given) for term, dtype in roots]

    def node(
        self, op_type: str, inputs: Sequence[str], attributes: Mapping[str, Any] | None = None, domain: str = ""
    ) -> str:
        """Add a node with one output and give that output's name."""
        for value in (attributes or {}).values():
            demand_numbers(op_type, value)
        if not domain:
            demand_schema(op_type, self.opset, len(inputs), attributes or {})
        elif domain not in self._domains:
            raise NotUnderstood(f"{op_type}: the model does not import the domain {domain}")
        name = self.fresh(op_type.lower())
        output = ir.Value(name=name)
        # An empty list has no type of its own; those of ONNX's operators are of integers.
        typed = {k: ir.AttrInt64s(k, []) if isinstance(v, list) and not v else v for k, v in (attributes or {}).items()}
        given = ir.convenience.convert_attributes(typed)
        read = [self.values[i] if i else None for i in inputs]
        self.nodes.append(ir.Node(domain, op_type, read, given, outputs=[output], name=name))
        if op_type == "Attention":
            self._attentions.append((self.nodes[-1], [self._types.get(i) for i in inputs]))
        self.values[name] = output
        return name

    def declare_read(self) -> None:
        """Declare what is known of inner values that Attention reads, once they are those of the finished graph.

        Of a Slice with a computed bound ONNX infers no size, along no axis. Where Attention reads it, its inference
        takes a width that it does not know for 0, and refuses what reads the result.
        """
        for node, types in self._attentions:
            for value, type_ in zip(node.inputs, types, strict=True):
                if value is not None and type_ is not None and value.producer() and not value.is_graph_output():
                    declare_sizes(value, *type_)

    def integers(self, values: Sequence[Dim]) -> str:
        """The name of a vector of int64: a constant, or computed from sizes where some are symbolic.

        Raises `NotUnderstood` for a size that no value tells.
        """
        if not all(isinstance(v, int | np.integer) for v in values):
            return self._sizes.vector(values)
        key = tuple(int(v) for v in values)  # type: ignore[arg-type]
        if key not in self._integers:
            self._integers[key] = self._initializer("integers", np.asarray(key, dtype=np.int64))
        return self._integers[key]

    def shape(self, name: str) -> Shape:
        """The shape of a value that a declaration was given."""
        return self._types[name][1]

    def constant(self, name: str) -> Array | None:
        """The value of what is data; None for what is computed while the model runs."""
        tensor = self.values[name].const_value
        return None if tensor is None else np.asarray(tensor.numpy())

    def fresh(self, base: str) -> str:
        """A name that nothing has."""
        while True:
            self._counts[base] = self._counts.get(base, 0) + 1
            name = f"{base}_{self._counts[base]}"
            if name not in self._taken:
                self._taken.add(name)
                return name

    def _root(self, root: Term, dtype: str, uses: Mapping[Term, int], given: Mapping[Term, str]) -> str:
        """Write one that reads sizes from its own inputs, which nothing above it changes."""
        for leaf in variables(root):
            if leaf.label in self.values:
                self._sizes.learn(leaf.label, leaf.shape)
        return self._write(root, dtype, uses, given)

    def _write(self, root: Term, dtype: str, uses: Mapping[Term, int], given: Mapping[Term, str]) -> str:
        stack: list[tuple[Term, str, Form | None]] = [(root, dtype, None)]
        while stack:
            term, wanted, form = stack.pop()
            own = wanted if term.type.dtype == REAL else term.type.dtype
            key = (term, own)
            if key in self._names:
                continue
            if form is not None:
                self.dtype = own
                self._names[key] = form.write(self, *(self._name(o, _within(term, own)) for o in form.operands))
            elif term in given:
                self._names[key] = given[term]
            elif term.is_variable and term.label in self.values:
                self._names[key] = term.label
            elif is_folded(term) or term.is_variable:  # a variable that is no value was an attribute
                self._names[key] = self._fold(term, own)
            else:
                form = form_of(term, uses, given)
                stack.append((term, own, form))
                stack.extend((o, _within(term, own), None) for o in reversed(form.operands))
            if key in self._names:
                self._types[self._names[key]] = own, term.shape
                if isinstance(term.operator, Pool):
                    self._sizes.learn(self._names[key], term.shape)
        return self._name(root, dtype)

    def _name(self, term: Term, wanted: str) -> str:
        return self._names[term, wanted if term.type.dtype == REAL else term.type.dtype]

    def _fold(self, term: Term, dtype: str) -> str:
        """A constant term as data. What is made of weights that are stored in 16 bits is so too, where these hold it as
        it is.
        """
        given = {v: self._data(v.label) for v in variables(term)}
        made = folded(term, dtype, given)
        if made.dtype == np.float32 and made.nbytes > SMALL and any(map(self._is_stored_in_half, given)):
            with np.errstate(over="ignore"):
                half = made.astype(np.float16)
            if np.array_equal(half, made):
                return self.node("Cast", [self._initializer("folded", half)], {"to": ir.DataType.FLOAT.value})
        return self._initializer("folded", made)

    def _is_stored_in_half(self, leaf: Term) -> bool:
        """Whether what a variable stands for is a weight of 16 bits, cast to 32 when a session is made."""
        value = self.values.get(leaf.label)
        node = value.producer() if value is not None else None
        source = node.inputs[0] if node is not None and node.op_type == "Cast" else None
        return source is not None and source.is_initializer() and source.dtype == ir.DataType.FLOAT16

    def _initializer(self, base: str, array: Array) -> str:
        name = self.fresh(base)
        tensor = ir.Tensor(np.asarray(array), name=name)
        value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor)
        self.initializers.append(value)
        self.values[name] = value
        return name


def _within(term: Term, own: str) -> str:
    """What made constants under a term are written as: numbers also where it makes truth values of them."""
    numbers = {i.type.dtype for i in term.inputs} - {REAL, "bool"}
    return own if own != "bool" else min(numbers, default="float32")


def _count_uses(roots: Iterable[Term], given: Mapping[Term, str]) -> dict[Term, int]:
    """How often each term under the roots is read, what stands for existing values not counted."""
    uses: dict[Term, int] = {}
    stack = list(roots)
    while stack:
        term = stack.pop()
        uses[term] = uses.get(term, 0) + 1
        if uses[term] == 1 and term not in given and not is_folded(term):
            stack.extend(term.inputs)
    return uses
