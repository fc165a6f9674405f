"""Growing all terms up to a number of operators, one representative a value; equal values are candidate equations.

Terms are grown level by level. A term is kept where its value is new in every exact carrier; where it equals the value
of a term that was there before, the two are a candidate, and only the earlier one is built upon (TASO, SOSP 2019;
Ruler, OOPSLA 2021). Operators under a term count once however often they are used; `expand` and what is applied to
weights alone (one operator deep) do not count, since the one vanishes and the other is folded to data.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from superopt.arithmetic import EXACT, Array
from superopt.enumerate.family import Family
from superopt.errors import ShapeError, SuperoptError
from superopt.evaluate import sample
from superopt.operators.declare import Declared
from superopt.operators.layout import Expand
from superopt.term import Term, make, subterms

Progress = Callable[[str, int, int], None]
"""Told a stage's name, how much of it is done and how much there is."""


@dataclass
class Grown:
    """All terms found, by level; candidate equations; and counts."""

    levels: list[list[Term]]
    candidates: list[tuple[Term, Term]] = field(default_factory=list)
    evaluated: int = 0


class Values:
    """The values of terms in all exact carriers, and who had each value first."""

    def __init__(self, variables: tuple[Term, ...], seed: int) -> None:
        self._values: list[dict[Term, Array]] = [sample(variables, ring, seed) for ring in EXACT]
        self._first: list[dict[bytes, Term]] = [{} for _ in EXACT]

    def add(self, term: Term) -> Term | None:
        """Evaluate a term whose inputs were added; the term of equal value that was there before, if any."""
        known: Term | None = None
        for ring, values, first in zip(EXACT, self._values, self._first, strict=True):
            if term not in values:
                values[term] = term.operator.eval(ring, *(self._input(ring, values, i) for i in term.inputs))
            earlier = first.setdefault(fingerprint(values[term]), term)
            if earlier is not term and known is None:
                known = earlier
        return known

    def forget(self, term: Term) -> None:
        """Drop the values of a term that nothing will be built upon."""
        for values in self._values:
            values.pop(term, None)

    def _input(self, ring: object, values: dict[Term, Array], term: Term) -> Array:
        if isinstance(term.operator, Expand) and term not in values:
            return term.operator.eval(ring, values[term.inputs[0]])  # type: ignore[arg-type]
        return values[term]


def fingerprint(value: Array) -> bytes:
    """128 bits of a digest of an array's shape and elements."""
    digest = hashlib.blake2b(str(value.shape).encode(), digest_size=16)
    digest.update(value.astype("<i8").tobytes())
    return digest.digest()


def grow(family: Family, max_ops: int, seed: int, progress: Progress | None = None) -> Grown:
    """All terms of up to `max_ops` operators over the family's variables. The result depends on the seed alone."""
    values = Values(family.variables, seed)
    for v in family.variables:
        values.add(v)
    grown = Grown([[*family.variables, *_weights(family, values)]])
    for level in range(1, max_ops + 1):
        fresh: list[Term] = []
        plans = list(_applications(family, grown.levels, level))
        for i, (cls, inputs) in enumerate(plans):
            if progress and i % 256 == 0:
                progress(f"terms of {level} operators", i, len(plans))
            for term in _made(cls, inputs):
                grown.evaluated += 1
                known = values.add(term)
                if known is None:
                    fresh.append(term)
                elif not (known.constant and term.constant):  # between weights alone there is nothing to gain
                    grown.candidates.append((known, term))
                if known is not None or level == max_ops:
                    values.forget(term)
        grown.levels.append(fresh)
    return grown


def _weights(family: Family, values: Values) -> list[Term]:
    """Sums and products of two different weights of one shape, and matrix products: what constants are merged into."""
    weights = [v for v in family.variables if v.constant]
    found: list[Term] = []
    for cls in family.operators:
        for x, y in itertools.permutations(weights, 2) if cls.of_weights and cls.arity == 2 else ():
            merges = (x.shape == y.shape and cls.commutative) or cls.named_axes
            if merges:
                found += [t for t in _made(cls, (x, y)) if values.add(t) is None]
    return found


def _applications(
    family: Family, levels: list[list[Term]], level: int
) -> Iterator[tuple[type[Declared], tuple[Term, ...]]]:
    """Operators with inputs under which, together, stand `level - 1` operators."""
    below = [t for terms in levels for t in terms]
    for cls in family.operators:
        if cls.pointwise and cls.arity == 2:
            pairs: Iterator[tuple[Term, ...]] = _pointwise_pairs(cls, below, [t for t in levels[0] if t.type.rank < 2])
        else:
            pairs = _tuples(cls, below)
        for inputs in pairs:
            weights = inputs[0].constant if cls.named_axes and not cls.of_weights else all(i.constant for i in inputs)
            if not weights and _operators(*inputs) == level - 1:
                yield cls, inputs


def _tuples(cls: type[Declared], below: list[Term]) -> Iterator[tuple[Term, ...]]:
    """Inputs of the ranks that the operator's named axes ask for, else all of one rank."""
    by_rank: dict[int, list[Term]] = {}
    for t in below:
        by_rank.setdefault(t.type.rank, []).append(t)
    if cls.named_axes:
        ranks = [len(part.split()) for part in cls.named_axes.split("->")[0].split(",")]
        yield from itertools.product(*(by_rank.get(r, []) for r in ranks))
    else:
        for terms in by_rank.values():
            yield from itertools.product(terms, repeat=cls.arity)


def _pointwise_pairs(cls: type[Declared], below: list[Term], small: list[Term]) -> Iterator[tuple[Term, ...]]:
    """Two terms of one shape, or one and a smaller one repeated to its shape."""
    by_shape: dict[object, list[Term]] = {}
    for t in below:
        by_shape.setdefault(t.shape, []).append(t)
    for shape, terms in by_shape.items():
        for i, a in enumerate(terms):
            yield from ((a, b) for j, b in enumerate(terms) if not cls.commutative or i <= j)
            for v in small:
                for spread in _spreads(v, shape):  # type: ignore[arg-type]
                    yield (a, spread)
                    if not cls.commutative:
                        yield (spread, a)


def _spreads(v: Term, shape: tuple[int, ...]) -> Iterator[Term]:
    if v.type.rank == 0 and shape:
        yield make(Expand((), shape), (v,))
    elif v.type.rank == 1 and len(shape) > 1:
        for axis, d in enumerate(shape[:2]):
            if d == v.shape[0]:
                yield make(Expand((axis,), shape), (v,))


def _made(cls: type[Declared], inputs: tuple[Term, ...]) -> Iterator[Term]:
    for op in cls.samples(*(i.shape for i in inputs)):
        try:
            yield make(op, inputs)
        except (ShapeError, SuperoptError):
            continue


def _operators(*terms: Term) -> int:
    """How many operators stand under terms: shared ones once, free ones and those over weights alone not."""
    return sum(isinstance(t.operator, Declared) and not t.operator.free and not t.constant for t in subterms(*terms))
