"""Short last axes, computed as first ones: basis functions, bins and frequencies of each of many numbers.

A layer of splines (Kolmogorov-Arnold networks, Liu et al. 2024) compares each number with a dozen knots, which stand
last, and takes slices of what becomes of that. Runtimes repeat each number for a row of a dozen, and copy rows that
short, one by one. Where the same axis stands first, rows are as long as there are numbers, and a slice is one copy.
One transpose in the end brings the axis back; before that no single step is any less, so all are turned at once.
"""

from __future__ import annotations

from dataclasses import replace

from superopt.operators.declared import Declared
from superopt.operators.definitions.short_rows import SHORT
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.picks import Slice
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.term import Term, make

LEAST, MOST = 6, 64
"""Of fewer and of more operators than these on each element nothing is looked for."""


class Fronting(Fewer):
    """Finds what is computed of each element of short rows, in which each stands for a number that is repeated."""

    name = "a short axis first"
    heads = (Reshape,)

    def may_be(self, term: Term) -> bool:
        """Whether it is another view of what is computed of each element of short rows."""
        (x,) = term.inputs
        size = x.shape[-1] if x.type.rank > 1 else None
        return isinstance(x.operator, Declared) and x.operator.pointwise and isinstance(size, int) and 1 < size < SHORT

    def made(self, term: Term) -> Term | None:
        """The same with the last axis first on the way; None where little is computed, or of what has such rows."""
        (x,) = term.inputs
        turned = _Turned()
        found = turned.of(x)
        if found is None or not turned.repeated or turned.elementwise < LEAST:
            return None
        return make(term.operator, (Transpose((*range(1, x.type.rank), 0))(found),))


class _Turned:
    """Terms with the last axis first, in which none but constants has rows of its own."""

    def __init__(self) -> None:
        self.elementwise = 0
        self.repeated = False
        """Whether numbers that are no constants are repeated for their rows."""
        self._made: dict[Term, Term | None] = {}

    def of(self, x: Term) -> Term | None:
        """A term with its last axis first; None of others."""
        if x not in self._made:
            self._made[x] = self._of(x)
        return self._made[x]

    def _of(self, x: Term) -> Term | None:
        op, last = x.operator, x.type.rank - 1
        if isinstance(op, Expand):
            return self._repeat(op, x.inputs[0], last)
        if x.constant:
            return Transpose((last, *range(last)))(x) if last else x
        if not isinstance(op, Declared) or not (op.pointwise or isinstance(op, Slice | Concat)):
            return None
        self.elementwise += op.pointwise
        found = [self.of(i) for i in x.inputs] if self.elementwise <= MOST else [None]
        made = [i for i in found if i is not None]
        if len(made) < len(found):
            return None
        return make(replace(op, axis=(op.axis + 1) % (last + 1)) if isinstance(op, Slice | Concat) else op, made)

    def _repeat(self, op: Expand, x: Term, last: int) -> Term | None:
        """What is repeated along some axes, repeated along the same ones."""
        to = (op.to[last], *op.to[:last])
        if last not in op.axes:
            self.repeated = self.repeated or not x.constant
            return Expand(tuple(a + 1 for a in op.axes), to)(x)
        own = self.of(x)
        return None if own is None else Expand((0, *(a + 1 for a in op.axes if a != last)), to)(own)
