"""Windows that are laid out to be averaged, or to find the largest of them: the pools that they are.

Pooling that is written by hand unfolds a picture and reduces (`x.unfold(2, 2, 2).unfold(3, 2, 2).amax((-1, -2))`), and
exporters write the windows as gathers. Where elements come from tells that they are windows, as in `unfolded.py`. The
smallest are the largest of what is negated: filters by which shapes grow and shrink (dilation, erosion) take both.
"""

from __future__ import annotations

from superopt.dim import product
from superopt.operators.differences import Neg
from superopt.operators.layout import reshaped
from superopt.operators.reduce import AvgPool, MaxPool
from superopt.operators.reductions import Largest, Mean, Reduction, Smallest
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.search.rewriting.finders.turned import turned
from superopt.search.rewriting.finders.unfolded import source_of, windows_of
from superopt.term import REAL, Term

MEANS_OF = (REAL, "float32")
LARGEST_OF = (*MEANS_OF, "float64")
"""The element types that runtimes have these pools of."""


class Pooling(Fewer):
    """Finds windows that are laid out to be reduced."""

    name = "windows pooled where they are"
    heads = (Largest, Smallest, Mean)

    def may_be(self, term: Term) -> bool:
        """Whether it reduces what is picked, not far above, of numbers that there is a pool of."""
        types = MEANS_OF if isinstance(term.operator, Mean) else LARGEST_OF
        return term.type.dtype in types and source_of(_reduced(term)[0]) is not None

    def made(self, term: Term) -> Term | None:
        """The pool."""
        op, (x, axes) = term.operator, _reduced(term)
        assert isinstance(op, Largest | Smallest | Mean)
        kept = tuple(a for a in range(x.type.rank) if a not in axes)
        rows = (*term.shape, product(tuple(x.shape[a] for a in axes)))
        found = windows_of(reshaped(turned(x, (*kept, *axes)), rows), by_rows=True)
        if found is None or not (found.by_channel or found.kernel[0] == 1):
            return None
        kind, conv = AvgPool if isinstance(op, Mean) else MaxPool, found.conv
        pool = kind(found.kernel[1:], conv.strides, conv.pads, conv.dilations)
        pooled = Neg()(pool(Neg()(found.pictures))) if isinstance(op, Smallest) else pool(found.pictures)
        return reshaped(pooled, term.shape)


def _reduced(term: Term) -> tuple[Term, tuple[int, ...]]:
    """What is reduced, and along which axes, be it along one after the other."""
    op, (x,) = term.operator, term.inputs
    assert isinstance(op, Reduction)
    axes = set(op.axes)
    while isinstance(below := x.operator, Reduction) and type(below) is type(op):
        x = x.inputs[0]
        kept = [a for a in range(x.type.rank) if a not in below.axes]
        axes = {*below.axes, *(kept[a] for a in axes)}
    return x, tuple(sorted(axes))
