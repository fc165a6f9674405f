"""Rules about stacks of matrices, stated of stacks of such stacks: what a linear layer does to windows of an image, or
attention to heads, is a product of four axes where the rule that was found has three.

Where a side computes each matrix of the stack apart from the others, from matrices of its inputs at the same place or
from what is no stack, the axis of the stack may be any number of axes: each place in these is an instance of the rule.
So no rule of a higher rank need be found. That they are proved by the same laws is tested.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.errors import SuperoptError
from superopt.operators.along import deeper, origins
from superopt.operators.declared import Declared
from superopt.operators.symbolic import all_symbols
from superopt.rules.rule import Rule, of_any_rank
from superopt.term import Fact, Term, Variable, make, subterms, variable

SUFFIX = "-stacked"

RANK = 3
"""That of a stack of matrices."""


def stacked(rule: Rule) -> Iterator[Rule]:
    """The rule over stacks of one axis more; none where it is about something else, or matrices of a stack depend on
    each other.
    """
    roots = (*rule.source, *rule.target)
    of_matrices = any(isinstance(t.operator, Declared) and t.operator.batched for t in subterms(*roots))
    if not of_matrices or of_any_rank(*roots) or any(t.type.rank != RANK for t in roots):
        return
    stack = _Stack(
        symbol(next(f"e{i}" for i in range(len(all_symbols(*roots)) + 1) if f"e{i}" not in all_symbols(*roots)))
    )
    with suppress(_NotApart, SuperoptError), assuming():  # types were right with an axis less
        made = tuple(stack.of(t, 0) for t in roots)
        facts = tuple(Fact(f.kind, stack.done[f.of]) for f in rule.facts)
        count = len(rule.source)
        yield replace(rule, name=f"{rule.name}{SUFFIX}", source=made[:count], target=made[count:], facts=facts)


class _NotApart(Exception):
    """The places of a stack depend on each other, or a term is read along different axes."""


class _Stack:
    """Makes terms over an axis more, in front of the one that is the stack's."""

    def __init__(self, size: Dim) -> None:
        self._size = size
        self._at: dict[Term, int | None] = {}
        self.done: dict[Term, Term] = {}

    def of(self, term: Term, axis: int | None) -> Term:
        """A term whose stack is along an axis; with None, one that is the same for all of it."""
        if term in self.done:
            if self._at[term] != axis:
                raise _NotApart
            return self.done[term]
        self._at[term] = axis
        self.done[term] = self._made(term, axis)
        return self.done[term]

    def _made(self, term: Term, axis: int | None) -> Term:
        op = term.operator
        if axis is None:
            for i in term.inputs:
                self.of(i, None)
            return term
        if isinstance(op, Variable):
            return variable(op.label, (*term.shape[:axis], self._size, *term.shape[axis:]), op.type.dtype, op.constant)
        if not isinstance(op, Declared):
            raise _NotApart
        for axes in origins(op, axis, term.shape, [i.shape for i in term.inputs]):
            made = deeper(op, axis, axes, self._size)
            if made is not None:
                return make(made, [self.of(i, a) for i, a in zip(term.inputs, axes, strict=True)])
        raise _NotApart
