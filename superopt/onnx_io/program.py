"""A model as terms: one step for each of its nodes, and a variable for each of its values."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeGuard

import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.constants import Constants
from superopt.onnx_io.known_sizes import KnownSizes
from superopt.onnx_io.size_writer import Sources
from superopt.term import Term


@dataclass(frozen=True, eq=False)
class Step:
    """One node of a model, over the values of `Program.values`."""

    node: ir.Node
    inputs: tuple[str, ...]
    """The names of the values that it reads, with those that its subgraphs capture."""
    outputs: tuple[str, ...]
    """The names of its outputs that something reads, or of all where nothing reads any."""
    terms: tuple[Term, ...]
    """The term of each output; none where the node is opaque."""
    reason: str
    """Why the node is opaque; empty where it is not."""


@dataclass(frozen=True)
class Summary:
    """How much of a model is understood; constants are not counted, nodes that compute sizes are understood."""

    nodes: int
    understood: int
    opaque: dict[str, dict[str, int]]
    """For each ONNX operator that has opaque nodes, the reasons and how often each."""


@dataclass(frozen=True, eq=False)
class Program:
    """A model that was understood as far as the catalogue goes. Whoever has one does not change the model."""

    model: ir.Model
    steps: list[Step]
    """In topological order; nodes whose values are constants or sizes are not steps."""
    values: dict[str, Term]
    """The variable that stands for each value that is a tensor of known rank, and not empty."""
    inputs: tuple[str, ...]
    """The values to be given, without weights."""
    outputs: tuple[str, ...]
    constants: Constants = field(repr=False)
    sizes: KnownSizes = field(repr=False)
    """The values that are made of sizes; nodes that compute them are not steps."""
    loses_sizes: bool
    """Whether runtimes do not know most of the sizes that are symbolic: ONNX's inference loses them on the way."""
    size_sources: Sources = field(repr=False)
    """Where each symbol is read from when the model runs: an input or what an opaque node gives, so never a cycle."""
    otherwise: bool = False
    """Whether nodes of the model are others than its file has, or fewer, which are to be faster by themselves."""
    plain: ir.Model | None = field(default=None, repr=False)
    """The model before nodes were written otherwise, where some were."""
    ways: frozenset[str] = frozenset()
    """The names of the ways in which some were (`onnx_io/otherwise`)."""

    @property
    def made(self) -> dict[str, Term]:
        """The terms that steps compute values by, by the names of these; values of opaque nodes have none."""
        return {name: term for step in self.steps for name, term in zip(step.outputs, step.terms, strict=False)}

    def term(self, value: ir.Value | None) -> Term | None:
        """The variable that stands for a value, if there is one."""
        return None if value is None else self.values.get(value.name or "")

    def is_constant(self, value: ir.Value | None) -> TypeGuard[ir.Value]:
        """Whether a value is known before the model runs."""
        return value is not None and (value.name or "") in self.constants

    def data(self, name: str) -> Array:
        """The value of a constant; not to be changed. Raises `InvalidModel` where it cannot be computed."""
        return self.constants.data(name)

    def release_weights(self) -> None:
        """Let go of what was read from files, and of what was computed unless it is small, for its memory; it is read
        and computed again when needed.
        """
        self.constants.forget()
        for graph in self.model.graphs():
            for value in graph.initializers.values():
                _release(value)

    def release(self, name: str) -> None:
        """Let go of one weight."""
        value = self.model.graph.initializers.get(name)
        if value is not None:
            self.constants.forget(name)
            _release(value)

    @property
    def summary(self) -> Summary:
        """How many nodes are understood, and why the others are not."""
        opaque: dict[str, dict[str, int]] = {}
        for (op_type, reason), count in Counter((s.node.op_type, s.reason) for s in self.steps if s.reason).items():
            opaque.setdefault(op_type, {})[reason] = count
        of_sizes = len(self.sizes.nodes)
        return Summary(len(self.steps) + of_sizes, sum(not s.reason for s in self.steps) + of_sizes, opaque)


def _release(value: ir.Value) -> None:
    if isinstance(value.const_value, ir.ExternalTensor):
        with suppress(BufferError):  # an array of it is in use, and keeps the file
            value.const_value.release()
