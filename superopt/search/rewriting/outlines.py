"""Which definitions the form of a term may be folded to, told before anything is matched: by what its products are
made of.

The patterns are the definitions at a type and a rank. They depend on no model, so they are made once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

from superopt.demands import assuming
from superopt.errors import SuperoptError
from superopt.operators.declared import Declared
from superopt.search.rewriting.forms import Forms
from superopt.search.rewriting.rewrites import Fold
from superopt.search.rewriting.sums import Poly
from superopt.search.rewriting.templates import Template, templates, with_rest
from superopt.term import Term

Outline: TypeAlias = "tuple[frozenset[object], ...]"
"""For each product of a form the operators of its factors with their exponents."""

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

    @cached_property
    def needs(self) -> frozenset[object]:
        """All operators of the outline."""
        return frozenset[object]().union(*self.outline)


class Patterns:
    """The patterns for terms of a type and a rank, and the forms that they are made of."""

    def __init__(self, folds: Sequence[Fold], dtype: str, rank: int) -> None:
        self.forms = Forms(dtype)
        self._patterns = [p for fold in folds for p in _patterns(self.forms, fold, rank)]
        self._fitting: dict[Outline, list[Pattern]] = {}

    def fitting(self, outline: Outline) -> list[Pattern]:
        """Those that a form of this outline may match, in order."""
        if outline not in self._fitting:
            near = frozenset[object]().union(*outline)
            fit = [p for p in self._patterns if p.needs <= near and _may_match(p, outline)] if near else []
            self._fitting[outline] = fit
        return self._fitting[outline]

    def fit_one(self, op: Declared) -> bool:
        """Whether any may match a form that is one atom of an operator."""
        return bool(self.fitting((frozenset({_told(op, 1)}),)))


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
        yield Pattern(fold, template, form, outline)
        if len(form) == 1 and not any(forms.atoms[a].head in variables for a, _ in form[0][0]):
            beside = with_rest(template, rank)
            assert beside.rest is not None
            whole = form_of(forms, beside, beside.operator, 1.0, (*beside.variables, beside.rest))
            if whole is not None:
                yield Pattern(fold, beside, whole, outline)


def outline_of(forms: Forms, form: Poly, nested: int = NESTED) -> Outline:
    """The outline of a form, with that of sums in it, which may be so deep in each other."""
    return tuple(frozenset(key for a, e in factors for key in _keys(forms, a, e, nested)) for factors, _ in form)


def _keys(forms: Forms, number: int, exponent: int, nested: int) -> Iterator[object]:
    """What tells factors apart, where they are no leaves; sums are told by the operators among their summands."""
    atom = forms.atoms[number]
    if atom.head is None and nested:
        for product in outline_of(forms, atom.inputs[0], nested - 1):
            yield from (("sum", exponent, key) for key in product)
    elif isinstance(atom.head, Declared):
        yield _told(atom.head, exponent)


def _told(op: Declared, exponent: int) -> object:
    return op.name, op.structure(), exponent


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
