"""From terms to models: a model with some values computed anew, and a model of some terms alone."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx_ir as ir

from superopt.arithmetic import Array
from superopt.dim import symbol_name
from superopt.drawn import normal
from superopt.errors import SuperoptError, UsageError
from superopt.onnx_io.importer import OLDEST_OPSET
from superopt.onnx_io.lowest import without_lowest
from superopt.onnx_io.opsets import highest_opset, needed_opset, outdated, raise_opset
from superopt.onnx_io.program import Program
from superopt.onnx_io.size_writer import Sources
from superopt.onnx_io.skeleton import clone, imported_opset, opset_of
from superopt.onnx_io.surgery import bury, inherit, put, sort, swap_outputs
from superopt.onnx_io.writer import TermWriter, graph_value
from superopt.operators import Declared, NotUnderstood
from superopt.term import REAL, Graph, Term, subterms, variables

APART = 2**16
"""Weights of more bytes of a model that is only timed stand in files beside it: in a message they are there three times
while it is written.
"""


def rewritten(program: Program, new: Mapping[str, Term], origins: Mapping[Term, str]) -> ir.Model:
    """A new model in which each value named in `new` is computed by its term over the variables of the program.

    A term in `origins` is the value of that name as the original computes it. All else stays as it was; what nothing
    needs any more is gone. Where a new term needs it, the opset rises. Tensors are shared with the original, which is
    not changed. Raises `NotUnderstood` for a term that ONNX cannot express in an opset that the model may have,
    `UsageError` for a value that is given or unknown, and `SuperoptError` where the terms make a cycle.
    """
    changed = without_lowest(program, changed_values(program, new, origins))
    for name in changed:
        if name not in program.values:
            raise UsageError(f"{name!r} is no value of the model, or its rank is not known")
    model = clone(program.model)
    opset = needed_opset(changed.values(), origins, opset_of(model))
    anew: Mapping[str, Term] = {}
    if opset > opset_of(model):
        if opset > highest_opset(program):
            raise NotUnderstood(f"the model has nodes that would mean something else, or take longer, in opset {opset}")
        anew = outdated(program, opset)
        raise_opset(model, opset)
        origins = {t: n for t, n in origins.items() if n not in anew}
    if changed:
        _Rewriting(program, model, {**anew, **changed}, origins, set(anew) - set(changed)).run()
    return model


def changed_values(program: Program, new: Mapping[str, Term], origins: Mapping[Term, str]) -> dict[str, Term]:
    """The values, of those to be computed by these terms, that are not so in the original, by name."""
    return {n: t for n, t in new.items() if origins.get(t) != n and t is not program.values.get(n)}


@dataclass
class _Rewriting:
    """One rewriting of a model that is a copy already."""

    program: Program
    model: ir.Model
    new: Mapping[str, Term]
    origins: Mapping[Term, str]
    anew: Collection[str] = ()
    """The values that are as they were, only written in another form; nobody may need them any more."""
    old: dict[str, ir.Value] = field(default_factory=dict)
    """The values that are replaced."""
    stand_ins: dict[str, ir.Value] = field(default_factory=dict)
    """For each of them, what its readers read until the new value is there."""
    final: dict[str, ir.Value] = field(default_factory=dict)

    def run(self) -> None:
        graph = self.model.graph
        values = ir.convenience.create_value_mapping(graph)
        self._detach(values)
        writer = self._write(values)
        for name, stand_in in self.stand_ins.items():
            stand_in.replace_all_uses_with(self._resolved(name))
        replaced = swap_outputs(graph, self.old, {n: self._resolved(n) for n in self.new}, writer)
        put(self.model, writer.initializers)
        producers = {name: value.producer() for name, value in self.old.items()}
        unread = [self._resolved(name) for name in self.anew]
        bury(self.model, [*self.old.values(), *unread])
        for name, value in replaced.items():
            if self.old[name].producer() is not None:
                self.old[name].name = writer.fresh(name)
            value.name = name
            inherit(value.producer(), producers[name])
        writer.declare_read()
        try:
            sort(graph)
        except ValueError:
            raise SuperoptError(f"rewriting {', '.join(self.new)} would make a cycle") from None

    def _detach(self, values: Mapping[str, ir.Value]) -> None:
        """From here on only terms in `origins` read the old values."""
        for name in self.new:
            self.old[name] = values[name]
            if values[name].producer() is None:
                raise UsageError(f"{name!r} is given to the model, not computed by it")
            self.stand_ins[name] = ir.Value(name=name)
            for user, index in values[name].uses():
                user.replace_input_with(index, self.stand_ins[name])

    def _write(self, values: Mapping[str, ir.Value]) -> TermWriter:
        graph = self.model.graph
        # A handle of an old value has to differ from the name, which means the new value.
        olds = {name: f"{name} (old)" for name in self.new}
        readable = {**values, **self.stand_ins, **{olds[n]: v for n, v in self.old.items()}}
        taken = {v.name for g in self.model.graphs() for n in g for v in n.outputs if v.name}
        taken |= {v.name for g in self.model.graphs() for v in (*g.inputs, *g.initializers.values()) if v.name}
        taken |= {n.name for n in graph.all_nodes() if n.name}
        opset = opset_of(self.model)
        if imported_opset(self.model) is None:
            self.model.opset_imports[""] = opset
        domains = self.model.opset_imports
        writer = TermWriter(opset, readable, self.program.data, taken, self.program.size_sources, domains)
        given = {t: olds.get(n, n) for t, n in self.origins.items() if n in values}
        order = [name for node in graph for name in (v.name or "" for v in node.outputs) if name in self.new]
        roots = [(self.new[n], self.program.values[n].type.dtype) for n in order]
        for name, handle in zip(order, writer.write(roots, given), strict=True):
            self.final[name] = writer.values[handle]
        graph.extend(writer.nodes)
        return writer

    def _resolved(self, name: str) -> ir.Value:
        """The new value of a name, which may be that of another."""
        value, seen = self.final[name], {name}
        while value.name in self.stand_ins and value is self.stand_ins[value.name]:
            if value.name in seen:
                raise SuperoptError(f"the new values of {', '.join(sorted(seen))} are defined by each other")
            seen.add(value.name)
            value = self.final[value.name]
        return value


def standalone(graph: Graph, opset: int, seed: int = 0, highest: int = 0) -> onnx.ModelProto:
    """A model of just these terms, for measuring: constants are weights of random values, the same for one seed.

    Where they need it, it is of a newer opset than the one given, but not above the `highest`.
    Inputs keep the labels of their variables; `REAL` is float32. Raises `NotUnderstood` where ONNX cannot express a
    term in this opset, `UsageError` for two variables of one label.
    """
    return ir.to_proto(_standalone(graph, opset, seed, highest))


def standalone_apart(
    graph: Graph, opset: int, highest: int = 0, undeclared: Mapping[str, Collection[int]] | None = None
) -> tuple[bytes, dict[str, Array]]:
    """The message of `standalone` in bytes, and weights apart but for small ones, by the files it says they are in. Of
    inputs the `undeclared` axes, by their labels, are of no size that the model tells.
    """
    model, weights = _standalone(graph, opset, 0, highest), dict[str, Array]()
    for value in model.graph.inputs:
        axes = (undeclared or {}).get(value.name or "", ())
        value.shape = ir.Shape([None if axis in axes else d for axis, d in enumerate(value.shape or ())])
    for i, (name, value) in enumerate(model.graph.initializers.items()):
        tensor = value.const_value
        if isinstance(tensor, ir.Tensor) and tensor.nbytes > APART:
            location = f"{i}.data"
            weights[location] = tensor.numpy()
            value.const_value = ir.ExternalTensor(
                location, 0, tensor.nbytes, tensor.dtype, shape=tensor.shape, name=name
            )
    message = ir.to_proto(model).SerializeToString()
    for value in model.graph.initializers.values():
        value.const_value = None  # a model lies in reference cycles, and its weights with it until these are looked for
    return message, weights


def op_types(graph: Graph, opset: int) -> list[str]:
    """The operators of the nodes of `standalone`. Raises as that does."""
    model = _standalone(graph, opset, 0, 0)
    for value in model.graph.initializers.values():
        value.const_value = None  # a model lies in reference cycles
    return [node.op_type for node in model.graph]


def _standalone(graph: Graph, opset: int, seed: int, highest: int) -> ir.Model:
    if opset < OLDEST_OPSET:
        raise NotUnderstood(f"opset {opset} is older than {OLDEST_OPSET}")
    opset = max(opset, min(highest, needed_opset(graph.outputs, (), opset)))
    leaves = _leaves(graph)
    if len({v.label for v in leaves}) < len(leaves):
        raise UsageError(f"two variables of one label in {graph}")
    values = {v.label: graph_value(v.label, _dtype(v), v.shape) for v in leaves}
    weights = {v.label: array for v, array in random_weights(graph, seed).items()}
    for label, array in weights.items():
        values[label].const_value = ir.Tensor(array, name=label)
    domains = {t.operator.domain: 1 for t in subterms(*graph.outputs) if isinstance(t.operator, Declared)}
    writer = TermWriter(opset, values, weights.__getitem__, set(values), _size_sources(leaves), domains)
    written = writer.write([(t, _dtype(t)) for t in graph.outputs], {})
    outputs: list[ir.Value] = []
    for term, name in zip(graph.outputs, written, strict=True):
        value = writer.values[name]
        if value.producer() is None or value in outputs:
            value = writer.values[writer.node("Identity", (name,))]
        typed = graph_value("", _dtype(term), term.shape)
        value.type, value.shape = typed.type, typed.shape
        outputs.append(value)
    writer.declare_read()
    made = ir.Graph(
        [values[v.label] for v in leaves if not v.constant],
        outputs,
        nodes=writer.nodes,
        initializers=[*(values[label] for label in weights if values[label].uses()), *writer.initializers],
        opset_imports={**domains, "": opset},
        name="terms",
    )
    oldest = onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", opset)])
    return ir.Model(made, ir_version=max(oldest, 8), producer_name="superopt")


def _size_sources(leaves: Iterable[Term]) -> Sources:
    return {symbol_name(d) or "": (v.label, axis) for v in leaves for axis, d in enumerate(v.shape)}


def random_weights(graph: Graph, seed: int = 0) -> dict[Term, Array]:
    """The values that `standalone` gives to the constant variables of a graph."""
    return {v: _random(v, np.random.default_rng([seed, i])) for i, v in enumerate(_leaves(graph)) if v.constant}


def _leaves(graph: Graph) -> list[Term]:
    return list(dict.fromkeys((*graph.inputs, *variables(*graph.outputs))))


def _dtype(term: Term) -> str:
    return "float32" if term.type.dtype == REAL else term.type.dtype


def _random(v: Term, rng: np.random.Generator) -> Array:
    """Matrices and kernels keep the scale of what passes through them (He 2015); vectors are positive, near 1.

    So nothing measured becomes infinite, NaN or denormal, which would change its time.
    """
    shape = tuple(int(d) for d in v.shape)  # type: ignore[arg-type]
    if v.type.dtype != REAL and "float" not in v.type.dtype:
        return np.zeros(shape, v.type.dtype)  # an index into any axis
    if len(shape) < 2:
        return rng.uniform(0.5, 1.5, shape).astype(_dtype(v))
    fan_in = shape[-2] if len(shape) < 4 else int(np.prod(shape[1:]))
    return normal(rng, shape, math.sqrt(2.0 / fan_in)).astype(_dtype(v), copy=False)
