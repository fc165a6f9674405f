"""Rules about what was joined, stated of what is taken apart: one on `conv(concat(x, y), concat(k, l))` has a meaning
where the kernel is one weight as well, of which k and l are the slices.

What enumeration finds joins variables; in a model a weight is there as a whole. A rule with slices of it in the place
of the parts is an instance, since the slices joined are the whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from superopt.demands import assuming
from superopt.dim import Shape
from superopt.operators.layout import Concat
from superopt.operators.picks import Slice
from superopt.operators.symbolic import all_symbols
from superopt.rules.rule import Rule
from superopt.substitution import symbols
from superopt.term import replace_all, subterms, variable, variables

SUFFIX = "-parted"
WHOLE = ("concat-slices", "slice-all")
"""The laws by which slices joined are the whole."""


def parted(rule: Rule) -> Iterator[Rule]:
    """The rule for each pair of variables that its source joins, and does not use but for that, as slices of one."""
    uses = Counter(i for t in subterms(*rule.source) for i in t.inputs)
    asked = {f.of for f in rule.facts}
    for number, term in enumerate(subterms(*rule.source)):
        if not isinstance(term.operator, Concat) or not all(i.is_variable and uses[i] == 1 for i in term.inputs):
            continue
        first, second = term.inputs
        axis = term.operator.axis
        rest = [v for v in variables(*rule.source) if v not in term.inputs]
        told = set(all_symbols(*rest))
        if first is second or {first, second} & asked or not _symbols(first.shape, second.shape, axis) <= told:
            continue
        whole = variable(f"{first.label}{second.label}", term.shape)
        n, end = first.shape[axis], term.shape[axis]
        with assuming():  # sizes are not negative, and types stay as they are
            slices = {first: Slice(axis, 0, n)(whole), second: Slice(axis, n, end)(whole)}
            source, target = replace_all(rule.source, {term: whole}), replace_all(rule.target, slices)
        if not any(s.is_variable for s in source):
            by = tuple(sorted({*rule.by, *WHOLE}))
            yield replace(rule, name=f"{rule.name}{SUFFIX}-{number}", source=source, target=target, by=by)


def _symbols(first: Shape, second: Shape, axis: int) -> frozenset[str]:
    return symbols(first[axis]) | symbols(second[axis])
