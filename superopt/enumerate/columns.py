"""Operators on columns: many values of one shape at once, an array of (elements of the shape, values).

How an operator works on columns follows from what its declaration states. Where it is point-wise, its own evaluation
does; where it only moves elements, a table of which goes where; where it is linear in each input, the sum of products
that evaluating it on unit vectors shows. For the rest, values go one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.arithmetic.field import FIELD, PRIME, Field
from superopt.arithmetic.order import ORDER
from superopt.operators.declared import Declared
from superopt.operators.symbolic import resize
from superopt.term import Term, subterms

OnColumns = Callable[[Sequence[Array]], Array]


@dataclass(frozen=True)
class Evaluation:
    """A term over holes, ready to be evaluated on columns; `width` is how many numbers a value needs on the way."""

    steps: tuple[tuple[Term, OnColumns], ...]
    root: Term
    holes: tuple[Term, ...]
    width: int

    def __call__(self, *columns: Array) -> Array:
        """The columns of the term's values, of those of its holes."""
        done: dict[Term, Array] = dict(zip(self.holes, columns, strict=True))
        for term, step in self.steps:
            done[term] = step([done[i] for i in term.inputs])
        count = columns[0].shape[1] if columns else 1
        return np.broadcast_to(done[self.root], (done[self.root].shape[0], count))


def evaluation(term: Term, labels: Sequence[str], sizes: Mapping[str, int], ring: Carrier) -> Evaluation:
    """How to evaluate a term, over variables of these labels, at sizes in a carrier."""
    (sized,) = resize((term,), sizes)
    leaves = {t.label: t for t in subterms(sized) if t.is_variable}
    steps, width = [], numel(sized)
    for t in subterms(sized):
        if not t.is_variable:
            step, needed = _on_columns(t, ring)
            steps.append((t, step))
            width = max(width, needed)
    return Evaluation(tuple(steps), sized, tuple(leaves[label] for label in labels), width)


def numel(term: Term) -> int:
    """The number of elements of a term of sizes that are numbers."""
    return prod(sizes_of(term))


def sizes_of(term: Term) -> tuple[int, ...]:
    """The shape of a term of sizes that are numbers."""
    return tuple(d for d in term.shape if isinstance(d, int))


def _on_columns(term: Term, ring: Carrier) -> tuple[OnColumns, int]:
    op = term.operator
    assert isinstance(op, Declared)
    if not term.inputs:
        value = op.eval(ring).reshape(-1, 1)
        return lambda _: value, value.size
    if op.moves:
        return _moved(op, term), numel(term)
    if op.pointwise:
        return lambda inputs: op.eval(ring, *np.broadcast_arrays(*inputs)), numel(term)
    if set(op.linear) == set(range(op.arity)) and op.arity <= 2 and op.needs <= ring.has:
        products = _products(op, term, ring)
        return products, len(products.left)
    if _first_axis_is_free(op, term):
        return lambda inputs: _stacked(op, term, ring, inputs), 16 * numel(term)
    return lambda inputs: _one_by_one(op, term, ring, inputs), numel(term)


def _moved(op: Declared, term: Term) -> OnColumns:
    """By a table that says where each element comes from: a row of all inputs together, or a zero after them."""
    places, start = [], 1
    for i in term.inputs:
        places.append(np.arange(start, start + numel(i), dtype=np.int64).reshape(sizes_of(i)))
        start += numel(i)
    table = op.eval(FIELD, *places).ravel() - 1

    def step(inputs: Sequence[Array]) -> Array:
        rows = np.concatenate(np.broadcast_arrays(*inputs)) if _alike(inputs) else np.concatenate(_as_wide(inputs))
        moved: Array = rows[table]
        if (table < 0).any():
            moved[table < 0] = 0
        return moved

    return step


def _alike(inputs: Sequence[Array]) -> bool:
    return len({i.shape for i in inputs}) == 1


def _as_wide(inputs: Sequence[Array]) -> list[Array]:
    count = max(i.shape[1] for i in inputs)
    return [np.broadcast_to(i, (i.shape[0], count)) for i in inputs]


@dataclass(frozen=True)
class Products:
    """`y[o] = Σ_k coefficient[k] · a[left[k]] · b[right[k]]` over the k from `starts[o]` on; `right` may lack."""

    ring: Carrier
    left: Array
    right: Array | None
    coefficient: Array | None
    starts: Array

    def __call__(self, inputs: Sequence[Array]) -> Array:
        """The columns of the sums."""
        found = inputs[0][self.left]
        if self.right is not None:
            found = self.ring.mul(found, inputs[1][self.right])
        if self.coefficient is not None:
            found = self.ring.mul(found, self.coefficient)
        found = np.add.reduceat(found, self.starts, axis=0)
        return found % PRIME if isinstance(self.ring, Field) else found


def _products(op: Declared, term: Term, ring: Carrier) -> Products:
    """The products that a linear operator sums: coefficients are numbers, the same in every carrier that has them."""
    out, left, right, coefficient = _summands(term)
    return Products(
        ring,
        left,
        right if len(term.inputs) == 2 else None,
        None if (coefficient == 1).all() else coefficient[:, None],
        np.searchsorted(out, np.arange(numel(term))),
    )


@lru_cache(maxsize=4096)
def _summands(term: Term) -> tuple[Array, Array, Array, Array]:
    """The output, the element of each input and the coefficient of each product, from values on unit vectors."""
    op = term.operator
    assert isinstance(op, Declared)
    units = [np.eye(numel(i), dtype=np.int64).reshape(-1, *sizes_of(i)) for i in term.inputs]
    table = _of_one(op, term, units[0]) if len(units) == 1 else _of_labels(op, term, units[0])
    if table is None:
        seconds = [units[1][j] for j in range(len(units[1]))]
        table = [(o, i, j, v) for j, unit in enumerate(seconds) for o, i, _, v in _of_one(op, term, units[0], unit)]
    empty = set(range(numel(term))) - {entry[0] for entry in table}
    out, left, right, coefficient = np.array(sorted([*table, *((o, 0, 0, 0) for o in empty)]), dtype=np.int64).T
    return out, left, right, coefficient


Entry = tuple[int, int, int, int]


def _of_one(op: Declared, term: Term, units: Array, *further: Array) -> list[Entry]:
    """The entries that units of the first input show."""
    found = []
    for i, unit in enumerate(units):
        value = op.eval(FIELD, unit, *further).ravel()
        found += [(int(o), i, 0, int(value[o])) for o in np.flatnonzero(value)]
    return found


def _of_labels(op: Declared, term: Term, units: Array) -> list[Entry] | None:
    """The entries, where each element of the first input meets one of the second at most for each output.

    Then the second's elements, numbered, show which: much sooner than unit by unit. None where it is not so.
    """
    second = term.inputs[1]
    labels = np.arange(1, numel(second) + 1, dtype=np.int64).reshape(sizes_of(second))
    shown = _of_one(op, term, units, labels)
    entries = [(o, i, label - 1, 1) for o, i, _, label in shown]
    rng = np.random.default_rng(0)
    a, b = (FIELD.sample(sizes_of(i), rng) for i in term.inputs)
    found = [0] * numel(term)
    for o, i, j, _ in entries:
        if j >= b.size:
            return None
        found[o] += int(a.flat[i]) * int(b.flat[j])
    same = [x % PRIME for x in found] == op.eval(FIELD, a, b).ravel().tolist()
    return entries if same else None


def _first_axis_is_free(op: Declared, term: Term) -> bool:
    """Whether the operator works on each place along the first axis of its one input alone."""
    if len(term.inputs) != 1 or not op.named_axes:
        return False
    before, after = (side.split() for side in op.named_axes.split("->"))
    return before[0] == after[0] and before.count(before[0]) == 1 and not before[0].startswith("[")


def _stacked(op: Declared, term: Term, ring: Carrier, inputs: Sequence[Array]) -> Array:
    """All values one after another along the first axis."""
    (x,), shape = inputs, sizes_of(term.inputs[0])
    count = x.shape[1]
    found = op.eval(ring, np.ascontiguousarray(x.T).reshape(count * shape[0], *shape[1:]))
    return np.ascontiguousarray(found.reshape(count, numel(term)).T)


def _one_by_one(op: Declared, term: Term, ring: Carrier, inputs: Sequence[Array]) -> Array:
    columns = _as_wide(inputs)
    shapes = [sizes_of(i) for i in term.inputs]
    found = np.empty((numel(term), columns[0].shape[1]), dtype=ORDER.dtype)
    for k in range(found.shape[1]):
        found[:, k] = op.eval(ring, *(c[:, k].reshape(s) for c, s in zip(columns, shapes, strict=True))).ravel()
    return found
