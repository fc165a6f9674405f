"""Windows that are laid out to be averaged, or to find the largest of them: the pools that they are.

Pooling that is written by hand unfolds a picture and reduces (`x.unfold(2, 2, 2).unfold(3, 2, 2).amax((-1, -2))`), and
exporters write the windows as gathers. Where elements come from tells that they are windows, as in `unfolded.py`.
"""

from __future__ import annotations

from superopt.dim import product
from superopt.operators.layout import reshaped
from superopt.operators.reduce import AvgPool, MaxPool
from superopt.operators.reductions import Largest, Mean
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

    def may_be(self, term: Term) -> bool:
        """Whether it reduces what is picked, not far above, of numbers that there is a pool of."""
        op = term.operator
        types = LARGEST_OF if isinstance(op, Largest) else MEANS_OF if isinstance(op, Mean) else ()
        return term.type.dtype in types and source_of(term.inputs[0]) is not None

    def made(self, term: Term) -> Term | None:
        """The pool."""
        op, (x,) = term.operator, term.inputs
        assert isinstance(op, Largest | Mean)
        kept = tuple(a for a in range(x.type.rank) if a not in op.axes)
        rows = (*term.shape, product(tuple(x.shape[a] for a in op.axes)))
        found = windows_of(reshaped(turned(x, (*kept, *op.axes)), rows), by_rows=True)
        if found is None or not (found.by_channel or found.kernel[0] == 1):
            return None
        kind, conv = MaxPool if isinstance(op, Largest) else AvgPool, found.conv
        return reshaped(kind(found.kernel[1:], conv.strides, conv.pads, conv.dilations)(found.pictures), term.shape)
