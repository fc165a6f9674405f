"""Terms made anew so that less of them is computed, as a search looks for by itself; remembered by term."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import ClassVar

from superopt.demands import assuming
from superopt.errors import SuperoptError
from superopt.term import Operator, Term

_UNFORESEEN = (SuperoptError, ArithmeticError, LookupError, ValueError)
"""What making terms raises where it does not apply, or meets what it did not foresee."""


class Fewer(ABC):
    """Finds what is computed for nothing, or more often than once."""

    name: ClassVar[str]
    """What reports call what it makes."""

    heads: ClassVar[tuple[type[Operator], ...]] = (Operator,)
    """The operators at which it looks."""

    spreads: ClassVar[bool] = False
    """Whether what it makes is no number where something is that the value itself is rid of."""

    def __init__(self) -> None:
        self._made: dict[Term, Term | None] = {}

    def forget_terms(self) -> None:
        """Forget what was remembered of terms."""
        self._made.clear()

    def of(self, term: Term) -> Term | None:
        """The same value, of which less is computed; None where that is no less, or cannot be told."""
        if term.constant or not isinstance(term.operator, self.heads) or not self.may_be(term):
            return None
        if term not in self._made:
            self._made[term] = None
            with suppress(*_UNFORESEEN), assuming() as conditions:  # that no tensor is empty may be assumed
                made = self.made(term)
                self._made[term] = made if all(c.relation == "<=" for c in conditions) else None
        return self._made[term]

    def may_be(self, term: Term) -> bool:
        """Whether a term of these operators is worth a look, by those right below."""
        return True

    @abstractmethod
    def made(self, term: Term) -> Term | None:
        """What a term becomes, if anything. Raises what making terms does."""
