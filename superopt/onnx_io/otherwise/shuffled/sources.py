"""What makes channels: convolutions, what is computed of each channel behind them, and which channels they read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.onnx_io.asked_sizes import asks_sizes
from superopt.onnx_io.naming import name_of
from superopt.onnx_io.order import is_read_once
from superopt.onnx_io.otherwise.shuffled.moves import Laid, Numbers, laid, moved
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import shape_of
from superopt.onnx_io.said import input_of, is_a, number
from superopt.substitution import TYPICAL, elements

OF_EACH = (
    "AveragePool", "Clip", "Elu", "Gelu", "GlobalAveragePool", "GlobalMaxPool", "HardSigmoid", "HardSwish", "LeakyRelu",
    "MaxPool", "Mish", "Relu", "Selu", "Sigmoid", "Softplus", "Swish", "Tanh",
)  # fmt: skip
"""What computes each channel of its own, the same way."""

WEIGHTS = {"Conv": (1, 2), "BatchNormalization": (1, 2, 3, 4)}
"""The inputs that have something for each channel."""


class Source:
    """A node that makes channels, the nodes behind it that compute each of these by itself, and what it reads."""

    def __init__(self, place: int, first: int, many: int, reads: Numbers | None) -> None:
        self.places = [place]
        self.first, self.many = first, many
        """The number of its first channel, and how many it makes."""
        self.reads = reads
        """The numbers of the channels that it reads, in their order; None where nobody knows them."""
        self.is_dense, self.work, self.reading = False, 0.0, 0.0
        """Whether each of its channels is made of all that it reads; and the products for each of its channels, and for
        each that it reads.
        """

    @property
    def channels(self) -> Numbers:
        """The numbers of its channels."""
        return np.arange(self.first, self.first + self.many)


class Sources(NamedTuple):
    """All of a program, and the channels of all values that are made of theirs, and of those that others read."""

    each: list[Source]
    known: dict[str, Laid]
    moving: dict[int, list[Laid]]
    """How the results of nodes lie that only move channels, by the places of these."""
    outside: list[str]
    """Values that what is none of these reads, or whoever runs the model."""
    asked: dict[int, str]
    """Values of which a node asks the sizes alone, by its place."""


def sources_of(program: Program) -> Sources:
    """All that makes channels in a program, in the order of its nodes."""
    reader = _Reader(program)
    for place, node in enumerate(program.model.graph):
        reader.read(place, node)
    return reader.found


class _Reader:
    """Reads nodes one after the other."""

    def __init__(self, program: Program) -> None:
        self._program, self.found = program, Sources([], {}, {}, [], {})
        self._behind, self._gates, self._many = dict[str, Source](), set[ir.Value](), 0

    def read(self, place: int, node: ir.Node) -> None:
        """Read a node: it moves channels, makes some, or reads those of others, which have to be as they were then."""
        known = self.found.known
        if (results := moved(self._program, node, known)) is not None:
            self.found.moving[place] = results
            known.update({name_of(value): r for value, r in zip(node.outputs, results, strict=True)})
        elif (source := self._of_each(place, node) or self._of_all(place, node)) is not None:
            name = name_of(node.outputs[0])
            known[name] = laid(source.channels, shape_of(self._program, node.outputs[0]) or ())
            self._behind[name] = source
        elif asks_sizes(node) and (lies := known.get(name_of(node.inputs[0]))) is not None and lies.row is not None:
            self.found.asked[place] = name_of(node.inputs[0])
        else:
            names = [name_of(v) for v in node.inputs if v is not None]
            self.found.outside.extend(name for name in names if name in known)
        self.found.outside.extend(name_of(value) for value in node.outputs if _is_read_elsewhere(node, value))

    def _of_each(self, place: int, node: ir.Node) -> Source | None:
        """The source of which a node computes each channel, which is another where others read these, too."""
        x = input_of(node, 0)
        lies = None if x is None else self.found.known.get(name_of(x))
        is_gated = any(v in self._gates for v in node.inputs)
        if x is None or lies is None or not (is_gated or is_of_each(self._program, node)):
            return None
        source, reads = self._behind.get(name_of(x)), lies.row
        if source is not None and (is_gated or is_gate(x, node) or is_read_once(x)):
            source.places.append(place)
            self._gates.update(node.outputs if is_gate(x, node) else [])
        elif reads is not None and np.unique(reads).size == reads.size:
            source = self._made(place, reads.size, reads)
        else:
            return None
        source.work += _work(self._program, node)
        source.reading = source.reading if source.is_dense else source.work
        return source

    def _of_all(self, place: int, node: ir.Node) -> Source | None:
        """The source that a convolution of all channels is; None where it is another, or reads them otherwise."""
        lies = self.found.known.get(name_of(input_of(node, 0)))
        if not is_dense(self._program, node) or (lies is not None and lies.row is None):
            return None
        kernel = shape_of(self._program, node.inputs[1]) or ()
        source = self._made(place, elements(kernel[:1]), None if lies is None else lies.row)
        source.is_dense, source.work = True, _work(self._program, node)
        source.reading = source.work * source.many / max(elements(kernel[1:2]), 1)
        return source

    def _made(self, place: int, many: int, reads: Numbers | None) -> Source:
        source = Source(place, self._many, many, reads)
        self.found.each.append(source)
        self._many += many
        return source


def is_gate(x: ir.Value, node: ir.Node) -> bool:
    """Whether a function of a value is multiplied by that value, and nothing else reads either: as SiLU is written."""
    gate, nodes = node.outputs[0], [use.node for use in x.uses()]
    others = [other for other in nodes if other is not node]
    if len(nodes) != 2 or len(others) != 1 or _is_read_elsewhere(node, x) or not is_read_once(gate):
        return False
    return len(node.inputs) == 1 and is_a(others[0], "Mul") and set(others[0].inputs) == {x, gate}


def _is_read_elsewhere(node: ir.Node, value: ir.Value) -> bool:
    """Whether whoever runs the model reads a value, or what is in a subgraph."""
    return value.is_graph_output() or any(use.node.graph is not node.graph for use in value.uses())


def is_dense(program: Program, node: ir.Node) -> bool:
    """Whether a node is a convolution in 32-bit floating point of all channels that it reads, its weights constants."""
    is_one = is_a(node, "Conv") and number(node, "group", 1) == 1
    return is_one and _is_float(program, node) and _is_held(program, node.inputs[1:])


def is_of_each(program: Program, node: ir.Node) -> bool:
    """Whether a node computes each channel of its own: pools, functions, norms that are constant, convolutions too."""
    if not _is_float(program, node) or len(node.outputs) != 1:
        return False
    shape, given = shape_of(program, node.inputs[0]), shape_of(program, node.outputs[0])
    if shape is None or given is None or len(shape) < 3 or not isinstance(shape[1], int):
        return False
    if is_a(node, "BatchNormalization"):
        return not number(node, "training_mode", 0) and _is_held(program, node.inputs[1:])
    if is_a(node, "Conv"):
        kernel = shape_of(program, node.inputs[1])
        is_apart = (
            kernel is not None and (number(node, "group", 1), 1) == (shape[1], kernel[1]) and kernel[0] == shape[1]
        )
        return bool(is_apart) and _is_held(program, node.inputs[1:])
    return is_a(node, *OF_EACH) and (len(node.inputs) == 1 or _is_held(program, node.inputs[1:]))


def _is_held(program: Program, values: Sequence[ir.Value | None]) -> bool:
    return all(value is None or program.is_constant(value) for value in values)


def _is_float(program: Program, node: ir.Node) -> bool:
    known = program.term(input_of(node, 0))
    given = program.term(node.outputs[0]) if node.outputs else None
    return known is not None and given is not None and known.type.dtype == given.type.dtype == "float32"


def _work(program: Program, node: ir.Node) -> float:
    """How many products a node computes for each channel that it gives, at least one for each element."""
    given = shape_of(program, node.outputs[0]) or ()
    kernel = shape_of(program, node.inputs[1]) if is_a(node, "Conv") else None
    return float(elements((*given[:1], *given[2:]), TYPICAL) * elements((kernel or ())[1:]))
