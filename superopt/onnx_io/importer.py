"""From a model to terms: each node is read by its declaration, or is opaque for a reason that is kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial

import onnx_ir as ir

from superopt.demands import assuming
from superopt.dim import Condition, Shape
from superopt.errors import UNFORESEEN, SuperoptError, one_line
from superopt.onnx_io.bounds import Bounds, Cut, surely_run
from superopt.onnx_io.decided import decided
from superopt.onnx_io.in_bytes import is_in_bytes
from superopt.onnx_io.inlined_names import without_inlined_names
from superopt.onnx_io.inlining import inlined
from superopt.onnx_io.node_source import Attributes, NodeSource, python_value
from superopt.onnx_io.order import in_order, read_outputs, read_values
from superopt.onnx_io.otherwise import otherwise
from superopt.onnx_io.program import Program, Step
from superopt.onnx_io.rounding import is_of_a_rounding
from superopt.onnx_io.separable import Apart, factors, may_be_product, one_axis_after_the_other
from superopt.onnx_io.skeleton import opset_of
from superopt.onnx_io.supposed import Joins, Supposed
from superopt.onnx_io.tensors import Tensor, tensors
from superopt.onnx_io.unneeded import without_unneeded
from superopt.onnx_io.values import Values
from superopt.operators import READERS, NotUnderstood
from superopt.operators.element_types import demand_computed
from superopt.operators.picks import PastTheEnd
from superopt.substitution import symbols
from superopt.term import Term, Type

OLDEST_OPSET = 7
"""Before it, broadcasting followed other rules."""


def understand(model: ir.Model, plainly: bool = False, only: Collection[str] | None = None) -> Program:
    """The model as terms over its values, its functions inlined, without nodes that nothing needs, of an If that always
    takes one branch that one, and, if not `plainly`, some nodes written `otherwise`, `only` in some ways where these
    are named. What the catalogue does not cover is opaque, never an error.

    Raises `InvalidModel` for a graph with a cycle.
    """
    model, changed = without_unneeded(without_inlined_names(inlined(model)))
    within, supposed, plain = frozenset[Cut](), Supposed(), None
    ways = frozenset[str]()
    known = tensors(model)
    while True:
        reading = _Reading(model, known, within, supposed)
        program = reading.program()
        cuts, sizes = reading.bounds.met, reading.joins.met
        if not (cuts <= within and sizes.keys() <= supposed.keys()):
            within, supposed = within | cuts, sizes | supposed  # what follows those may be read now
            continue
        if (other := decided(program)) is None:
            if (written := None if plainly else otherwise(program, only)) is None:
                return replace(program, otherwise=changed, plain=plain, ways=ways)
            other, ways = written.model, ways | written.ways
            changed, plain = True, plain or model
        model, known = other, tensors(other)


class _Reading:
    """One pass over a model, in topological order."""

    def __init__(
        self, model: ir.Model, known: Mapping[str, Tensor], within: frozenset[Cut], supposed: Supposed
    ) -> None:
        """The tensors `known` are the model's. Slices `within` their axis, and sizes that are `supposed`, were told by
        readings before.
        """
        self.model, self.within, self.supposed = model, within, supposed
        run = surely_run(model.graph)
        self.bounds, self.joins = Bounds(run), Joins(run)
        self.values = Values(model, known)
        self.factors: dict[Term, Apart | None] = {}
        self.named_in_attributes = any(node.op_type == "Gradient" for node in model.graph)

    def program(self) -> Program:
        graph = self.model.graph
        for value in (*graph.inputs, *graph.initializers.values()):
            self.values.enter(value.name or "")
        inputs = [self.values.terms[v.name or ""] for v in graph.inputs if v.name in self.values.terms]
        self.given = frozenset(name for x in inputs for d in x.shape for name in symbols(d))
        steps = [self._step(node) for node in in_order(graph) if not self.values.enter_known(node)]
        return Program(
            model=self.model,
            steps=steps,
            values=self.values.terms,
            inputs=tuple(v.name or "" for v in graph.inputs if (v.name or "") not in self.values.constants),
            outputs=tuple(v.name or "" for v in graph.outputs),
            constants=self.values.constants,
            sizes=self.values.sizes,
            loses_sizes=self._loses_sizes(steps),
            size_sources=self.values.sources,
        )

    def _loses_sizes(self, steps: Iterable[Step]) -> bool:
        """Whether most of what is understood and has symbolic sizes has some that ONNX's inference does not tell."""
        terms = {name: t for s in steps for name, t in zip(s.outputs, s.terms, strict=False)}
        symbolic = [name for name, t in terms.items() if any(not isinstance(d, int) for d in t.shape)]
        known = self.values.tensors
        inputs = [known[v.name or ""] for v in self.model.graph.inputs if v.name in known]
        given = {d for tensor in inputs for d in tensor.dims if isinstance(d, str)}
        lost = [name for name in symbolic if name not in known or known[name].is_open(given)]
        return 2 * len(lost) > len(symbolic)

    def _step(self, node: ir.Node) -> Step:
        outputs = read_outputs(node)
        read: tuple[Term, ...] = ()
        terms: tuple[Term, ...] = ()
        reason, past = "", None
        try:
            read = self._read(node, outputs)
            demand_computed(read)
            if is_in_bytes(node):
                raise NotUnderstood("runtimes compute it in bytes: it stands between what dequantizes and quantizes")
            terms = read
        except SuperoptError as error:
            reason = one_line(error, 300)
            past = error if isinstance(error, PastTheEnd) else None
        except UNFORESEEN as error:
            # A declaration met what it did not foresee; the node stays as it is.
            reason = f"{type(error).__name__}: {one_line(error, 300)}"
        types = dict(zip(outputs, (t.type for t in read), strict=False))  # also of what is not computed with here
        if not terms:
            types = self.values.inferred(node) | self._joined(node, outputs) | types
        for value in node.outputs:
            self.values.enter(value.name or "", types.get(value.name or ""))
        if past is not None and outputs[:1] and self.values.is_first((outputs[0], past.axis)):
            self.bounds.note((outputs[0], past.axis), self.values.terms[outputs[0]].shape[past.axis], past.end)
        elif not terms:
            self.bounds.broadcast(node, self._met(node))
        return Step(node, read_values(node), outputs, terms, reason)

    def _met(self, node: ir.Node) -> list[Shape]:
        """The shapes of a node's inputs, as far as they are known; of Expand that to which it broadcasts the first."""
        names = [v.name or "" for v in node.inputs if v is not None]
        terms, sizes = self.values.terms, self.values.sizes
        if node.op_type != "Expand":
            return [terms[n].shape for n in names if n in terms]
        known = len(names) == 2 and names[0] in terms and names[1] in sizes
        dims = sizes[names[1]].dims if known else None
        return [terms[names[0]].shape, tuple(dims)] if dims is not None and dims.ndim == 1 else []

    def _joined(self, node: ir.Node, outputs: tuple[str, ...]) -> dict[str, Type]:
        """The type of maps that are joined, where their sizes have to be equal."""
        terms = self.values.terms
        read = [terms[v.name or ""] for v in node.inputs if v is not None and v.name in terms]
        if len(read) < max(len(node.inputs), 1) or not outputs:
            return {}
        shape = self.joins.join(node, [t.shape for t in read], self.given)
        return {} if shape is None else {outputs[0]: Type(read[0].type.dtype, shape)}

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
        if is_of_a_rounding(node, self.values.number):
            raise NotUnderstood("it rounds: a large number is added and taken away again")
        reader = READERS.get((node.domain, node.op_type))
        if reader is None:
            of = f" of the domain {node.domain}" if node.domain else ""
            raise NotUnderstood(f"operator {node.op_type}{of} is not declared")
        names = [v.name or "" if v is not None else "" for v in node.inputs]
        inputs = [self.values.input(name) for name in names]
        attributes = Attributes({a.name: python_value(a) for a in node.attributes.values()})
        enter = partial(self.values.enter_weight, outputs[0] if outputs else "")
        within = {axis for name, axis in self.within if name == outputs[0]} if outputs else ()
        supposed = {axis: d for (name, axis), d in self.supposed.items() if name == outputs[0]} if outputs else {}
        told = self.values.sizes, enter, within, supposed
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
            parts = factors(self.values.constants.data(name))
            self.factors[k] = None
            if parts is not None:
                column, row = (self.values.enter_weight(name, *p) for p in zip(("column", "row"), parts, strict=True))
                self.factors[k] = column, row
        return self.factors[k]

    def _checked(self, node: ir.Node, outputs: tuple[str, ...], terms: tuple[Term | None, ...]) -> tuple[Term, ...]:
        given = dict(zip((v.name or "" for v in node.outputs), terms, strict=False))
        kept: list[Term] = []
        for name in outputs:
            term = given.get(name)
            if term is None:
                raise NotUnderstood(f"output {name!r} is used and not declared")
            if name in self.values.tensors:
                _demand_agreement(name, term.type, self.values.tensors[name])
            kept.append(term)
        return tuple(kept)


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
