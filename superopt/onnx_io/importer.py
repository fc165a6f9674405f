"""From a model to terms: each node is read by its declaration, or is opaque for a reason that is kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import onnx_ir as ir

from superopt.arithmetic import Array
from superopt.dim import Condition, Shape, assuming, product, symbol_name, symbols
from superopt.errors import InvalidModel, SuperoptError, one_line
from superopt.onnx_io.bounds import Bounds, Cut, surely_run
from superopt.onnx_io.constants import Constants
from superopt.onnx_io.decided import decided
from superopt.onnx_io.inferred import Known, inferred
from superopt.onnx_io.inlining import inlined
from superopt.onnx_io.known_sizes import KnownSizes
from superopt.onnx_io.node_source import Attributes, NodeSource, python_value
from superopt.onnx_io.order import in_order, read_outputs, read_values
from superopt.onnx_io.otherwise import otherwise
from superopt.onnx_io.program import Program, Step
from superopt.onnx_io.rounding import is_of_a_rounding
from superopt.onnx_io.separable import Apart, factors, may_be_product, one_axis_after_the_other
from superopt.onnx_io.size_arithmetic import LONGEST
from superopt.onnx_io.skeleton import opset_of
from superopt.onnx_io.supposed import Joins, Supposed
from superopt.onnx_io.tensors import IR_TYPES, Symbols, Tensor, tensors
from superopt.onnx_io.unneeded import without_unneeded
from superopt.operators import READERS, NotUnderstood
from superopt.operators.element_types import demand_computed
from superopt.operators.picks import PastTheEnd
from superopt.term import Term, Type, variable

OLDEST_OPSET = 7
"""Before it, broadcasting followed other rules."""


def understand(model: ir.Model, plainly: bool = False) -> Program:
    """The model as terms over its values, its functions inlined, without nodes that nothing needs, of an If that always
    takes one branch that one, and, if not `plainly`, some nodes written `otherwise`. What the catalogue does not cover
    is opaque, never an error.

    Raises `InvalidModel` for a graph with a cycle.
    """
    model, changed = without_unneeded(inlined(model))
    within, supposed, plain = frozenset[Cut](), Supposed(), None
    while True:
        reading = _Reading(model, within, supposed)
        program = reading.program()
        cuts, sizes = reading.bounds.met, reading.joins.met
        if not (cuts <= within and sizes.keys() <= supposed.keys()):
            within, supposed = within | cuts, sizes | supposed  # what follows those may be read now
            continue
        if (other := decided(program)) is None:
            if (other := None if plainly else otherwise(program)) is None:
                return replace(program, otherwise=changed, plain=plain)
            changed, plain = True, plain or model
        model = other


class _Reading:
    """One pass over a model, in topological order."""

    def __init__(self, model: ir.Model, within: frozenset[Cut], supposed: Supposed) -> None:
        """Slices `within` their axis, and sizes that are `supposed`, were told by readings before."""
        self.model, self.within, self.supposed = model, within, supposed
        run = surely_run(model.graph)
        self.bounds, self.joins = Bounds(run), Joins(run)
        self.tensors = tensors(model)
        self.constants = Constants(model, self.tensors)
        self.sizes = KnownSizes(self.constants, self._shape)
        self.sources: dict[str, tuple[str, int]] = {}
        self.symbols = Symbols(self.tensors[v.name or ""] for v in model.graph.inputs if v.name in self.tensors)
        self.terms: dict[str, Term] = {}
        self.factors: dict[Term, Apart | None] = {}
        self.names = {v.name for node in model.graph for v in node.outputs} | {v.name for v in model.graph.inputs}
        self.names |= set(model.graph.initializers)
        self.named_in_attributes = any(node.op_type == "Gradient" for node in model.graph)

    def program(self) -> Program:
        graph = self.model.graph
        for value in (*graph.inputs, *graph.initializers.values()):
            self._enter(value.name or "")
        inputs = [self.terms[v.name or ""] for v in graph.inputs if v.name in self.terms]
        self.given = frozenset(name for x in inputs for d in x.shape for name in symbols(d))
        steps = [self._step(node) for node in in_order(graph) if not self._is_known(node)]
        return Program(
            model=self.model,
            steps=steps,
            values=self.terms,
            inputs=tuple(v.name or "" for v in graph.inputs if (v.name or "") not in self.constants),
            outputs=tuple(v.name or "" for v in graph.outputs),
            constants=self.constants,
            sizes=self.sizes,
            loses_sizes=self._loses_sizes(steps),
            size_sources=self.sources,
        )

    def _loses_sizes(self, steps: Iterable[Step]) -> bool:
        """Whether most of what is understood and has symbolic sizes has some that ONNX's inference does not tell."""
        terms = {name: t for s in steps for name, t in zip(s.outputs, s.terms, strict=False)}
        symbolic = [name for name, t in terms.items() if any(not isinstance(d, int) for d in t.shape)]
        inputs = [self.tensors[v.name or ""] for v in self.model.graph.inputs if v.name in self.tensors]
        given = {d for tensor in inputs for d in tensor.dims if isinstance(d, str)}
        lost = [name for name in symbolic if name not in self.tensors or self.tensors[name].is_open(given)]
        return 2 * len(lost) > len(symbolic)

    def _is_known(self, node: ir.Node) -> bool:
        """Whether a node's values are constants or sizes."""
        if not self.constants.enter(node) and not self.sizes.enter(node):
            return False
        self.sizes.trace(node)
        for value in node.outputs:
            self._enter(value.name or "", self._known_type(value.name or ""))
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

    def _enter(self, name: str, type_: Type | None = None) -> None:
        """Make the variable of a value, where it is a tensor of known rank that is not empty."""
        if type_ is None and name in self.tensors and 0 not in self.tensors[name].dims:
            type_ = self.symbols.type(self.tensors[name])
            for axis, d in enumerate(type_.shape):
                self.sources.setdefault(symbol_name(d) or "", (name, axis))
        if name and type_ is not None and name not in self.terms:
            self.terms[name] = variable(name, type_.shape, type_.dtype, name in self.constants)

    def _step(self, node: ir.Node) -> Step:
        outputs = read_outputs(node)
        read: tuple[Term, ...] = ()
        terms: tuple[Term, ...] = ()
        reason, past = "", None
        try:
            read = self._read(node, outputs)
            demand_computed(read)
            terms = read
        except SuperoptError as error:
            reason = one_line(error, 300)
            past = error if isinstance(error, PastTheEnd) else None
        except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
            # A declaration met what it did not foresee; the node stays as it is.
            reason = f"{type(error).__name__}: {one_line(error, 300)}"
        types = dict(zip(outputs, (t.type for t in read), strict=False))  # also of what is not computed with here
        if not terms:
            types = self._inferred(node) | self._joined(node, outputs) | types
        for value in node.outputs:
            self._enter(value.name or "", types.get(value.name or ""))
        if past is not None and outputs[:1] and self._is_first((outputs[0], past.axis)):
            self.bounds.note((outputs[0], past.axis), self.terms[outputs[0]].shape[past.axis], past.end)
        elif not terms:
            self.bounds.broadcast(node, self._met(node))
        return Step(node, read_values(node), outputs, terms, reason)

    def _is_first(self, place: tuple[str, int]) -> bool:
        """Whether the size of a value along an axis is a symbol that no value before it has."""
        name, axis = place
        size = self.terms[name].shape[axis] if name in self.terms and axis < self.terms[name].type.rank else 1
        return self.sources.get(symbol_name(size) or "") == place

    def _met(self, node: ir.Node) -> list[Shape]:
        """The shapes of a node's inputs, as far as they are known; of Expand that to which it broadcasts the first."""
        names = [v.name or "" for v in node.inputs if v is not None]
        if node.op_type != "Expand":
            return [self.terms[n].shape for n in names if n in self.terms]
        known = len(names) == 2 and names[0] in self.terms and names[1] in self.sizes
        dims = self.sizes[names[1]].dims if known else None
        return [self.terms[names[0]].shape, tuple(dims)] if dims is not None and dims.ndim == 1 else []

    def _joined(self, node: ir.Node, outputs: tuple[str, ...]) -> dict[str, Type]:
        """The type of maps that are joined, where their sizes have to be equal."""
        read = [self.terms[v.name or ""] for v in node.inputs if v is not None and v.name in self.terms]
        if len(read) < max(len(node.inputs), 1) or not outputs:
            return {}
        shape = self.joins.join(node, [t.shape for t in read], self.given)
        return {} if shape is None else {outputs[0]: Type(read[0].type.dtype, shape)}

    def _inferred(self, node: ir.Node) -> dict[str, Type]:
        """The types of what a node gives where ONNX's inference of the whole model left sizes open; what it leaves open
        alone too is a new symbol.
        """
        names = [v.name or "" for v in node.outputs if v.name]
        if all(n in self.tensors and all(isinstance(d, int) for d in self.tensors[n].dims) for n in names):
            return {}
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
        found: dict[str, Type] = {}
        for name, (dtype, dims) in inferred(node, opset_of(self.model), given).items():
            whole = self.tensors.get(name, Tensor(dtype, (None,) * len(dims)))
            agree = (whole.dtype, len(whole.dims)) == (dtype, len(dims))
            if agree and dtype in IR_TYPES and not any(isinstance(d, int) and d == 0 for d in dims):
                own = self.symbols.shape(whole, told=dims)
                for axis, d in enumerate(own):
                    self.sources.setdefault(symbol_name(d) or "", (name, axis))
                found[name] = Type(dtype, own)
        return found

    def _read(self, node: ir.Node, outputs: tuple[str, ...]) -> tuple[Term, ...]:
        """The terms of a node's outputs. Raises `NotUnderstood` and whatever a declaration raises."""
        opset = opset_of(self.model)
        if self.named_in_attributes:
            raise NotUnderstood("a Gradient in the model refers to values by their names")
        if node.domain and all(domain != node.domain for domain, _ in READERS):
            raise NotUnderstood(f"operators of the domain {node.domain} are not declared")
        if opset < OLDEST_OPSET:
            raise NotUnderstood(f"opset {opset} is older than {OLDEST_OPSET}")
        if any(a.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) for a in node.attributes.values()):
            raise NotUnderstood("it has subgraphs")
        if is_of_a_rounding(node, self._number):
            raise NotUnderstood("it rounds: a large number is added and taken away again")
        reader = READERS.get((node.domain, node.op_type))
        if reader is None:
            of = f" of the domain {node.domain}" if node.domain else ""
            raise NotUnderstood(f"operator {node.op_type}{of} is not declared")
        names = [v.name or "" if v is not None else "" for v in node.inputs]
        inputs = [self._input(name) for name in names]
        attributes = Attributes({a.name: python_value(a) for a in node.attributes.values()})
        enter = partial(self._enter_weight, outputs[0] if outputs else "")
        within = {axis for name, axis in self.within if name == outputs[0]} if outputs else ()
        supposed = {axis: d for (name, axis), d in self.supposed.items() if name == outputs[0]} if outputs else {}
        told = self.sizes, enter, within, supposed
        source = NodeSource(node.op_type, opset, attributes, inputs, len(node.outputs), names, *told)
        with assuming() as conditions:
            made = reader(source)
        _demand_only_bounds(conditions)
        attributes.demand_all_read(node.op_type, opset if not node.domain else 0)
        terms = made if isinstance(made, tuple) else (made,)
        if len(inputs) > 1 and inputs[1] is not None and may_be_product(node.op_type, inputs[1]):
            parts = self._factors(names[1], inputs[1])
            computed = tuple(t for t in terms if t is not None)
            terms = terms if parts is None else one_axis_after_the_other(computed, inputs[1], parts)
        return self._checked(node, outputs, terms)

    def _factors(self, name: str, k: Term) -> Apart | None:
        """The columns and rows that a kernel is a product of, if it is: the same for all nodes that read it."""
        if k not in self.factors:
            parts = factors(self.constants.data(name))
            self.factors[k] = None
            if parts is not None:
                column, row = (self._enter_weight(name, *p) for p in zip(("column", "row"), parts, strict=True))
                self.factors[k] = column, row
        return self.factors[k]

    def _number(self, value: ir.Value) -> float | None:
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

    def _input(self, name: str) -> Term | None:
        if not name or self._is_nothing(name):
            return None
        if name not in self.terms:
            raise NotUnderstood(f"input {name!r} is no tensor of known rank, or it is empty")
        if self.terms[name].type.dtype not in IR_TYPES:
            raise NotUnderstood(f"element type {self.terms[name].type.dtype} of {name!r}")
        return self.terms[name]

    def _enter_weight(self, output: str, attribute: str, data: Array) -> Term:
        """The variable of what an attribute of a node holds, under a name that no value has."""
        name = f"{output}.{attribute}"
        while name in self.names:
            name += "_"
        self.names.add(name)
        self.constants.learn(name, data)
        self._enter(name, Type(data.dtype.name, data.shape))
        return self.terms[name]

    def _checked(self, node: ir.Node, outputs: tuple[str, ...], terms: tuple[Term | None, ...]) -> tuple[Term, ...]:
        given = dict(zip((v.name or "" for v in node.outputs), terms, strict=False))
        kept: list[Term] = []
        for name in outputs:
            term = given.get(name)
            if term is None:
                raise NotUnderstood(f"output {name!r} is used and not declared")
            if name in self.tensors:
                _demand_agreement(name, term.type, self.tensors[name])
            kept.append(term)
        return tuple(kept)


def _is_short(shape: Shape) -> bool:
    """Whether a constant is small enough to be a shape, axes, or a number."""
    size = product(shape)
    return isinstance(size, int) and size <= LONGEST


def _demand_only_bounds(conditions: Iterable[Condition]) -> None:
    """Raise `NotUnderstood` where a term holds for some sizes only.

    That a window fits, or that a tensor is not empty, holds whenever the model itself runs, so it may be assumed.
    """
    for condition in conditions:
        if condition.relation != "<=":
            raise NotUnderstood(f"whether {condition} holds depends on the sizes")


def _demand_agreement(name: str, ours: Type, theirs: Tensor) -> None:
    """Raise `NotUnderstood` where ONNX's shape inference knows another type than the shape rule gives."""
    sizes = zip(ours.shape, theirs.dims, strict=False)
    differ = any(isinstance(t, int) and not (isinstance(o, int) and o == t) for o, t in sizes)
    if ours.dtype != theirs.dtype or len(ours.shape) != len(theirs.dims) or differ:
        raise NotUnderstood(f"{name!r} is {ours} by our shape rule, {theirs.dtype}{theirs.dims} by ONNX's")
