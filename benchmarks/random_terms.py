"""Random well-formed terms over the whole catalogue, at small sizes, with values and what rounding makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.random_operators import BUILD
from benchmarks.random_values import COPIES, FLOATS, LARGEST_RANK, NUMBERS, TRUTH, Values, ints
from superopt.arithmetic.carrier import Array
from superopt.arithmetic.floats import FLOAT
from superopt.dim import product
from superopt.errors import ShapeError
from superopt.operators import CATALOGUE, Declared
from superopt.operators.reductions import Reduction
from superopt.term import Graph, Term, make, subterms

UNDRAWN = ("argmax", "lookups")
"""Of elements that are equal but for rounding, any may be the largest; and what lookups compute of indices, with
integers, is not read again as terms.
"""

NAMES = tuple(name for name, cls in CATALOGUE.items() if not cls.domain and name not in UNDRAWN)
"""ONNX's own: other domains want weights."""
_LARGEST_SIZE, _MOST_ELEMENTS, _LARGEST_VALUE = 10, 1500, 200.0
_EXACT = (
    *("relu", "neg", "abs", "max", "min", "less", "less_or_equal", "equal", "is_nan", "not", "and", "or"),
    *("where", "floor", "ceil", "round", "sign", "clip", "maxpool", "largest", "smallest"),
)
"""What does not round, besides what only moves."""
_POSITIVE = {"log": (0,), "sqrt": (0,), "reciprocal": (0,), "pow": (0,), "div": (1,), "log_sum": (0,)}
"""Which inputs have to stay away from zero."""
_TRUTHS, _ALSO_OF_TRUTHS = ("not", "and", "or"), ("cast", "where", "equal")
_CANCELLING = ("layernorm", "rmsnorm", "groupnorm", "instancenorm")
"""What is computed in 32 bits, whatever the element type (`stash_type`), and from the difference of two means."""
_OF_32_BITS = ("celu",)
"""What ONNX defines for 32-bit floats only."""
_ATTRIBUTES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("alpha", "gamma", "bias", "scale"), NUMBERS),
    "beta": (0.25, 0.5, 0.75, 1.0),
    "epsilon": (2.0**-7, 2.0**-10, 1e-5),
    **dict.fromkeys(("by_tanh", "trans_a", "trans_b", "whole"), (0, 1)),
    "to": FLOATS,
    "value": (-1.0, 0.0, *NUMBERS),
}


@dataclass(frozen=True)
class Sample:
    """A graph, the data of its inputs, and for each output its value in 64 bits and by how much rounding moves it."""

    graph: Graph
    feed: dict[Term, Array]
    values: tuple[Array, ...]
    noise: tuple[Array, ...]

    @property
    def operators(self) -> set[str]:
        """The names of the operators that occur."""
        return {t.operator.name for t in subterms(*self.graph.outputs)} & set(NAMES)


def random_graph(seed: int) -> Sample:
    """The graph of a seed: 1 to 12 operators, besides the expands and the like that make their inputs fit."""
    with np.errstate(all="ignore"):
        return _Drawing(seed).sample()


class _Drawing(Values):
    """One graph while it is drawn."""

    def sample(self) -> Sample:
        """Draw operators until there are enough, then outputs: all that nothing reads, and some that are read."""
        wanted = int(self.rng.integers(1, 13))
        for _ in range(40 * wanted):
            if len(self.made) < wanted:
                self._try(NAMES[self.rng.integers(len(NAMES))])
        read = {i for t in subterms(*self.made) for i in t.inputs}
        inner = [t for t in (*self.made, *self.leaves) if t in read and self.rng.random() < 0.05]
        outputs = tuple(dict.fromkeys([*(t for t in self.made if t not in read), *inner]))
        values = tuple(self.copies[t][0] for t in outputs)
        noise = tuple(np.max([abs(c - self.copies[t][0]) for c in self.copies[t][1:]], axis=0) for t in outputs)
        return Sample(Graph(tuple(self.leaves), outputs), self.feed, values, noise)

    def _try(self, name: str) -> None:
        """Draw one operator; it is dropped again with its variables where it does not fit, or is not tame."""
        before = len(self.leaves)
        try:
            term = self._drawn(name)
            if term not in self.made and not term.is_variable and self._admitted(term):
                self.made.append(term)
                return
        except ShapeError:
            pass
        for leaf in self.leaves[before:]:
            self.feed.pop(leaf, None)
            self.copies.pop(leaf, None)
        del self.leaves[before:]

    def _admitted(self, root: Term) -> bool:
        """Compute what is new under a term; whether that is small in every sense."""
        new: dict[Term, list[Array]] = {}
        for term in subterms(root, known=self.copies):
            new[term] = self._evaluated(term, [new[i] if i in new else self.copies[i] for i in term.inputs])
            shape = ints(term.shape)
            if len(shape) > LARGEST_RANK or max(shape, default=1) > _LARGEST_SIZE or product(shape) > _MOST_ELEMENTS:
                return False
            if not self.wild and not (abs(new[term][0]) <= _LARGEST_VALUE).all():
                return False
        self.copies.update(new)
        return True

    def _evaluated(self, term: Term, inputs: list[list[Array]]) -> list[Array]:
        """The value, and noisy ones."""
        op = term.operator
        assert isinstance(op, Declared)
        unit = 2.0**-18 if op.name in _CANCELLING else 2.0**-50 if term.type.dtype == "float64" else 2.0**-22
        exact = op.moves or op.name in _EXACT or not inputs
        found = [np.asarray(op.eval(FLOAT, *(i[0] for i in inputs)))]
        for copy in range(1, COPIES + 1):
            given = [i[copy] if exact else self._disturbed(i[copy], unit) for i in inputs]
            value = np.asarray(op.eval(FLOAT, *given))
            if op.name == "equal" and copy == 1:  # what is nearly equal may be equal once it is rounded
                value = np.isclose(given[0], given[1], rtol=2.0**-18, atol=0.0).astype(np.float64)
            side = {1: 1.0, 2: -1.0}.get(copy)
            if op.linear and not exact and side is not None:  # what cancels is off by what it is made of
                value = value + side * unit * max(abs(g).max(initial=0.0) for g in given)
            found.append(value if exact else self._disturbed(value, unit, side))
        return found

    def _disturbed(self, array: Array, unit: float, side: float | None = None) -> Array:
        """What rounding may make of numbers, or on one side of them: 2⁻²² is some roundings in 32 bits."""
        drawn = self.rng.standard_normal(array.shape)
        return np.asarray(array * (1 + unit * (drawn if side is None else side * (1 + abs(drawn)))))

    def _drawn(self, name: str) -> Term:
        """A term of an operator. Raises `ShapeError` where what was drawn does not fit."""
        cls = CATALOGUE[name]
        if cls.pointwise:
            inputs, given = self._elements(cls), {}
        elif issubclass(cls, Reduction):
            x = self.any(1)
            count = self.integer(1, x.type.rank)
            axes = self.rng.choice(x.type.rank, count, replace=False)
            inputs, given = (x,), {"axes": tuple(sorted(map(int, axes)))}
        else:
            inputs, given = BUILD[name](self)
        inputs = tuple(self.positive(t) if i in _POSITIVE.get(name, ()) else t for i, t in enumerate(inputs))
        for f in cls.fields:
            if f.name not in given and f.name in _ATTRIBUTES:
                given[f.name] = self.rng.choice(_ATTRIBUTES[f.name]).item()
        return make(cls(**given), inputs)

    def _elements(self, cls: type[Declared]) -> tuple[Term, ...]:
        dtype = self.floating()
        if cls.name in _TRUTHS or (cls.name in _ALSO_OF_TRUTHS and self.rng.random() < 0.2):
            dtype = TRUTH
        x = self.any(dtype="float32" if cls.name in _OF_32_BITS else dtype)
        others = tuple(self.like(x.shape, dtype) for _ in range(min(cls.arity, 2) - 1))
        inputs = (x, *others)
        if cls.name == "where":
            return (self.like(x.shape, TRUTH), *inputs)
        return inputs[::-1] if self.rng.random() < 0.5 else inputs
