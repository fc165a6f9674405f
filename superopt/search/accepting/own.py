"""What of a candidate the original's own steps make of values that were compared: that is right as far as these are.

A label beside its scores may be the same for all samples, and says nothing then of what it is made of. Where it is the
largest of scores that agree, and was so in the original, nothing is left to be said. But where scores of its own were
rewritten for it, or it is the largest of something else, only the values themselves can tell.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from superopt.onnx_io import Program, changed_values
from superopt.search.replay import Placement
from superopt.term import Term

DEEPEST = 32
"""So many operators are gone through, one above the other, from a rewritten value to others that it is made of."""


class Own:
    """Tells of a program's values what a placement leaves of their steps. Values in `anew` are written in another form,
    which counts as none of the original's.

    What is told is an induction over the steps: each of a value's inputs is told of, as it was compared, or given, or
    made by the same operators of inputs that are so.
    """

    def __init__(self, program: Program, placed: Placement, anew: Mapping[str, Term]) -> None:
        self._step = {name: step for step in program.steps for name in step.outputs}
        self._made = program.made
        self._new = changed_values(program, placed.new, placed.origins)
        self._origins, self._anew = placed.origins, anew
        self._known: dict[tuple[Term, str], frozenset[str] | None] = {}

    def is_made_of(self, name: str, told: Container[str]) -> bool:
        """Whether nothing between a value and those that are told of was rewritten, on any way to it."""
        seen, stack = set[str](), [name]
        while stack:
            value = stack.pop()
            if value in told or value in seen:
                continue
            seen.add(value)
            below = self._below(value)
            if below is None:
                return False
            stack += below
        return True

    def _below(self, name: str) -> frozenset[str] | None:
        """The values that steps of the original make this one of, in the candidate too; None where others do."""
        if name in self._anew:
            return None
        if name in self._new:
            return self._same(self._new[name], self._made[name], DEEPEST) if name in self._made else None
        return frozenset(self._step[name].inputs) if name in self._step else frozenset()

    def _same(self, new: Term, old: Term, depth: int) -> frozenset[str] | None:
        """The values that both terms are the same operators of; None where they are not."""
        if old.is_variable:
            if (new, old.label) not in self._known:
                self._known[new, old.label] = self._standing_for(new, old.label, depth)
            return self._known[new, old.label]
        if new.operator != old.operator or len(new.inputs) != len(old.inputs) or not depth:
            return None
        found = frozenset[str]()
        for ours, theirs in zip(new.inputs, old.inputs, strict=True):
            below = self._same(ours, theirs, depth - 1)
            if below is None:
                return None
            found |= below
        return found

    def _standing_for(self, new: Term, name: str, depth: int) -> frozenset[str] | None:
        """The values that a term is made of which stands where the original has the value of this name."""
        if self._new.get(name) is new or (new.is_variable and new.label == name):
            return frozenset((name,))
        if name in self._anew or not depth:
            return None
        if self._origins.get(new) == name:  # the original's own node makes it, of what its inputs are now
            return frozenset(self._step[name].inputs)
        return self._same(new, self._made[name], depth - 1) if name in self._made else None
