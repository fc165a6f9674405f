"""What a law is, and the scope of terms that laws are given for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeGuard

from superopt.dim import Condition, symbol
from superopt.operators.declare import CATALOGUE
from superopt.operators.declared import Declared
from superopt.operators.layout import Expand, Reshape, Transpose
from superopt.operators.picks import Take
from superopt.operators.reader import condition_sexp, fact_sexp, term_sexp
from superopt.operators.reductions import Reduction
from superopt.term import Fact, Operator, Term, subterms, variable, variables
from superopt.text import form, show


@dataclass(frozen=True)
class Law:
    """`left = right` wherever both are well formed, the `conditions` on sizes hold and the `facts` on elements.

    `name` is shared by a law's instances at all ranks and axes.
    """

    name: str
    left: Term
    right: Term
    conditions: tuple[Condition, ...] = ()
    facts: tuple[Fact, ...] = ()
    lemma: bool = False
    """It follows from other laws, and is there because proofs are found sooner with it."""
    origin: str = "written"
    """What it is derived from, if it is not written in a declaration."""

    def __str__(self) -> str:
        given = form("given", *(form(f"?{v.label}", *map(str, v.shape)) for v in variables(self.left, self.right)))
        asked = [*map(condition_sexp, self.conditions), *map(fact_sexp, self.facts)]
        equation = form("=", term_sexp(self.left), term_sexp(self.right))
        head = "lemma" if self.lemma else "law"
        return show(form(head, self.name, given, *([form("if", *asked)] if asked else []), equation))


@dataclass(frozen=True)
class Scope:
    """What occurs in some terms, as far as laws depend on it."""

    operators: frozenset[str]
    ranks: frozenset[int]
    perms: frozenset[tuple[int, ...]]
    expands: frozenset[tuple[tuple[int, ...], int]]
    reshapes: frozenset[tuple[int, int]]
    reductions: frozenset[tuple[str, tuple[int, ...], int]] = frozenset()
    """The name and axes of each reduction, and the rank of its input."""
    structures: frozenset[tuple[str, tuple[Any, ...]]] = frozenset()
    """What attributes that are no sizes operators have besides their defaults."""


def scope_of(*roots: Term) -> Scope:
    """The scope of terms; closed under composition of their permutations and of re-shapes.

    A number that is repeated may be so at any rank.
    """
    terms = list(subterms(*roots))
    perms = {t.operator.perm for t in terms if isinstance(t.operator, Transpose)}
    perms |= {composed(p, q) for p in perms for q in perms if len(p) == len(q)}
    reshapes = {(t.inputs[0].type.rank, t.type.rank) for t in terms if isinstance(t.operator, Reshape)}
    reshapes |= {(a, d) for a, b in reshapes for c, d in reshapes if b == c}
    ranks = frozenset(t.type.rank for t in terms)
    expands = {(t.operator.axes, t.type.rank) for t in terms if isinstance(t.operator, Expand)}
    expands |= {((), rank) for rank in ranks if any(not axes for axes, _ in expands)}
    return Scope(
        frozenset(t.operator.name for t in terms if not t.is_variable),
        ranks,
        frozenset(perms),
        frozenset(expands),
        frozenset(reshapes),
        frozenset((t.operator.name, t.operator.axes, t.inputs[0].type.rank) for t in terms if _reduces(t.operator)),
        frozenset((t.operator.name, t.operator.structure()) for t in terms if _varies(t.operator)),
    )


def _reduces(op: Operator) -> TypeGuard[Reduction]:
    return isinstance(op, Reduction)


def _varies(op: Operator) -> TypeGuard[Declared]:
    return isinstance(op, Declared) and (bool(op.named_axes) or isinstance(op, Take)) and bool(op.structure())


def tensor(name: str, rank: int) -> Term:
    """A variable whose sizes are symbols of its own."""
    return variable(name, sizes(name, rank))


def sizes(name: str, count: int) -> tuple[Any, ...]:
    """Symbols of one name, numbered."""
    return tuple(symbol(f"{name}{i}") for i in range(count))


def composed(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation of transposing by `first`, then by `second`."""
    return tuple(first[a] for a in second)


@lru_cache(maxsize=1 << 14)
def names(term: Term) -> frozenset[str]:
    """The names of the operators of a term."""
    return frozenset(t.operator.name for t in subterms(term) if not t.is_variable)


def declared(scope: Scope, wanted: Callable[[type[Declared]], bool]) -> list[type[Declared]]:
    """The declarations of the operators of a scope, those that are wanted."""
    return [cls for name, cls in CATALOGUE.items() if wanted(cls) and name in scope.operators]
