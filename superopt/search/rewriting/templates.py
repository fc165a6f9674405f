"""What a definition looks like at some rank: the operator with attributes to be solved for, over variables.

Everything follows from the declaration: numbers are attributes to be solved for, sizes are symbols that a match tells,
axes and flags are tried, ranks are those at which the shape rule accepts them.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from superopt.demands import assuming
from superopt.dim import Dim, symbol, symbol_name
from superopt.errors import SuperoptError
from superopt.operators.activations import times
from superopt.operators.declared import Declared
from superopt.operators.meanings import FURTHER_DEFINITIONS, SPELLINGS, defined
from superopt.operators.pointwise import Mul
from superopt.term import Term, make, variable

PROBE, STEP = 1 / math.e, 2.0
"""What a number is where it is still to be solved for (times a root of a prime for each further one), and what it is
multiplied by to see where it goes."""


REST = "rest"
"""The name of the variable for what stands in a product beside a definition."""


@dataclass(frozen=True)
class Template:
    """An operator over variables; `rest` is what its value is multiplied by beside them, if that may be something."""

    definition: str
    operator: Declared
    variables: tuple[Term, ...]
    rest: Term | None
    unknown: tuple[str, ...]
    """The attributes to be solved for."""

    def meaning(self, operator: Declared, factor: float, inputs: Sequence[Term]) -> Term | None:
        """The definition over inputs (the rest last), times a factor where there is a rest."""
        own = inputs[: len(inputs) - (self.rest is not None)]
        term = definition(self.definition, operator, own)
        return None if term is None else self._with_rest(term, factor, inputs)

    def made(self, operator: Declared, factor: float, inputs: Sequence[Term]) -> Term:
        """The operator itself over inputs, likewise. Raises what `make` raises."""
        own = inputs[: len(inputs) - (self.rest is not None)]
        return self._with_rest(make(operator, own), factor, inputs)

    def sized(self, met: Iterable[tuple[Dim, Dim]]) -> Template | None:
        """With the sizes among its attributes as they met those of a graph; None where one met none."""
        told = {symbol_name(ours): theirs for ours, theirs in met}
        sizes = self.operator.sizes()
        found = [told.get(symbol_name(d)) for d in sizes]
        given = [d for d in found if d is not None]
        return dataclasses.replace(self, operator=self.operator.with_sizes(given)) if len(given) == len(sizes) else None

    def with_numbers(self, values: Sequence[float]) -> Declared:
        """The operator with its unknown attributes as given."""
        return dataclasses.replace(self.operator, **dict(zip(self.unknown, values, strict=True)))  # type: ignore[type-var]

    def _with_rest(self, term: Term, factor: float, inputs: Sequence[Term]) -> Term:
        return term if self.rest is None else Mul()(times(term, factor), inputs[-1])


def definition(name: str, operator: Declared, inputs: Sequence[Term]) -> Term | None:
    """What an operator means over inputs, by its own definition, or by a further one or a spelling of that name."""
    with assuming():  # sizes are symbols, or those of a model that was read
        further = FURTHER_DEFINITIONS.get(name) or SPELLINGS.get(name)
        return operator.definition(*inputs) if further is None else further.term_of(operator, *inputs)


@lru_cache(maxsize=512)
def templates(name: str, rank: int) -> tuple[Template, ...]:
    """The templates of a definition whose value has a rank, each meaning once."""
    cls = defined(name)
    found: dict[Term, Template] = {}
    unknown = tuple(f.name for f in dataclasses.fields(cls) if f.type == "float")  # type: ignore[arg-type]
    for operator in _operators(cls, rank):
        for variables in _ranked(operator, rank):
            template = Template(name, operator, variables, None, unknown)
            try:
                with assuming():
                    fits = operator.type_of(tuple([v.type for v in variables])).rank == rank
                meaning = template.meaning(operator, 1.0, variables) if fits else None
            except (SuperoptError, ArithmeticError, LookupError, TypeError, ValueError):
                continue
            if meaning is not None and not meaning.is_variable:
                found.setdefault(meaning, template)
    return tuple(found.values())


def with_rest(template: Template, rank: int) -> Template:
    """A template for the operator times something else: what stands in the same product."""
    rest = variable(REST, [symbol(f"{REST}{a}") for a in range(rank)])
    return dataclasses.replace(template, rest=rest)


def probes(count: int) -> tuple[float, ...]:
    """Numbers that no model has, for attributes that are not known yet."""
    return tuple(PROBE * math.sqrt(p) for p in (1, 2, 3, 5, 7, 11)[:count])


def _ranked(operator: Declared, rank: int) -> Iterator[tuple[Term, ...]]:
    """Inputs of the ranks that operators have them of: the value's own, numbers, vectors, what an axis leaves, and
    what axes are reduced of, or an axis makes that falls into several.
    """
    given = operator.structure()
    left = (rank - v for v in given if isinstance(v, int) and v <= rank)
    ranks = {rank, 0, 1, *left, *(rank + len(v) for v in given if isinstance(v, tuple)), rank + len(operator.sizes())}
    for chosen in itertools.product(sorted(ranks, reverse=True), repeat=operator.arity):
        if max(chosen) >= rank:
            yield tuple([_input(i, r) for i, r in enumerate(chosen)])


@cache
def _input(number: int, rank: int) -> Term:
    """An input of a template, of sizes of its own."""
    return variable(f"x{number}", [symbol(f"d{number}{a}") for a in range(rank)])


def _operators(cls: type[Declared], rank: int) -> Iterator[Declared]:
    """The operator with each choice of axes and flags; an integer with a default is a flag."""
    fields: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(cls)  # type: ignore[arg-type]
    numbers = iter(probes(len(fields)))
    subsets = [s for n in (1, 2) for s in itertools.combinations(range(rank + n), n)]
    tried: list[Sequence[Any]] = []
    for f in fields:
        whole = range(rank) if f.default is dataclasses.MISSING else (0, 1)
        of_type: dict[object, Sequence[Any]] = {"int": whole, "tuple[int, ...]": subsets, "Dim": [symbol(f.name)]}
        tried.append([next(numbers)] if f.type == "float" else of_type.get(f.type, ()))
    for values in itertools.product(*tried):
        yield cls(*values)
