"""Values that are the same whatever a model is given, as the weights say that they are multiplied by: all zero.

Heads that nobody trained yet are so (torchvision's vision transformers), and the last layers of diffusion models. What
stands before them shows nothing in the outputs, and they themselves show nothing at all.
"""

from __future__ import annotations

from superopt.onnx_io import Program
from superopt.operators import Declared
from superopt.term import Term

DEEPEST = 16
"""So many operators are gone through, one above the other, from a value to the weight that makes it zero."""


class Still:
    """Tells of a program's values whether they ever change."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._made = {n: t for step in program.steps for n, t in zip(step.outputs, step.terms, strict=False)}

    def holds(self, name: str) -> bool:
        """Whether a value is the same for all inputs, as far as it is seen. Reads weights; raises `InvalidModel`."""
        return name in self._made and self._is_still(self._made[name], DEEPEST)

    def _is_still(self, term: Term, depth: int) -> bool:
        if not depth:
            return False
        if term.is_variable:
            made = self._made.get(term.label)
            return term.constant or (made is not None and self._is_still(made, depth - 1))
        if self._is_zero(term, depth):
            return True
        meaning = term.operator.definition(*term.inputs) if isinstance(term.operator, Declared) else None
        return all(self._is_still(i, depth - 1) for i in (term.inputs if meaning is None else (meaning,)))

    def _is_zero(self, term: Term, depth: int) -> bool:
        """Whether all elements are 0, by what each operator is linear in."""
        if not depth:
            return False
        if term.is_variable:
            made = self._made.get(term.label)
            if term.constant:
                return term.label in self._program.constants and not self._program.data(term.label).any()
            return made is not None and self._is_zero(made, depth - 1)
        if not isinstance(term.operator, Declared):
            return False
        if (meaning := term.operator.definition(*term.inputs)) is not None:
            return self._is_zero(meaning, depth - 1)
        return any(self._is_zero(term.inputs[i], depth - 1) for i in term.operator.linear)
