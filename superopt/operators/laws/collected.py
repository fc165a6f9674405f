"""All laws at the ranks, axes and operators of a scope: those written in the declarations, and those derived from them.

Most follow from what the declarations state: what is point-wise moves through every re-layout, what is linear through
sums and factors, what has named axes through cuts along them. The rest is written as text in the declarations. A law is
given at the ranks, axes and permutations of a `Scope`, since the solver's sorts are ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

from superopt.demands import assuming
from superopt.errors import ParseError
from superopt.operators.declare import CATALOGUE, is_shipped
from superopt.operators.declared import Declared
from superopt.operators.laws.derived import linear, named_axes, pointwise
from superopt.operators.laws.law import Law, Scope, names, scope_of, tensor
from superopt.operators.laws.layout import broadcasts, layout
from superopt.operators.laws.reductions import reductions
from superopt.operators.reader import read_conditions, read_dim, read_term
from superopt.term import Term, variable
from superopt.text import Atom, Form, Sexp, form, read, show

__all__ = ["Law", "Scope", "declared_laws", "forget_laws", "laws_in", "scope_of", "widened", "written_laws"]

SOURCES: dict[str, Callable[[Scope], Iterator[Law]]] = {
    "point-wise": pointwise,
    "linear": linear,
    "named axes": named_axes,
    "layout": layout,
    "broadcasts": broadcasts,
    "reductions": reductions,
}
"""What laws are derived from."""


@cache
def widened(scope: Scope) -> Scope:
    """The scope with what its laws bring in: operators (a product of concats is a sum of products), broadcasts."""
    brought = scope_of(*(side for law in laws_in(scope) for side in (law.left, law.right)))
    repeated = {(axes, rank) for axes, rank in brought.expands if not axes and rank in scope.ranks}
    return replace(scope, operators=scope.operators | brought.operators, expands=scope.expands | repeated)


@cache
def laws_in(scope: Scope) -> list[Law]:
    """All laws at the ranks, permutations and broadcasts of a scope, of which one side uses its operators only."""
    with assuming():
        unfolded = tuple(f"{name}-" for name in _unfolded())
        derived = [
            replace(law, origin=origin, lemma=law.name.startswith(unfolded))
            for origin, source in SOURCES.items()
            for law in source(scope)
        ]
        found = [*derived, *_written(scope)]
    return [law for law in found if any(_triggers(side, scope) for side in (law.left, law.right))]


def _triggers(side: Term, scope: Scope) -> bool:
    return not side.is_variable and names(side) <= scope.operators


def written_laws() -> tuple[tuple[str, Form], ...]:
    """The laws in the declarations, as text: name and form."""
    return tuple((name, sexp) for _, name, sexp in declared_laws())


@cache
def declared_laws() -> tuple[tuple[type[Declared], str, Form], ...]:
    """The laws in the declarations, as text: whose declaration it is, name and form."""
    found = []
    for cls in CATALOGUE.values():
        for sexp in read(cls.laws, f"laws of {cls.name}"):
            if not isinstance(sexp, Form) or sexp.head not in ("law", "lemma") or len(sexp.items) not in (4, 5):
                raise ParseError(f"{sexp.place}: expected (law name (given …) (if …) (= left right))")
            found.append((cls, str(sexp.items[1].value), sexp))  # type: ignore[union-attr]
    return tuple(found)


def forget_laws() -> None:
    """Read the laws of the declarations anew when they are asked for next: the catalogue has changed."""
    for known in (declared_laws, laws_in, widened, _written_at, _unfolded, _at_any_rank):
        known.cache_clear()


def _written(scope: Scope) -> Iterator[Law]:
    own = any(not is_shipped(cls) for name, cls in CATALOGUE.items() if name in scope.operators)
    for i, (cls, *_) in enumerate(declared_laws()):
        if not own and not is_shipped(cls):
            continue  # what is proved of superopt's own operators rests on no file of the user's
        for rank in sorted(scope.ranks) if _at_any_rank(i) else [0]:
            yield _written_at(i, rank)


@cache
def _at_any_rank(index: int) -> bool:
    return "*" in show(declared_laws()[index][2].items[2])


@cache
def _written_at(index: int, rank: int) -> Law:
    """A law of the declarations, by its place among them, at a rank."""
    _, name, sexp = declared_laws()[index]
    given, *asked, equation = sexp.items[2:]
    assert isinstance(given, Form)
    assert isinstance(equation, Form)
    names = dict(_given(declaration, rank) for declaration in given.items[1:])
    left, right = (read_term(side, names) for side in equation.items[1:])
    return Law(name, left, right, *read_conditions(_asked(asked), names), lemma=sexp.head == "lemma")


@cache
def _unfolded() -> frozenset[str]:
    """The operators that a law of their own says are made of others: what their facts give follows from it."""
    found: set[str] = set()
    for cls, _, sexp in declared_laws():
        equation = sexp.items[-1]
        if sexp.head == "law" and len(sexp.items) == 4 and isinstance(equation, Form):
            sides = [side for side in equation.items[1:] if isinstance(side, Form)]
            whole = [s for s in sides if s.head == cls.name and all(isinstance(i, Atom) for i in s.items)]
            others = [s for s in sides if f"({cls.name} " not in show(s)]
            found |= {cls.name} if whole and others else set()
    return frozenset(found)


def _asked(parts: list[Sexp]) -> tuple[Sexp, ...]:
    (asked,) = parts or [form("if")]
    if not isinstance(asked, Form) or asked.head != "if":
        raise ParseError(f"{asked.place}: expected (if condition …), found {show(asked)}")
    return asked.items[1:]


def _given(sexp: Atom | Form, rank: int) -> tuple[str, Term]:
    assert isinstance(sexp, Form)
    label, dims = sexp.head[1:], sexp.items[1:]
    at_any_rank = [d.value for d in dims if isinstance(d, Atom)] == ["*"]
    return label, tensor(label, rank) if at_any_rank else variable(label, map(read_dim, dims))
