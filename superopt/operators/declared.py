"""The base of all declared operators: what a declaration may say, and what is derived from it.

A declaration is a class with typed attributes (`attr`), a shape rule, an evaluation that works in every carrier, and
facts from which laws follow: `pointwise`, `linear`, `named_axes`. See `matmul.py` for an example.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Dim, Shape, Truth, at_most, product
from superopt.errors import ShapeError, SuperoptError
from superopt.operators.attributes import Field
from superopt.operators.nodes import Emitter, NotUnderstood, Source, present
from superopt.term import TRUTH, Operator, Term, Type, join_dtypes, make


class Declared(Operator):
    """Base of all declared operators."""

    onnx: ClassVar[str | None] = None
    """The ONNX operator that this is written as."""
    domain: ClassVar[str] = ""
    """The domain of that operator; empty for ONNX's own."""
    arity: ClassVar[int]
    fields: ClassVar[tuple[Field, ...]]
    _structural: ClassVar[tuple[str, ...]] = ()
    _sized: ClassVar[tuple[Field, ...]] = ()
    pointwise: ClassVar[bool] = False
    """Each element of the result depends on the same elements of the inputs only, which have equal shapes."""
    broadcasts: ClassVar[tuple[int, ...] | None] = None
    """The inputs of a point-wise operator that ONNX broadcasts by itself; None for all."""
    stacks: ClassVar[tuple[int, ...]] = ()
    """The inputs of another operator that are stacks of matrices, which ONNX repeats by itself."""
    commutative: ClassVar[bool] = False
    zero: ClassVar[bool] = False
    """Of zeros it is zero (so it moves through zero padding)."""
    linear: ClassVar[tuple[int, ...]] = ()
    """The inputs in each of which alone it is linear."""
    named_axes: ClassVar[str] = ""
    """Named axes, `inputs -> result`; windowed ones in brackets; one that only inputs have is contracted."""
    batched: ClassVar[bool] = False
    """Further axes may stand before the named ones, equal in all inputs."""
    undivided: ClassVar[Mapping[str, Mapping[str, int]]] = {}
    """Axes that may be cut or mixed only where attributes have given values."""
    element: ClassVar[str] = ""
    """Of a point-wise one, what an element `r` of the result is, of those of the inputs, `x`, `y` and `z`: SMT-LIB over
    the real numbers, where `f` is some function. Empty where that is not said."""
    defined: ClassVar[str] = "true"
    """Where there is such an element, likewise."""
    laws: ClassVar[str] = ""
    """Laws that do not follow from the facts above, as text."""
    needs: ClassVar[frozenset[str]] = frozenset()
    """What a carrier must have to express it, besides sums and products; see `Carrier.has`."""
    moves: ClassVar[bool] = False
    """Every element of the result is an element of an input, or 0."""
    jumps: ClassVar[bool] = False
    """A small change of an input, as by rounding, may change the result by much."""
    gives: ClassVar[frozenset[str]] = frozenset()
    """What is known of each element of the result, whatever the inputs; see `FACTS`. In floating point too."""
    keeps: ClassVar[frozenset[str]] = frozenset()
    """What is known of each element of the result where it is known of each element of every input."""
    any_type: ClassVar[bool] = False
    """Elements may be of types that nothing else computes with, integers and 16-bit floats; so they may in moves."""
    free: ClassVar[bool] = False
    """Counts as no operator in enumeration."""
    enumerated: ClassVar[bool] = True
    of_weights: ClassVar[bool] = False
    """Whether enumeration applies it to weights alone (what it makes of them is folded to data)."""

    def shape(self, *shapes: Shape) -> Shape:
        """The shape of the result. Raises `ShapeError` where the inputs do not fit."""
        raise NotImplementedError

    def eval(self, ring: Carrier, *arrays: Array) -> Array:
        """The value, in any carrier."""
        raise NotImplementedError

    def definition(self, *inputs: Term) -> Term | None:
        """The term of simpler operators that a composite operator stands for; None where it has none."""
        return None

    def definitions(self, *inputs: Term) -> tuple[Term, ...]:
        """The definition, and other terms by which the same could be defined."""
        meaning = self.definition(*inputs)
        return () if meaning is None else (meaning,)

    @classmethod
    def samples(cls, *shapes: Shape) -> Iterator[Declared]:
        """The instances that enumeration tries on inputs of these shapes: every combination of attribute samples."""
        values = [f.facts.sample or (f.default,) for f in cls.fields]
        for combination in itertools.product(*values):
            yield cls(*combination)

    def flops(self, result: Shape, *shapes: Shape) -> Dim:
        """Floating-point operations, as a size."""
        return product(result)

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """Read a node. Raises `NotUnderstood` where this declaration does not cover it."""
        read = [(f, f.facts.onnx) for f in cls.fields if f.facts.onnx is not None]
        given = {f.name: _tuple(node.attributes[onnx]) for f, onnx in read if onnx in node.attributes}
        rounded = [(f.name, onnx, f.default) for f, onnx in read if isinstance(f.default, float)]
        given |= {name: node.attributes.get(onnx, default) for name, onnx, default in rounded if name not in given}
        return make(cls(**given), present(node.inputs, cls.arity))

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """Write the node(s) of this operator over named inputs; gives the name of the result."""
        if self.onnx is None:
            raise NotUnderstood(f"{self}: this operator has no form in ONNX")
        given = {f.facts.onnx: getattr(self, f.name) for f in self.fields if f.facts.onnx}
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in given.items()}
        return out.node(self.onnx, inputs, plain, self.domain)

    def type_of(self, inputs: tuple[Type, ...]) -> Type:
        """Element types joined, shape by the shape rule."""
        if len(inputs) != self.arity:
            raise SuperoptError(f"{self.name}: takes {self.arity} inputs, got {len(inputs)}")
        require(getattr(self, "axis", 0) >= 0, f"{self.name}: the axis {getattr(self, 'axis', 0)} is negative")
        for truth in self.legal():
            if truth is not True:
                require(truth, f"{self.name}: the attributes {self.sizes()} are smaller than they may be")
        return Type(self.dtype(inputs), self.shape(*(i.shape for i in inputs)))

    def dtype(self, inputs: Sequence[Type]) -> str:
        """The element type of the result, which is none of truth values unless they are moved.

        Raises `ShapeError` where those of the inputs do not fit.
        """
        joined = join_dtypes(inputs, self.name)
        if joined == TRUTH and not self.moves:
            raise ShapeError(f"{self.name}: numbers are expected, not truth values")
        return joined

    def __call__(self, *inputs: Term) -> Term:
        """The term of this operator over inputs."""
        return make(self, inputs)

    def structure(self) -> tuple[Any, ...]:
        """The attributes that are not sizes."""
        return tuple([getattr(self, name) for name in self._structural])

    def sizes(self) -> tuple[Dim, ...]:
        """The size attributes, flattened in order."""
        if not self._sized:  # as of most
            return ()
        flat: list[Dim] = []
        for f in self._sized:
            value = getattr(self, f.name)
            flat.extend(value if isinstance(value, tuple) else (value,))
        return tuple(flat)

    def default_sizes(self) -> tuple[Dim | None, ...]:
        """The defaults of the size attributes, flattened in order; None for those without."""
        flat: list[Dim | None] = []
        for f in self._sized:
            value = getattr(self, f.name)
            count = len(value) if isinstance(value, tuple) else 1
            default = f.default if isinstance(f.default, tuple) else (f.default,) * count
            flat.extend(None if d is dataclasses.MISSING else d for d in default)
        return tuple(flat)

    def with_sizes(self, sizes: Sequence[Dim]) -> Declared:
        """The same operator with other sizes, in the order of `sizes`."""
        rest, given = list(sizes), {}
        for f in self._sized:
            value = getattr(self, f.name)
            count = len(value) if isinstance(value, tuple) else 1
            given[f.name] = tuple(rest[:count]) if isinstance(value, tuple) else rest[0]
            del rest[:count]
        return dataclasses.replace(self, **given)  # type: ignore[type-var]

    def legal(self) -> list[Truth]:
        """What must hold of the sizes themselves: each at least its declared least."""
        least: list[Truth] = []
        for f in self._sized:
            value = getattr(self, f.name)
            least.extend(at_most(f.facts.least, v) for v in (value if isinstance(value, tuple) else (value,)))
        return least

    def __str__(self) -> str:
        shown = [f"({' '.join(map(str, v))})" if isinstance(v, tuple) else str(v) for v in self._values()]
        return " ".join([self.name, *shown])

    def _values(self) -> list[Any]:
        return [getattr(self, f.name) for f in self.fields]


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else value
