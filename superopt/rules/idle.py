"""Rules that no search takes as steps: they apply everywhere, and never gain."""

from __future__ import annotations

from dataclasses import replace

from superopt.operators.conv import Conv
from superopt.operators.declared import Declared
from superopt.operators.layout import Expand
from superopt.operators.padding import Pad
from superopt.rules.rule import Rule
from superopt.term import Term, subterms


def is_idle(rule: Rule) -> bool:
    """Whether a rule says in several point-wise operators what one does, or puts zeros around kernels and does nothing
    else, or looks into what is made of constants, which is computed beforehand.
    """
    return any(says(rule) for says in (_rephrases, _unfolds, enlarges))


def _rephrases(rule: Rule) -> bool:
    """Whether a rule makes several point-wise operators of a single one of ONNX: `x + y = x − (−y)`."""
    before, after = ([t for t in subterms(*side) if t.inputs] for side in (rule.source, rule.target))
    both = [t.operator for t in (*before, *after) if not isinstance(t.operator, Expand)]
    plain = all(isinstance(op, Declared) and op.pointwise and not op.domain for op in both)
    return len(before) == 1 and len(after) > 1 and plain


def _unfolds(rule: Rule) -> bool:
    """Whether a rule asks how something is made of constants."""
    return any(is_made_of_constants(t) for t in subterms(*rule.source))


def is_made_of_constants(term: Term) -> bool:
    """Whether a term is computed from constants, before the model runs; a broadcast is not."""
    return term.constant and bool(term.inputs) and not isinstance(term.operator, Expand)


def enlarges(rule: Rule) -> bool:
    """Whether a rule puts zeros around kernels, or around what they are made of, and the target is the source but for
    that: as many operators run, of more work.
    """
    made = subterms(*rule.target)
    if len(made) <= len(subterms(*rule.source)) or not any(isinstance(t.operator, Pad) for t in made):
        return False
    before, after = (tuple(map(_without_zeros, side)) for side in (rule.source, rule.target))
    return before == after


def _without_zeros(term: Term, in_kernel: bool = False) -> str:
    """How a term is spelled without the zeros in kernels and the pads of convolutions, which go with them."""
    op = term.operator
    if isinstance(op, Pad) and in_kernel:
        return _without_zeros(term.inputs[0], in_kernel)
    if not isinstance(op, Conv):
        return f"({op} {' '.join(_without_zeros(i, in_kernel) for i in term.inputs)})"
    image, kernel = term.inputs
    op = replace(op, pads=(0,) * len(op.pads))
    return f"({op} {_without_zeros(image, in_kernel)} {_without_zeros(kernel, in_kernel=True)})"
