"""How each operator is read from an ONNX node and written as one, in the source of an onnxscript rewrite.

`reading` gives the call of the generated module that reads a node's attributes, and what it must give; `writing` gives
the arguments of a new node, with the lists of integers that the check computes for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass
from typing import Any, TypeAlias

from superopt.dim import Dim
from superopt.operators.declared import Declared
from superopt.operators.layout import Concat, Reshape, Transpose
from superopt.operators.padding import Pad
from superopt.operators.picks import Slice
from superopt.rules.exchange.onnxscript_places import NotInOnnxscript
from superopt.term import Term

Value: TypeAlias = "Dim | float | str | tuple[Dim, ...]"
SizeText: TypeAlias = "Callable[[Dim], str]"
"""A size as Python source."""

OLDEST = {
    "abs": 6,
    "add": 7,
    "avgpool": 7,
    "concat": 4,
    "conv": 1,
    "div": 7,
    "elu": 6,
    "erf": 9,
    "exp": 6,
    "global_avgpool": 1,
    "leaky_relu": 6,
    "log": 6,
    "log_softmax": 13,
    "matmul": 1,
    "max": 8,
    "maxpool": 8,
    "min": 8,
    "mul": 7,
    "neg": 6,
    "pad": 11,
    "relu": 6,
    "reshape": 5,
    "sigmoid": 6,
    "slice": 10,
    "softmax": 13,
    "sqrt": 6,
    "sub": 7,
    "tanh": 6,
    "transpose": 1,
}
"""The operators that are one node in ONNX, with the version from which on it means what it means here."""

LISTS = (Slice, Reshape, Pad)
"""Operators whose attributes are inputs of the node."""


@dataclass(frozen=True)
class Reading:
    """The call that reads a node, what it gives (each a size, a list of sizes, or a fixed value), and what it needs."""

    call: str
    gives: tuple[Value, ...] = ()
    needs: tuple[Dim, ...] = ()


def demand_node(term: Term) -> Declared:
    """The operator of a term that is one node. Raises `NotInOnnxscript` for any other."""
    op = term.operator
    assert isinstance(op, Declared)
    if op.name not in OLDEST or op.onnx is None:
        raise NotInOnnxscript(f"{op.name} is not one ONNX node with these inputs, or not known here to be")
    return op


def reading(term: Term, name: str, text: SizeText) -> Reading:
    """How the attributes of a matched node, whose output has a name, are read."""
    op = demand_node(term)
    x = term.inputs[0].shape
    if isinstance(op, Slice):
        size = x[op.axis]
        return Reading(f"sliced({name}, {op.axis}, {len(x)}, {text(size)})", (op.start, op.stop), (size,))
    if isinstance(op, Reshape):
        return Reading(f"reshaped({', '.join([name, str(len(op.to)), *map(text, x)])})", op.to, x)
    if isinstance(op, Pad):
        return Reading(f"padded({name}, {len(x)})", op.pads)
    if op.name in ("concat", "softmax", "log_softmax"):
        usual = "" if isinstance(op, Concat) else ", -1"
        return Reading(f"along({name}, {getattr(op, 'axis')}, {len(x)}{usual})")  # noqa: B009 - of several classes
    fields = [f for f in op.fields if f.facts.onnx is not None]
    defaults = "".join(f", {f.facts.onnx}={_default(op, f.name, f.default)}" for f in fields)
    return Reading(f"attributes({name}{defaults})", tuple(getattr(op, f.name) for f in fields))


def _default(op: Declared, name: str, default: Any) -> str:
    value = getattr(op, name)
    if isinstance(op, Transpose):
        return repr(tuple(range(len(value)))[::-1])
    if default is MISSING:
        return repr((None,) * len(value)) if isinstance(value, tuple) else "None"
    return repr(default[:1] * len(value)) if isinstance(value, tuple) else repr(default)


def writing(term: Term, inputs: Sequence[str], text: SizeText, keep: Callable[[str, str], str]) -> str:
    """The call that makes the node of a term; `keep(name, source)` has the check compute a list and names it."""
    op = demand_node(term)

    def listed(name: str, sizes: Sequence[Dim], how: str = "integers") -> str:
        if all(isinstance(d, int) for d in sizes):
            return repr(list(sizes))
        return keep(name, f"{how}({', '.join(map(text, sizes))})")

    if isinstance(op, Slice):
        bounds = [listed("start", (op.start,)), listed("stop", (op.stop,)), f"[{op.axis}]"]
        return f"op.Slice({', '.join([*inputs, *(f'listed(op, {b})' for b in bounds)])})"
    if isinstance(op, Reshape | Pad):
        sizes = listed("to", op.to, "wildcard") if isinstance(op, Reshape) else listed("pads", op.pads)
        return f"op.{op.onnx}({', '.join([*inputs, f'listed(op, {sizes})'])})"
    given = [*inputs]
    for f in op.fields:
        onnx, value = f.facts.onnx or f.name, getattr(op, f.name)
        if not f.facts.size:
            given += [f"{onnx}={list(value) if isinstance(value, tuple) else value!r}"] if value != f.default else []
        elif not isinstance(value, tuple):
            source = listed(onnx, (value,))
            given.append(f"{onnx}={value if isinstance(value, int) else source + '[0]'}")
        elif onnx == "dilations" and op.name in ("maxpool", "avgpool"):
            given.append(f"**unless(1, dilations={listed(onnx, value)})")
        else:
            given.append(f"{onnx}={listed(onnx, value)}")
    return f"op.{op.onnx}({', '.join(given)})"
