"""Values that are the same whatever a model is given, as the weights say that they are multiplied by: all zero.

Heads that nobody trained yet are so (torchvision's vision transformers), and the last layers of diffusion models. What
stands before them shows nothing in the outputs, and they themselves show nothing at all.
"""

from __future__ import annotations

from contextlib import suppress

from superopt.demands import assuming
from superopt.errors import SuperoptError
from superopt.onnx_io import Program
from superopt.operators import Declared
from superopt.term import Term

DEEPEST = 16
"""So many operators are gone through, one above the other, from a value to the weight that makes it zero."""


class Still:
    """Tells of a program's values whether they ever change, but for how large they are."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._made = program.made
        self._still: dict[Term, bool] = {}
        self._zero: dict[Term, bool] = {}

    def holds(self, name: str) -> bool:
        """Whether a value is the same for all inputs; not where that cannot be told."""
        with suppress(SuperoptError), assuming():  # that no tensor is empty, as when the model was read
            return name in self._made and self._is_still(self._made[name], DEEPEST)
        return False

    def _is_still(self, term: Term, depth: int) -> bool:
        if term not in self._still:
            self._still[term] = False  # until it is known, and where it stands too deep
            self._still[term] = bool(depth) and self._seen_still(term, depth)
        return self._still[term]

    def _seen_still(self, term: Term, depth: int) -> bool:
        if term.is_variable:
            made = self._made.get(term.label)
            return term.constant or (made is not None and self._is_still(made, depth - 1))
        if self._is_zero(term, depth):
            return True
        op = term.operator
        meaning = op.definition(*term.inputs) if isinstance(op, Declared) else None
        if meaning is not None:
            return self._is_still(meaning, depth - 1)
        return (term.sized or bool(term.inputs)) and all(self._is_still(i, depth - 1) for i in term.inputs)

    def _is_zero(self, term: Term, depth: int) -> bool:
        """Whether all elements are 0, by what each operator is linear in."""
        if term not in self._zero:
            self._zero[term] = False
            self._zero[term] = bool(depth) and self._seen_zero(term, depth)
        return self._zero[term]

    def _seen_zero(self, term: Term, depth: int) -> bool:
        op = term.operator
        if term.is_variable:
            made = self._made.get(term.label)
            if term.constant:
                return term.label in self._program.constants and self._holds_zeros(term.label)
            return made is not None and self._is_zero(made, depth - 1)
        if not isinstance(op, Declared):
            return False
        if (meaning := op.definition(*term.inputs)) is not None:
            return self._is_zero(meaning, depth - 1)
        return any(self._is_zero(term.inputs[i], depth - 1) for i in op.linear)

    def _holds_zeros(self, name: str) -> bool:
        """Whether a weight is of zeros alone; most show by one number that they are not."""
        data = self._program.data(name)
        is_zero = not data.flat[:1].any() and not data.any()
        del data
        self._program.release(name)
        return is_zero
