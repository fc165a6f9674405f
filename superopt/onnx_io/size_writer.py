"""Sizes as ONNX nodes: read from the shapes of values that have them, and computed from those.

Of a window that is larger than its image onnxruntime gives one result, or a refusal, where sizes computed by ONNX's
formula are 0: it divides towards zero. So what counts windows is read from a value that has that size, where there is
one, as the model that was given did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import groupby

from superopt.bounds import nonnegative
from superopt.dim import Atom, Dim, Expr, Floor, Shape, Symbol
from superopt.operators import Emitter, NotUnderstood
from superopt.polynomial import Terms

Sources = Mapping[str, tuple[str, int]]
"""For each symbol a value, and the axis along which it has that size."""


class SizeWriter:
    """Writes vectors of int64 whose elements are symbolic; each size once."""

    def __init__(self, out: Emitter, sources: Sources) -> None:
        self._out = out
        self._sources = sources
        self._places: dict[Terms[Atom], tuple[str, int]] = {}
        self._made: dict[tuple[str, ...], str] = {}

    def learn(self, value: str, shape: Shape) -> None:
        """Read sizes with quotients in them that may be 0 from a value that has them, where none was known before.

        What is at least 1 is computed: where a shape is read, the runtime lays the value out as it was given.
        """
        for axis, dim in enumerate(shape):
            if isinstance(dim, Expr) and _has_quotient(dim) and not nonnegative(dim - 1, least=1):
                self._places.setdefault(dim.terms, (value, axis))

    def vector(self, dims: Sequence[Dim]) -> str:
        """The name of a vector of these sizes. Raises `NotUnderstood` for a symbol that no value tells."""
        runs = [(plain, list(run)) for plain, run in groupby(dims, lambda d: isinstance(d, int))]
        parts = [
            name
            for plain, run in runs
            for name in ([self._out.integers(run)] if plain else [self._size(d) for d in run])
        ]
        return parts[0] if len(parts) == 1 else self._node("Concat", *parts)

    def _size(self, dim: Dim) -> str:
        """A vector of one size."""
        if not isinstance(dim, Expr):
            return self._out.integers([dim])
        if dim.terms in self._places:
            return self._read(*self._places[dim.terms])
        sums = []
        for monomial, coefficient in dim.terms:
            factors = [self._symbol(a) if isinstance(a, Symbol) else self._floor(a) for a in monomial]
            if coefficient != 1 or not factors:
                factors.append(self._out.integers([coefficient]))
            sums.append(reduce(lambda a, b: self._node("Mul", a, b), factors))
        return reduce(lambda a, b: self._node("Add", a, b), sums)

    def _symbol(self, symbol: Symbol) -> str:
        if symbol.name not in self._sources:
            raise NotUnderstood(f"no value has the size {symbol}")
        return self._read(*self._sources[symbol.name])

    def _read(self, value: str, axis: int) -> str:
        return self._node("Gather", self._node("Shape", value), self._out.integers([axis]))

    def _floor(self, atom: Floor) -> str:
        """ONNX divides towards zero, but its remainder has the sign of the divisor: needed where that may be less."""
        if (alone := (((atom,), 1),)) in self._places:
            return self._read(*self._places[alone])
        top, bottom = self._size(atom.numerator), self._size(atom.denominator)
        if nonnegative(atom.numerator, least=0) and isinstance(atom.denominator, int):
            return self._node("Div", top, bottom)
        return self._node("Div", self._node("Sub", top, self._node("Mod", top, bottom)), bottom)

    def _node(self, op_type: str, *inputs: str) -> str:
        key = (op_type, *inputs)
        if key not in self._made:
            self._made[key] = self._out.node(op_type, inputs, {"axis": 0} if op_type in ("Concat", "Gather") else None)
        return self._made[key]


def _has_quotient(dim: Expr) -> bool:
    return any(isinstance(atom, Floor) for monomial, _ in dim.terms for atom in monomial)
