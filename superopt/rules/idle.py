"""Rules that no search takes as steps: they apply everywhere, and never gain."""

from __future__ import annotations

from dataclasses import replace

from superopt.dim import equal
from superopt.operators.declare import Declared
from superopt.operators.layout import Expand, Slice
from superopt.operators.linear import Conv
from superopt.operators.padding import Pad
from superopt.rules.rule import Rule
from superopt.term import Term, subterms


def is_idle(rule: Rule) -> bool:
    """Whether a rule says in several point-wise operators what one does, or puts zeros around kernels and does nothing
    else, or cuts nothing off, or looks into what is made of constants, which is computed beforehand.
    """
    return any(says(rule) for says in (_rephrases, _unfolds, enlarges, _cuts_nothing))


def _rephrases(rule: Rule) -> bool:
    """Whether a rule makes several point-wise operators of a single one of ONNX: `x + y = x − (−y)`."""
    before, after = ([t for t in subterms(*side) if t.inputs] for side in (rule.source, rule.target))
    both = [t.operator for t in (*before, *after) if not isinstance(t.operator, Expand)]
    plain = all(isinstance(op, Declared) and op.pointwise and not op.domain for op in both)
    return len(before) == 1 and len(after) > 1 and plain


def _unfolds(rule: Rule) -> bool:
    """Whether a rule asks how something is made of constants."""
    return any(t.constant and t.inputs and not isinstance(t.operator, Expand) for t in subterms(*rule.source))


def enlarges(rule: Rule) -> bool:
    """Whether a rule puts zeros around what is convolved, and the target is the source but for that: as many operators
    run, of more work. What merges with such a kernel is a rule by itself, since no rule is left out that others replay
    only through more work.
    """
    before, after = (tuple(map(_without_zeros, side)) for side in (rule.source, rule.target))
    return before == after and len(subterms(*rule.target)) > len(subterms(*rule.source))


def _without_zeros(term: Term) -> str:
    """How a term is spelled without zeros around anything, and without the pads of convolutions, which go with them."""
    op = term.operator
    if isinstance(op, Pad):
        return _without_zeros(term.inputs[0])
    if isinstance(op, Conv):
        op = replace(op, pads=(0,) * len(op.pads))
    return f"({op} {' '.join(map(_without_zeros, term.inputs))})"


def _cuts_nothing(rule: Rule) -> bool:
    """Whether there is a slice in the target that takes all of an axis."""
    slices = ((t.operator, t.inputs[0]) for t in subterms(*rule.target) if isinstance(t.operator, Slice))
    return any(equal(op.start, 0) is True and equal(op.stop, x.shape[op.axis]) is True for op, x in slices)
