"""Nodes of a model, as declarations read and write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from superopt.arithmetic.carrier import Array
from superopt.dim import Dim, Shape
from superopt.errors import SuperoptError
from superopt.term import Term

ML_DOMAIN = "ai.onnx.ml"
"""ONNX's other domain, of classical models, whose operators runtimes have as well."""


class NotUnderstood(SuperoptError):
    """A node that a declaration does not cover: it is carried through as it is, for this reason."""


class Source(Protocol):
    """A node of a model as a declaration reads it; inputs are terms, absent optional inputs are None."""

    op_type: str
    opset: int
    attributes: Mapping[str, Any]
    """A node with one that the declaration does not look at is not understood: ONNX may add some."""
    inputs: Sequence[Term | None]
    outputs: int

    def constant(self, index: int) -> Array | None:
        """The value of an input, where it is known before the model runs."""

    def sizes(self, index: int) -> Shape | None:
        """The elements of an input of integers, where each is known as a number or as a size."""

    def ends_within(self, axis: int) -> bool:
        """Whether a slice from the start of an axis ends within it whenever the model runs, though no size tells."""

    def has_to_be(self, shape: Shape) -> Shape:
        """A shape of what it gives, with the sizes that it has whenever the model runs, though its own do not tell."""

    def weight(self, attribute: str, shape: Sequence[int], *, repeated: bool = False) -> Term:
        """The numbers of an attribute as a constant of a shape, as if it were an input; `repeated`: or one for all.

        Raises `NotUnderstood` where they do not fill it.
        """


class Emitter(Protocol):
    """Where a declaration writes nodes to. Values are handled by name."""

    opset: int
    dtype: str
    """The element type of what is written, for what reads nothing that has it."""

    def node(
        self, op_type: str, inputs: Sequence[str], attributes: Mapping[str, Any] | None = None, domain: str = ""
    ) -> str:
        """Add a node with one output and give that output's name. An empty name leaves an optional input out."""

    def integers(self, values: Sequence[Dim]) -> str:
        """The name of a vector of int64: a constant, or computed from sizes where some are symbolic."""

    def shape(self, name: str) -> Shape:
        """The shape of an input."""

    def constant(self, name: str) -> Array | None:
        """The value of an input that is data; None where it is computed while the model runs."""


def present(inputs: Sequence[Term | None], count: int) -> tuple[Term, ...]:
    """The first `count` inputs. Raises `NotUnderstood` where one is absent or more are given."""
    given = tuple(i for i in inputs if i is not None)
    if len(given) != count or len(inputs) < count:
        raise NotUnderstood(f"expects {count} inputs, the node has {len(given)}")
    return given


def pass_over(node: Source, *attributes: str) -> None:
    """Say that attributes mean nothing where a node is understood; one that nobody looks at makes it opaque."""
    for name in attributes:
        node.attributes.get(name)


def concrete(shape: Shape, what: str) -> tuple[int, ...]:
    """The sizes as integers. Raises `NotUnderstood` where one is symbolic."""
    if not all(isinstance(d, int) for d in shape):
        raise NotUnderstood(f"{what} needs concrete sizes, has {shape}")
    return tuple(d for d in shape if isinstance(d, int))
