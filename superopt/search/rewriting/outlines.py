"""Which definitions the form of a term may be folded to, told before anything is matched: by what its products are
made of.

The patterns are the definitions at a type and a rank. They depend on no model, so they are made once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeAlias

from superopt.demands import assuming
from superopt.errors import SuperoptError
from superopt.operators.declared import Declared
from superopt.search.rewriting.forms import Forms, Heads
from superopt.search.rewriting.rewrites import Fold
from superopt.search.rewriting.sums import Poly
from superopt.search.rewriting.templates import Template, templates, with_rest
from superopt.term import Term


class Key(NamedTuple):
    """An operator among the factors of a product: its name, its attributes but for sizes, its exponent, and those of
    the sums in which it is, the outermost first.
    """

    name: str
    structure: tuple[Any, ...]
    exponent: int
    sums: tuple[int, ...] = ()


Outline: TypeAlias = "tuple[frozenset[Key], ...]"
"""For each product of a form the operators of its factors."""

NESTED = 2
"""How deep in each other sums are told: written out, those of a network have no end, and those of definitions are one
deep."""


@dataclass(frozen=True)
class Pattern:
    """A definition as a form, at a rank."""

    fold: Fold
    template: Template
    form: Poly
    outline: Outline
    within: frozenset[str]
    """The names of all operators in the form, however deep."""

    @cached_property
    def needs(self) -> frozenset[Key]:
        """All operators of the outline."""
        return frozenset[Key]().union(*self.outline)

    @cached_property
    def top(self) -> frozenset[str]:
        """Their names."""
        return frozenset(key.name for key in self.needs)


class Patterns:
    """The patterns for terms of a type and a rank, and the forms that they are made of."""

    def __init__(self, folds: Sequence[Fold], dtype: str, rank: int) -> None:
        self.forms = Forms(dtype)
        self._patterns = [p for fold in folds for p in _patterns(self.forms, fold, rank)]
        self._fitting: dict[tuple[Outline, frozenset[str]], list[Pattern]] = {}
        self._fit: dict[Heads, bool] = {}

    def fitting(self, outline: Outline, within: frozenset[str]) -> list[Pattern]:
        """Those that a form of this outline may match, in order; `within` are the names of all operators in it."""
        key = outline, within
        if key not in self._fitting:
            near = frozenset[Key]().union(*outline)
            given = [p for p in self._patterns if p.within <= within and p.needs <= near] if near else []
            self._fitting[key] = [p for p in given if _may_match(p, outline)]
        return self._fitting[key]

    def fit_any(self, heads: Heads) -> bool:
        """Whether any may match a form of such heads."""
        if heads not in self._fit:
            self._fit[heads] = any(p.top <= heads.top and p.within <= heads.within for p in self._patterns)
        return self._fit[heads]

    def fit_one(self, op: Declared, within: frozenset[str]) -> bool:
        """Whether any may match a form that is one atom of an operator."""
        return bool(self.fitting((frozenset({_told(op, 1)}),), within))


@lru_cache(maxsize=64)
def patterns_of(folds: tuple[Fold, ...], dtype: str, rank: int) -> Patterns:
    """What definitions look like at a type and a rank."""
    return Patterns(folds, dtype, rank)


def _patterns(forms: Forms, fold: Fold, rank: int) -> Iterator[Pattern]:
    for template in templates(fold.definition, rank):
        variables = frozenset(template.variables)
        form = form_of(forms, template, template.operator, 1.0, template.variables)
        if form is None or not any(outline := outline_of(forms, form)):
            continue  # arithmetic alone: it would match everywhere
        within = _within(forms, form)
        yield Pattern(fold, template, form, outline, within)
        if len(form) == 1 and not any(forms.atoms[a].head in variables for a, _ in form[0][0]):
            beside = with_rest(template, rank)
            assert beside.rest is not None
            whole = form_of(forms, beside, beside.operator, 1.0, (*beside.variables, beside.rest))
            if whole is not None:
                yield Pattern(fold, beside, whole, outline, within)


def outline_of(forms: Forms, form: Poly, nested: int = NESTED) -> Outline:
    """The outline of a form, with that of sums in it, which may be so deep in each other."""
    return tuple(frozenset(key for a, e in factors for key in _keys(forms, a, e, nested)) for factors, _ in form)


def _keys(forms: Forms, number: int, exponent: int, nested: int) -> Iterator[Key]:
    """What tells factors apart, where they are no leaves; sums are told by the operators among their summands."""
    atom = forms.atoms[number]
    if atom.head is None and nested:
        for product in outline_of(forms, atom.inputs[0], nested - 1):
            yield from (key._replace(sums=(exponent, *key.sums)) for key in product)
    elif isinstance(atom.head, Declared):
        yield _told(atom.head, exponent)


def _within(forms: Forms, form: Poly) -> frozenset[str]:
    """The names of all operators in a form."""
    found = set[str]()
    for atom in {forms.atoms[a] for factors, _ in form for a, _ in factors}:
        if isinstance(atom.head, Declared):
            found.add(atom.head.name)
        found.update(*(_within(forms, below) for below in atom.inputs))
    return frozenset(found)


def _told(op: Declared, exponent: int) -> Key:
    return Key(op.name, op.structure(), exponent)


def _may_match(pattern: Pattern, outline: Outline) -> bool:
    """Whether each product of a pattern has one of a term that has all its operators, and each may have its own."""
    told = [ours for ours in pattern.outline if ours]
    if len(told) > len(outline) or (len(pattern.form) == 1 and len(outline) != 1 and told):
        return False
    return all(any(ours <= theirs for theirs in outline) for ours in told)


def form_of(forms: Forms, template: Template, op: Declared, factor: float, inputs: Sequence[Term]) -> Poly | None:
    """The form of a definition over inputs, times a factor; None where it has none there."""
    try:
        with assuming():
            meaning = template.meaning(op, factor, inputs)
            return None if meaning is None else forms.of(meaning)
    except (SuperoptError, ArithmeticError, LookupError, ValueError):
        return None
