"""Definitions read backwards: terms that are what a composite operator means, replaced by it.

A template (`templates.py`) is matched against the normal form of a term (`forms.py`, `patterns.py`) where that may fit
(`outlines.py`), which tells what the inputs may be. The attributes that are numbers follow from coefficients: each of
these is a product of powers of them, so their logarithms are the solution of linear equations. Then the definition is
written out over the inputs, with these attributes, and its form must be that of the term. Nothing else is relied on.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from superopt.demands import assuming
from superopt.dim import Dim
from superopt.errors import SuperoptError
from superopt.operators.constant import filled
from superopt.operators.declared import Declared
from superopt.operators.layout import Transpose
from superopt.relations import equal_shapes
from superopt.search.rewriting.forms import Forms, Outlook, single
from superopt.search.rewriting.outlines import Pattern, Patterns, form_of, outline_of, patterns_of
from superopt.search.rewriting.patterns import Match, Matcher
from superopt.search.rewriting.ratios import Place, ratios
from superopt.search.rewriting.rewrites import Fold
from superopt.search.rewriting.sums import Poly, View
from superopt.search.rewriting.templates import REST, STEP, Template, probes
from superopt.term import REAL, Term, make, subterms

MATCHES, CHOICES = 4, 16
"""How many matches of a template are looked at, and how many ways of choosing its inputs in each."""

KNOWN = 2
"""How many solutions of a template are tried before it is solved anew."""

_TYPES = (REAL, "float32", "float64")


Solutions: TypeAlias = "dict[Template, list[list[float]]]"
"""What numbers were found for a template, the last first: within a model they are mostly the same."""


class Folding:
    """Finds where definitions may be folded; remembers forms until it is told to forget."""

    def __init__(self, folds: Sequence[Fold]) -> None:
        self._folds = tuple(folds)
        self._begun: dict[tuple[str, int], tuple[Patterns, Forms]] = {}
        self._solutions: Solutions = {}
        self._outlook = Outlook()

    def forget_terms(self) -> None:
        """Forget what was seen of terms."""
        self._begun.clear()
        self._outlook = Outlook()

    def at(self, term: Term) -> Iterator[tuple[Fold, Term]]:
        """The composite terms that a term may be replaced by."""
        dtype, op = term.type.dtype, term.operator
        composite = isinstance(op, Declared) and type(op).definition is not Declared.definition
        if dtype not in _TYPES or composite or not self._folds:
            return
        patterns, forms = self._begin(dtype, term.type.rank)
        head, heads = single(term), self._outlook.of(term)
        if not (patterns.fit_any(heads) if head is None else patterns.fit_one(head, heads.within)):
            return  # most terms of a network: their forms are made where arithmetic on them asks
        form = forms.of(term)
        seen = {term}
        for pattern in patterns.fitting(outline_of(forms, form), heads.within):
            for made in _folded(forms, pattern, term, form, self._solutions):
                if made not in seen:
                    seen.add(made)
                    yield pattern.fold, made

    def _begin(self, dtype: str, rank: int) -> tuple[Patterns, Forms]:
        """The patterns for a type and a rank, and forms to match with them."""
        if (dtype, rank) not in self._begun:
            patterns = patterns_of(self._folds, dtype, rank)
            self._begun[dtype, rank] = patterns, patterns.forms.forked()
        return self._begun[dtype, rank]


def _folded(forms: Forms, pattern: Pattern, term: Term, form: Poly, solutions: Solutions) -> Iterator[Term]:
    whole = pattern.template
    wanted = (*whole.variables, *([whole.rest] if whole.rest is not None else []))
    matches = Matcher(forms, wanted).sums(pattern.form, form, Match({}))
    for match in itertools.islice(matches, MATCHES):
        template = whole.sized(match.sizes)
        if template is None:
            continue
        with assuming():  # sizes are those of the graph, which is well formed
            choices = _choices(forms, match, wanted, term)
        for inputs in itertools.islice(itertools.product(*choices), CHOICES):
            made = _made(forms, template, inputs, term, form, solutions)
            if made is not None:
                yield made
                return


def _choices(forms: Forms, match: Match, wanted: Sequence[Term], term: Term) -> list[list[Term]]:
    """What each input may be, up to the first that nothing may be: then none is looked for any further."""
    found = list[list[Term]]()
    given = [t for t in subterms(*term.inputs) if t.type.dtype in _TYPES]
    for variable in wanted:
        found.append(list(dict.fromkeys(_candidates(forms, match, variable, term, given))))
        if not found[-1]:
            break
    return found


def _candidates(forms: Forms, match: Match, wanted: Term, term: Term, given: Sequence[Term]) -> Iterator[Term]:
    """What an input may be: a term of those given that has the form, up to a factor; what is nowhere, zeros or ones."""
    if wanted not in match.bound:
        return
    view, poly = match.bound[wanted]
    if not poly or (len(poly) == 1 and not poly[0][0]):
        sizes = _sizes(view, wanted.type.rank, term)
        if sizes is not None and wanted.label != REST:
            yield filled(1.0 if poly else 0.0, sizes)
        return
    monic = forms.monic(poly)
    ranked = [t for t in given if t.type.rank == wanted.type.rank]
    yield from (t for t in ranked if forms.monic(forms.of(t, view)) == monic)
    yield from _transposed(forms, view, monic, ranked)


def _sizes(view: View, rank: int, term: Term) -> tuple[Dim, ...] | None:
    """The shape of what a view reads, where that is a view of the whole term."""
    if len(view) != term.type.rank or not all(a in view for a in range(rank)):
        return None
    return tuple(term.shape[view.index(a)] for a in range(rank))


def _transposed(forms: Forms, view: View, poly: Poly, given: Sequence[Term]) -> Iterator[Term]:
    """A term that is wanted with its axes in another order, which can be had."""
    (wanted,) = (forms.atoms[n] for factors, _ in poly for n, e in factors) if _is_atom(poly) else (None,)
    if wanted is None or wanted.view is None or len(wanted.view) != len(view):
        return  # of another rank, through axes of one place
    alike = {wanted._replace(view=None)}  # to look up in: compared, sizes that symbols leave open raise
    for t in given:
        own = forms.monic(forms.of(t))
        atom = forms.atoms[own[0][0][0][0]] if _is_atom(own) else None
        if atom is None or atom.view is None or atom._replace(view=None) not in alike:
            continue
        places = {a: i for i, a in enumerate(atom.view) if a is not None}
        perm = {o: places[a] for o, a in zip(view, wanted.view, strict=True) if o is not None and a in places}
        left = (a for a in range(t.type.rank) if a not in perm.values())  # axes of one place
        order = tuple(perm[a] if a in perm else next(left, 0) for a in range(t.type.rank))
        if sorted(order) == list(range(t.type.rank)) and order != tuple(range(t.type.rank)):
            yield make(Transpose(order), (t,))


def _is_atom(poly: Poly) -> bool:
    """Whether a form is one atom, times a number."""
    return len(poly) == 1 and len(poly[0][0]) == 1 and poly[0][0][0][1] == 1


def _made(
    forms: Forms, template: Template, inputs: Sequence[Term], term: Term, form: Poly, solutions: Solutions
) -> Term | None:
    """The composite term over inputs, if with some attributes it has the form and type of a term."""
    known = solutions.setdefault(template, [])
    numbers = next((n for n in known if _is_solution(forms, template, n, inputs, form)), None)
    if numbers is None:
        numbers = _solved(forms, template, inputs, form)
        if numbers is None or not _is_solution(forms, template, numbers, inputs, form):
            return None
        known[:] = [numbers, *known[: KNOWN - 1]]
    try:
        with assuming() as conditions:
            made = template.made(template.with_numbers(numbers[:-1]), numbers[-1], inputs)
    except SuperoptError:
        return None
    return made if _is_alike(made, term) and all(c.relation == "<=" for c in conditions) else None


def _is_alike(made: Term, term: Term) -> bool:
    """Whether two terms are of one type, whatever symbols stand for: a form does not tell a value from its copies along
    further axes, which may be of one place.
    """
    if made.type.dtype != term.type.dtype or made.type.rank != term.type.rank:
        return False
    return equal_shapes(made.shape, term.shape)


def _is_solution(
    forms: Forms, template: Template, numbers: Sequence[float], inputs: Sequence[Term], form: Poly
) -> bool:
    return form_of(forms, template, template.with_numbers(numbers[:-1]), numbers[-1], inputs) == form


def _solved(forms: Forms, template: Template, inputs: Sequence[Term], form: Poly) -> list[float] | None:
    """The attributes to be solved for, then the factor: as logarithms they solve linear equations."""
    start = [*probes(len(template.unknown)), 1.0]
    solving = [*range(len(template.unknown)), *([len(start) - 1] if template.rest is not None else [])]
    if not solving:
        return start

    def of(values: Sequence[float]) -> Poly | None:
        return form_of(forms, template, template.with_numbers(values[:-1]), values[-1], inputs)

    base, told = of(start), list[dict[Place, float]]()
    moved = ([v * STEP if j == i else v for j, v in enumerate(start)] for i in solving)
    for other in itertools.chain([form], map(of, moved)):
        found = None if base is None or other is None else ratios(forms, base, other)
        if found is None:
            return None
        told.append(found)
    places = dict.fromkeys(place for found in told for place in found)
    wanted, *columns = ([found.get(place, 0.0) for place in places] for found in told)
    logs, *_ = np.linalg.lstsq(np.array(columns).T / math.log(STEP), np.array(wanted), rcond=None)
    for i, log in zip(solving, logs, strict=True):
        start[i] = forms.number(float(np.float32(start[i] * math.exp(float(log)))))
    return start
