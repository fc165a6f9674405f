"""From terms to models: a model with some values computed anew."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import onnx_ir as ir

from superopt.errors import SuperoptError, UsageError
from superopt.onnx_io.lowest import without_lowest
from superopt.onnx_io.opsets import highest_opset, needed_opset, outdated, raise_opset, surer_opset
from superopt.onnx_io.program import Program
from superopt.onnx_io.skeleton import clone, imported_opset, opset_of
from superopt.onnx_io.surgery import bury, inherit, put, sort, swap_outputs
from superopt.onnx_io.writer import TermWriter
from superopt.operators import NotUnderstood
from superopt.operators.nodes import ML_DOMAIN
from superopt.term import Term


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
    opset = surer_opset(program, changed.values(), needed_opset(changed.values(), origins, opset_of(model)))
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
        domains = {ML_DOMAIN: 1, **self.model.opset_imports}
        writer = TermWriter(opset, readable, self.program.data, taken, self.program.size_sources, domains)
        given = {t: olds.get(n, n) for t, n in self.origins.items() if n in values}
        order = [name for node in graph for name in (v.name or "" for v in node.outputs) if name in self.new]
        roots = [(self.new[n], self.program.values[n].type.dtype) for n in order]
        for name, handle in zip(order, writer.write(roots, given), strict=True):
            self.final[name] = writer.values[handle]
        graph.extend(writer.nodes)
        if any(node.domain == ML_DOMAIN for node in writer.nodes):
            self.model.opset_imports.setdefault(ML_DOMAIN, domains[ML_DOMAIN])
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
