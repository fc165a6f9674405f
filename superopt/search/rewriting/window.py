"""Terms as a pattern sees them: down to a certain depth, what lies below replaced by variables.

Rewrites look at a few operators at a time. A rewrite near the inputs renews every term above it, but what rewrites see
of those is as it was: so what applies there is found once for all terms of one window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from superopt.demands import assuming
from superopt.operators.facts import known_facts
from superopt.rules.idle import is_made_of_constants
from superopt.term import Fact, Term, made_over, replace_all, variable

Key: TypeAlias = "tuple[int, ...]"
"""What windows are known by: equal for equal ones."""


@dataclass(frozen=True)
class Window:
    """Terms over variables of its own, the `leaves`, and what is known of these."""

    roots: tuple[Term, ...]
    leaves: tuple[Term, ...]
    facts: tuple[Fact, ...]


class Windows:
    """Makes windows, and tells cheaply which are equal."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._seen: dict[Term, tuple[int, tuple[Term, ...]]] = {}
        self._leaves: dict[Term, int] = {}

    def key(self, roots: Sequence[Term], depth: int) -> Key:
        """What the window of terms down to so many operators is known by: row by row what each term is, and the
        places of its inputs in the order of first sight.
        """
        place = {term: i for i, term in enumerate(roots)}
        found, row, seen = [depth], list(roots), self._seen
        for _ in range(depth):
            below: list[Term] = []
            for term in row:
                number, inputs = seen.get(term) or self._see(term)
                found.append(number)
                for i in inputs:
                    if i not in place:
                        place[i] = len(place)
                        below.append(i)
                    found.append(place[i])
            row = below
        found += [self._leaf(term) if term.inputs else self._see(term)[0] for term in row]
        return tuple(found)

    def forget_terms(self) -> None:
        """Forget the terms that were seen, but not what they are known by."""
        self._seen.clear()
        self._leaves.clear()

    def _see(self, term: Term) -> tuple[int, tuple[Term, ...]]:
        """What a term is known by, and the inputs that stand in its window."""
        if is_leaf(term):
            self._seen[term] = self._leaf(term), ()
        else:
            self._seen[term] = self._number("head", term.operator, term.type), term.inputs
        return self._seen[term]

    def _leaf(self, term: Term) -> int:
        if term not in self._leaves:
            self._leaves[term] = self._number("leaf", term.type, term.constant, known_facts(term))
        return self._leaves[term]

    def _number(self, *what: object) -> int:
        return self._numbers.setdefault(what, len(self._numbers))


def window(roots: Sequence[Term], depth: int) -> Window:
    """Terms down to so many operators. What is made of constants counts as one, but for repetitions and numbers."""
    names = {t: variable(f"_{i}", t.shape, t.type.dtype, t.constant) for i, t in enumerate(below(roots, depth))}
    done = dict(names)
    with assuming():
        own = tuple([_made(root, done) for root in roots])
    facts = tuple(Fact(kind, v) for term, v in names.items() for kind in sorted(known_facts(term)))
    return Window(own, tuple(names.values()), facts)


def below(roots: Sequence[Term], depth: int) -> tuple[Term, ...]:
    """What the variables of a window stand for, in their order."""
    return tuple(term for term, level in _levels(roots, depth).items() if _ends(term, level, depth))


def placed(targets: Sequence[Term], leaves: Sequence[Term], stand_for: Sequence[Term]) -> tuple[Term, ...]:
    """Terms over a window's leaves, over what these stand for."""
    with assuming():  # what held there of sizes holds here
        return replace_all(tuple(targets), dict(zip(leaves, stand_for, strict=True)))


def _levels(roots: Sequence[Term], depth: int) -> dict[Term, int]:
    """How many operators stand above each term at least, as far as the window goes; in the order of first sight."""
    levels = dict.fromkeys(roots, 0)
    row = list(levels)
    for number in range(1, depth + 1):
        below = [i for term in row if not is_leaf(term) for i in term.inputs]
        row = [i for i in dict.fromkeys(below) if i not in levels]
        levels.update(dict.fromkeys(row, number))
    return levels


def is_leaf(term: Term) -> bool:
    """Whether patterns see nothing of what a term is made of: it is a variable, or made of constants alone."""
    return term.is_variable or is_made_of_constants(term)


def _ends(term: Term, level: int, depth: int) -> bool:
    return bool(level == depth and term.inputs) or is_leaf(term)


def _made(term: Term, done: dict[Term, Term]) -> Term:
    if term not in done:
        done[term] = made_over(term, tuple([_made(i, done) for i in term.inputs]))
    return done[term]
