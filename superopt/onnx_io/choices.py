"""Which branches of a model run, where one or two inputs of a single number or truth value decide; and how often its
loops turn, where they say that.

Exporters merge models into one file so: two decoders, of which one is for the first token and one for those after it,
or one network for each rate of sound.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.errors import InvalidModel
from superopt.onnx_io.constants import RANDOM, run_node
from superopt.onnx_io.program import Program
from superopt.onnx_io.skeleton import ONNX_DOMAIN

MOST_DECIDING = 2
"""Inputs that decide which branches run, at most: a model is compared and measured with each choice."""

MOST_NODES, MOST_TRIED = 32, 64
"""Nodes from the inputs to a condition, and ways to set the inputs that are tried, at most."""

_INTEGERS = ("int64", "int32")
BRANCHES = ("then_branch", "else_branch")
"""The attributes of an If: what runs where its condition holds, and where not."""

BODY = "body"
"""The attribute of a Loop or Scan: what runs in each turn, whatever decides."""

Deciding = Mapping[str, int]
"""What inputs are set to that decide which branches run, by name; a truth value is 0 or 1, as in Python."""

Choice = tuple[dict[str, int], frozenset["Branch"]]
"""What inputs are set to, and the branches that run then."""


@dataclass(frozen=True)
class Branch:
    """A branch of an If in the main graph, or the body of a Loop or Scan, which is the node at this position; `name` is
    that of the attribute.
    """

    position: int
    name: str

    @property
    def is_body(self) -> bool:
        """Whether it runs in each choice, and many times."""
        return self.name == BODY


@dataclass
class _Condition:
    """What a value is computed from: nodes in the order in which they run, inputs, and constants."""

    value: str
    nodes: dict[ir.Node, None] = field(default_factory=dict)
    inputs: set[str] = field(default_factory=set)
    constants: dict[str, Array] = field(default_factory=dict)

    def holds(self, program: Program, given: Deciding) -> bool:
        """Raises `InvalidModel` where it cannot be computed."""
        values = dict(self.constants)
        for name in self.inputs:
            kind = program.values[name].type
            values[name] = np.full((1,) * kind.rank, given[name], kind.dtype)
        for node in self.nodes:
            values |= run_node(node, {name: values[name] for name in _read(node)}, program.model)
        return bool(values[self.value].reshape(()))


def choices(program: Program, samples: Sequence[Mapping[str, Array]] = ()) -> list[Choice]:
    """Ways to set what decides: as each sample has it, and so that other branches run. Nothing where conditions are
    made of all else; what is no branch of these may run or not.
    """
    told = {i: _condition(program, n.inputs[0]) for i, n in enumerate(program.model.graph) if is_if(n)}
    conditions = {i: c for i, c in told.items() if c is not None and c.inputs}
    names = sorted(set().union(*(c.inputs for c in conditions.values())))
    if not 1 <= len(names) <= MOST_DECIDING:
        return []
    own = [{n: int(s[n].reshape(())) for n in names} for s in samples if all(n in s for n in names)]
    numbers = sorted({k for c in conditions.values() for k in _numbers(c)}, reverse=True)
    tried = itertools.product(*(_tried(program, n, numbers) for n in names))
    made: list[Choice] = []
    for given in (*own, *(dict(zip(names, values, strict=True)) for values in itertools.islice(tried, MOST_TRIED))):
        try:
            held = {i: c.holds(program, given) for i, c in conditions.items()}
        except InvalidModel:
            continue
        run = frozenset(Branch(i, BRANCHES[not is_so]) for i, is_so in held.items())
        is_new = given not in [g for g, _ in made] if given in own else run not in [r for _, r in made]
        made += [(given, run)] if is_new else []
    return made


def counting(program: Program) -> frozenset[str]:
    """The inputs of one number that a loop of the main graph takes as many turns as, or computes that of."""
    found = set[str]()
    for node in program.model.graph:
        if node.op_type == "Loop" and node.domain in ONNX_DOMAIN and node.inputs:
            count = _condition(program, node.inputs[0])
            found |= count.inputs if count else set()
    return frozenset(n for n in found if program.values[n].type.dtype in _INTEGERS)


def is_if(node: ir.Node) -> bool:
    """Whether a node is ONNX's If, with both of its branches."""
    return node.op_type == "If" and node.domain in ONNX_DOMAIN and all(name in node.attributes for name in BRANCHES)


def _condition(program: Program, value: ir.Value | None) -> _Condition | None:
    """How a condition is computed; None where more than constants and inputs of one element go into it."""
    if value is None or not value.name:
        return None
    found = _Condition(value.name)
    return found if _is_traced(program, value, found, MOST_NODES) else None


def _is_traced(program: Program, value: ir.Value, found: _Condition, deepest: int) -> bool:
    """Whether a value is made of what may decide, through so many nodes at the deepest; enters that."""
    name, node = value.name or "", value.producer()
    if name in program.constants:
        found.constants[name] = program.data(name)
        return True
    if node is None:
        found.inputs.add(name)
        return name in program.inputs and _may_decide(program, name)
    if node in found.nodes:
        return True
    plain = node.domain in ONNX_DOMAIN and node.op_type not in RANDOM
    if not plain or any(a.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) for a in node.attributes.values()):
        return False
    if not deepest or not all(
        _is_traced(program, v, found, deepest - 1) for v in node.inputs if v is not None and v.name
    ):
        return False
    found.nodes[node] = None
    return len(found.nodes) <= MOST_NODES


def _may_decide(program: Program, name: str) -> bool:
    kind = program.values.get(name)
    return kind is not None and kind.type.dtype in ("bool", *_INTEGERS) and all(d == 1 for d in kind.shape)


def _read(node: ir.Node) -> list[str]:
    return [v.name for v in node.inputs if v is not None and v.name]


def _numbers(condition: _Condition) -> Iterator[int]:
    """The integers that a condition may compare inputs with."""
    found = [data for data in condition.constants.values() if data.size == 1 and data.dtype.name in _INTEGERS]
    yield from (int(data.reshape(())) for data in found)
    yield 0  # what a Cast asks for


def _tried(program: Program, name: str, numbers: Sequence[int]) -> list[int]:
    """What an input may be set to so that other branches run: what it is compared with, more and less."""
    if program.values[name].type.dtype == "bool":
        return [True, False]
    limits = np.iinfo(program.values[name].type.dtype)
    tried = [*numbers, *(n + 1 for n in numbers), *(n - 1 for n in numbers)]
    return [n for n in dict.fromkeys(tried) if limits.min <= n <= limits.max]
