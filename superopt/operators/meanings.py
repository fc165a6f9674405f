"""What operators may be written as beside their declarations: further definitions, and spellings."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from superopt.errors import SuperoptError
from superopt.operators.declare import CATALOGUE
from superopt.operators.declared import Declared
from superopt.term import Term

SEEN = 2
"""How many operators below each other a definition looks at, unless it says so: its own, and whether inputs repeat."""

SHALLOW = 3
"""What looks deeper than this has to say what a term must look like for it, so that it is seldom looked at."""


class Meaning(NamedTuple):
    """What an operator may be written as: its name, what gives the term of it and its inputs, or None, how many
    operators below each other that looks at, and what a term must look like for it, where that is more than its name.
    `rounds` says that it rounds more than the operator does, or spreads what is no number, which may show on some
    inputs of some models.
    """

    operator: str
    term_of: Callable[..., Term | None]
    depth: int = SEEN
    pattern: Term | None = None
    rounds: bool = False


FURTHER_DEFINITIONS: dict[str, Meaning] = {}
"""What else than its declaration defines an operator, by a name."""

SPELLINGS: dict[str, Meaning] = {}
"""Likewise terms that are read as an operator, and that it is never replaced by: they overflow or give no number where
it does not. Wherever they give finite numbers they are equal.
"""

Defining = TypeVar("Defining", bound=Callable[..., "Term | None"])


def defines(
    operator: str, how: str, depth: int = SEEN, pattern: Term | None = None, rounds: bool = False
) -> Callable[[Defining], Defining]:
    """Enter a function into `FURTHER_DEFINITIONS`: of an operator and its inputs, a term of equal value or None.

    Raises `SuperoptError` where nothing of that name is declared, where the pattern is of another operator, and where
    none is given for what looks deep.
    """
    return _entering(FURTHER_DEFINITIONS, operator, how, depth, pattern, rounds)


def spells(operator: str, how: str) -> Callable[[Defining], Defining]:
    """Enter a function into `SPELLINGS`: of an operator and its inputs, a term that is read as it, or None.

    Raises `SuperoptError` where nothing of that name is declared.
    """
    return _entering(SPELLINGS, operator, how)


def _entering(
    table: dict[str, Meaning],
    operator: str,
    how: str,
    depth: int = SEEN,
    pattern: Term | None = None,
    rounds: bool = False,
) -> Callable[[Defining], Defining]:
    name = f"{operator} {how}"
    if operator not in CATALOGUE:
        raise SuperoptError(f"{name}: no operator {operator} is declared")
    if pattern is not None and pattern.operator.name != operator:
        raise SuperoptError(f"{name}: its pattern is of {pattern.operator.name}")
    if pattern is None and depth > SHALLOW:
        raise SuperoptError(f"{name}: it looks {depth} operators deep; with more than {SHALLOW} give a pattern")

    def enter(define: Defining) -> Defining:
        table[name] = Meaning(operator, define, depth, pattern, rounds)
        return define

    return enter


def defined(name: str) -> type[Declared]:
    """The operator that a definition or a spelling of a name is of: its own has the operator's name."""
    written = FURTHER_DEFINITIONS.get(name) or SPELLINGS.get(name)
    return CATALOGUE[name if written is None else written.operator]
