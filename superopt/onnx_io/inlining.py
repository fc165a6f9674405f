"""Models without their functions: each call gives way to the nodes that it stands for, as when a runtime loads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import onnx.defs
import onnx_ir as ir
from onnx_ir.passes import InvariantError, PassError
from onnx_ir.passes.common import InlinePass

from superopt.errors import InvalidModel
from superopt.onnx_io.files import load
from superopt.onnx_io.naming import deep_values
from superopt.onnx_io.skeleton import ONNX_DOMAIN, all_nodes, imported_opset, nodes_within, subgraphs
from superopt.onnx_io.surgery import pass_on
from superopt.operators import READERS

MOST_NODES = 2**15
"""Models that would come to more nodes keep their functions."""

MOST_REPEATED = 2**20
"""A function that is called more than once stays one where this many bytes of its constants would be repeated."""

_OF_RUNTIMES = ("ai.onnx.", "com.microsoft", "com.ms.")
"""Domains in which onnxruntime has operators of its own, and takes these for functions of the same name."""

_GRAPHS = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)

Key = ir.OperatorIdentifier
Functions = Mapping[Key, ir.Function]


def inlined(model: ir.Model) -> ir.Model:
    """The model with functions inlined, all that can be, in a copy; the model itself where none can.

    The interface stays as it is, and so do the names of all values that are no function's.
    """
    if not model.functions:
        return model
    copy = load(model)
    chosen = _inlinable(copy)
    if not chosen:
        return model
    ends = [(v, v.name) for v in copy.graph.outputs]
    try:
        _prepare(copy, chosen)
        given = {v.name: v for n in all_nodes(copy) if n.op_identifier() in chosen for v in n.outputs}
        InlinePass(lambda function: function.identifier() in chosen)(copy)
        _forget_unused(copy, chosen)
        if [v.name for v in copy.graph.outputs] != [name for _, name in ends]:
            return model
        for (old, _), new in zip(ends, copy.graph.outputs, strict=True):
            if old is not new:
                pass_on(old, new)
        for new in deep_values(copy.graph):
            if new.name in given:
                pass_on(given[new.name], new)
        return load(copy) if _is_unambiguous(copy.graph, frozenset()) else model
    except (PassError, InvariantError, InvalidModel, ValueError, RuntimeError, LookupError, TypeError, AssertionError):
        return model  # a form that the library does not foresee; the calls are carried through


def _inlinable(model: ir.Model) -> frozenset[Key]:
    """The functions to inline: of domains that are theirs alone, that mean the same in the model's opsets, and whose
    constants may be repeated; and not called by one that stays. Their opsets become the model's, in place.
    """
    functions, times = model.functions, _expansions(model)
    if sum(times[key] * len(list(nodes_within(function))) for key, function in functions.items()) > MOST_NODES:
        return frozenset()
    if imported_opset(model) is None:  # it calls functions alone, whose opset becomes its own
        asked = [f.opset_imports[d] for f in functions.values() for d in ONNX_DOMAIN if d in f.opset_imports]
        model.opset_imports[""] = max(asked, default=1)
    staying = [key for key, f in functions.items() if not _can_be(f, model, times[key])]
    for key in staying:  # grows
        staying += [c for c in _called(functions[key], functions) if c not in staying]
    return frozenset(key for key in functions if times[key] and key not in staying)


def _expansions(model: ir.Model) -> Counter[Key]:
    """How often each function is called in all, with calls from others. Calls make no cycle in a checked model."""
    times: Counter[Key] = Counter()
    level = Counter(_called(model.graph, model.functions))
    while level:
        times += level
        inner: Counter[Key] = Counter()
        for key, count in level.items():
            inner.update({c: count * n for c, n in Counter(_called(model.functions[key], model.functions)).items()})
        level = inner
    return times


def _called(of: ir.Graph | ir.Function, functions: Functions) -> list[Key]:
    return [key for node in nodes_within(of) if (key := node.op_identifier()) in functions]


def _can_be(function: ir.Function, model: ir.Model, times: int) -> bool:
    """Whether a function can be inlined; then its opsets are the model's. One that the user declared is an operator."""
    declared = (function.domain, function.name) in READERS
    if declared or function.domain in ONNX_DOMAIN or function.domain.startswith(_OF_RUNTIMES):
        return False
    attributes = [a for node in nodes_within(function) for a in node.attributes.values()]
    if any(a.is_ref() and a.type in _GRAPHS for a in attributes):
        return False
    held = sum(a.as_tensor().nbytes for a in attributes if a.type == ir.AttributeType.TENSOR and not a.is_ref())
    return held * (times - 1) <= MOST_REPEATED and _takes_opsets(function, model)


def _takes_opsets(function: ir.Function, model: ir.Model) -> bool:
    """Whether a function's nodes mean the same by the model's opsets, which it has from then on."""
    imports = dict[str, int]()
    for domain, version in function.opset_imports.items():
        theirs = imported_opset(model) if domain in ONNX_DOMAIN else model.opset_imports.get(domain, version)
        nodes = [n for n in nodes_within(function) if n.domain == domain or {n.domain, domain} <= set(ONNX_DOMAIN)]
        if theirs is None or (theirs != version and not all(_is_same(n, version, theirs, model) for n in nodes)):
            return False
        imports[_imported_as(domain, model)] = theirs
    function.opset_imports.clear()
    function.opset_imports.update(imports)
    return True


def _imported_as(domain: str, model: ir.Model) -> str:
    """ONNX's own domain has two names; the one by which the model imports it."""
    names = ONNX_DOMAIN if domain in ONNX_DOMAIN else ()
    return next((name for name in names if name in model.opset_imports), domain)


def _is_same(node: ir.Node, one: int, other: int, model: ir.Model) -> bool:
    """Whether a node is of the same definition in two versions of its domain."""
    if node.op_identifier() in model.functions:
        return True
    if node.domain not in ONNX_DOMAIN:
        return False
    try:
        first, second = (onnx.defs.get_schema(node.op_type, v, "").since_version for v in (one, other))
    except onnx.defs.SchemaError:
        return False
    return bool(first == second)


def _prepare(model: ir.Model, chosen: frozenset[Key]) -> None:
    """Bring functions and calls into the form that the library's pass takes.

    It gives a result the name of what the call gives, so none is an input, and each has a name. Of sizes a function
    says nothing: its symbols are not the model's.
    """
    taken = set(_names(model))
    for position, key in enumerate(sorted(chosen)):
        function, prefix = model.functions[key], f"{key[1]}/"
        if any(name.startswith(prefix) for name in taken):
            prefix = next(p for n in range(len(taken) + 1) if not _begins(p := f"{key[1]}.{position}.{n}/", taken))
        for i, result in enumerate(function.outputs):
            if any(result is value for value in function.inputs):
                node = ir.Node("", "Identity", [result], outputs=[ir.Value(name=f"{result.name}.{i}")])
                function.append(node)
                function.outputs[i] = node.outputs[0]
        for value in (v for node in function for v in node.outputs):
            value.type, value.shape = None, None
        for value in _defined(function):
            value.name = f"{prefix}{value.name}" if value.name else value.name
    for i, node in enumerate(n for n in all_nodes(model) if n.op_identifier() in chosen):
        for at, value in enumerate(node.outputs):
            if not value.name:
                value.name = f"{node.op_type}/call.{i}.{at}"


def _begins(prefix: str, names: set[str]) -> bool:
    return any(name.startswith(prefix) for name in names)


def _names(model: ir.Model) -> Iterator[str]:
    """The names of all values outside of functions."""
    for graph in (model.graph, *(g for node in nodes_within(model.graph) for g in subgraphs(node))):
        made = (v for node in graph for v in node.outputs)
        yield from (v.name for v in (*graph.inputs, *graph.initializers.values(), *made) if v.name)


def _defined(function: ir.Function) -> list[ir.Value]:
    """The values that nodes of a function compute, in subgraphs too, and those that its subgraphs are given."""
    own = [v for node in nodes_within(function) for v in node.outputs]
    inner = [g for node in nodes_within(function) for g in subgraphs(node)]
    return [*own, *(v for g in inner for v in (*g.inputs, *g.initializers.values()))]


def _forget_unused(model: ir.Model, chosen: frozenset[Key]) -> None:
    """Have no function that nothing calls, and import no domain of those inlined that has no node any more."""
    called = {n.op_identifier() for n in all_nodes(model)}
    for key in [key for key in model.functions if key not in called]:
        del model.functions[key]
    used = {n.domain for n in all_nodes(model)}
    for domain in {key[0] for key in chosen} - used:
        model.opset_imports.pop(domain, None)


def _is_unambiguous(graph: ir.Graph, outer: frozenset[str]) -> bool:
    """Whether no value has the name of another of its graph, or of one around it."""
    made = [v for node in graph for v in node.outputs]
    own = list({id(v): v.name for v in (*graph.inputs, *graph.initializers.values(), *made) if v.name}.values())
    names = outer.union(own)
    if len(names) < len(outer) + len(own):
        return False
    return all(_is_unambiguous(g, names) for node in graph for g in subgraphs(node))
