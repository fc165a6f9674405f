"""Maps whose channels are all alike, as a piece sees them: as one channel, repeated.

A mask that is repeated for all channels once, and then convolved by ones from layer to layer (Liu et al. 2018), stays
alike in all channels, which no piece but the first shows: a cut is the end of what is known of a value. In pieces with
convolutions by kernels that are the same for all channels that come out, such kernels and maps stand as what they are
equal to; where a piece is put back, as the values that they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import accumulate, pairwise

from superopt.demands import assuming
from superopt.errors import SuperoptError
from superopt.onnx_io.program import Program
from superopt.operators.along import read_along
from superopt.operators.chains import joined
from superopt.operators.conv import Conv
from superopt.operators.layout import Concat, Expand, reshaped
from superopt.operators.picks import Slice
from superopt.relations import is_one
from superopt.term import Term, subterms, variables

RESULTS, CHANNELS = 0, 1
"""The axis of channels that come out in a kernel, and that of channels in a map."""

DEEPEST = 100
"""Made of what through more operators than these nothing is told of."""


class RepeatedChannels:
    """Tells which values of a program are the same at all places along an axis; remembers what it found."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._made: Mapping[str, Term] | None = None
        self._known: dict[tuple[Term, int], bool] = {}

    def shown(self, outputs: Sequence[Term]) -> dict[Term, Term]:
        """Kernels below some terms that are the same for all results, the maps beside them that are the same in all
        channels, and what each is equal to.
        """
        kernels = dict.fromkeys(t.inputs[1] for t in subterms(*outputs) if _may_be_alike(t))
        found = {k: _repeated(k, RESULTS) for k in kernels if self._is_alike(k, RESULTS)}
        maps = (v for v in variables(*outputs) if found and not v.constant and v.type.rank > CHANNELS + 1)
        with assuming():  # what was assumed of symbolic sizes when they were read still is
            shown = {v: self._as_repeated(v) for v in maps if not is_one(v.shape[CHANNELS])}
        return found | {v: whole for v, whole in shown.items() if whole is not None}

    def _as_repeated(self, v: Term) -> Term | None:
        """A map as one channel that is repeated, or as joined of such; None where its channels are not alike."""
        if self._is_alike(v, CHANNELS):
            return _repeated(v, CHANNELS)
        term = self._made_by(v)
        parts = [] if term is None or term.operator != Concat(CHANNELS) else joined(term)
        if not parts or not all(self._is_alike(part, CHANNELS) for part in parts):
            return None
        ends = [*accumulate((part.shape[CHANNELS] for part in parts), initial=0)]
        places = [Slice(CHANNELS, *place)(v) for place in pairwise(ends)]
        return reduce(Concat(CHANNELS), [_repeated(place, CHANNELS) for place in places])

    def _is_alike(self, term: Term, axis: int, deepest: int = DEEPEST) -> bool:
        """Whether a term is the same at all places along an axis, for all that is known of the values that it reads."""
        if deepest and (term, axis) not in self._known:
            self._known[term, axis] = False  # until it is known
            self._known[term, axis] = self._is_found_alike(term, axis, deepest - 1)
        return self._known.get((term, axis), False)

    def _is_found_alike(self, term: Term, axis: int, deepest: int) -> bool:
        if is_one(term.shape[axis]):
            return True
        if term.is_variable:
            return self._holds_alike(term, axis) if term.constant else self._is_made_alike(term, axis, deepest)
        read = read_along(term, axis)
        if read is None:
            return False
        return all(a is None or self._is_alike(i, a, deepest) for i, a in zip(term.inputs, read, strict=True))

    def _holds_alike(self, constant: Term, axis: int) -> bool:
        try:
            data = self._program.data(constant.label)
        except SuperoptError:
            return False
        first, second = (data.take([place], axis) for place in (0, 1))
        alike = bool((first == second).all() and (data == first).all())
        del data
        self._program.release(constant.label)  # kernels of all convolutions are looked at
        return alike

    def _is_made_alike(self, v: Term, axis: int, deepest: int) -> bool:
        term = self._made_by(v)
        return term is not None and self._is_alike(term, axis, deepest)

    def _made_by(self, v: Term) -> Term | None:
        """What a step computes a value by."""
        self._made = self._program.made if self._made is None else self._made
        return self._made.get(v.label)


def _may_be_alike(term: Term) -> bool:
    """Whether it is a convolution of all channels by a kernel of the model, for several that come out."""
    op = term.operator
    if not isinstance(op, Conv) or op.group != 1:
        return False
    kernel = term.inputs[1]
    return kernel.constant and kernel.is_variable and not is_one(kernel.shape[RESULTS])


def _repeated(v: Term, axis: int) -> Term:
    """A value as that at the first place along an axis, repeated."""
    others = tuple(a for a in range(v.type.rank) if a != axis)
    one = reshaped(Slice(axis, 0, 1)(v), tuple(v.shape[a] for a in others))
    return Expand(others, v.shape)(one)
