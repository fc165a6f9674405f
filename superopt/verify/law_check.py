"""The laws themselves: each holds at all small sizes that it fits, and none follows from the others.

That every law holds (`law_sides.py`) says too that they do not contradict each other: the operators are a model of
them. That a law follows from the others is a proof. That it does not is never claimed, only that no proof was found
within the solver's limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import TypeAlias

from superopt.operators.laws.collected import Law, laws_in, scope_of, widened
from superopt.operators.symbolic import conditions
from superopt.verify.law_scope import families
from superopt.verify.law_sides import Kind, Tried, try_law
from superopt.verify.law_sizes import LIMIT
from superopt.verify.prove import Proved, Unknown, prove
from superopt.workers import processes

RESOURCES = 300_000
"""z3 resource units for a proof that an instance of a law follows from the others."""

Told: TypeAlias = "Callable[[str, int, int], None]"


def derived(instances: Sequence[Law]) -> Proved | Unknown:
    """Whether all instances of a law follow from the other laws, lemmas aside; `Unknown` where one is not proved to.

    The others are those of the instance's scope, with the operators that they bring in.
    """
    used: set[str] = set()
    for law in instances:
        near = laws_in(widened(scope_of(law.left, law.right)))
        others = [other for other in near if other.name != law.name and not other.lemma]
        guard = [*conditions(law.left, law.right), *law.conditions]
        verdict = prove([law.left], [law.right], guard, law.facts, RESOURCES, others)
        if isinstance(verdict, Unknown):
            return Unknown(f"{verdict.why}: {law}")
        used.update(verdict.laws)
    return Proved(tuple(sorted(used)))


@dataclass(frozen=True)
class Settings:
    """How many shapes an instance is tried on, the seed of values and samples, and whether redundancy is looked for."""

    limit: int = LIMIT
    seed: int = 0
    redundancy: bool = True


@dataclass(frozen=True)
class Checked:
    """What was found of a law, over all its instances; `fault` says what is wrong with it."""

    name: str
    lemma: bool
    instances: int
    complete: int
    """How many of the instances were tried on all shapes that they fit, the others on a sample."""
    shapes: int
    carriers: Mapping[Kind, Mapping[str, int]]
    """In how many instances it holds, by the kind of the claim and the carrier."""
    follows: Proved | Unknown | None
    """Whether it follows from the others; None where that was not asked."""
    seconds: float
    fault: str | None = None


def check_law(instances: Sequence[Law], settings: Settings = Settings()) -> Checked:
    """Try all instances of one law, and look whether they follow from the other laws."""
    start = time.perf_counter()
    tried = [try_law(law, settings.limit, settings.seed) for law in instances]
    fault = next((t.fault for t in tried if t.fault is not None), None)
    follows = derived(instances) if settings.redundancy and fault is None else None
    lemma = instances[0].lemma
    if isinstance(follows, Proved) and not lemma:
        fault = f"it follows from {', '.join(follows.laws) or 'no law at all'}, and is not marked as a lemma"
    return Checked(
        instances[0].name,
        lemma,
        len(tried),
        sum(t.complete for t in tried),
        sum(t.shapes for t in tried),
        _counted(tried),
        follows,
        time.perf_counter() - start,
        fault,
    )


def _counted(tried: Sequence[Tried]) -> dict[Kind, dict[str, int]]:
    found: dict[Kind, dict[str, int]] = {}
    for t in tried:
        for carrier, kind in t.carriers:
            by_carrier = found.setdefault(kind, {})
            by_carrier[carrier] = by_carrier.get(carrier, 0) + 1
    return found


def check_laws(
    names: Sequence[str] | None = None,
    settings: Settings = Settings(),
    workers: int = 1,
    told: Told | None = None,
) -> list[Checked]:
    """Check the laws of these names, or all. The result depends on the settings alone, but for the seconds."""
    known = families()
    wanted = list(known) if names is None else list(names)
    found: list[Checked] = []
    with _pool(workers, known) as run:
        for checked in run(wanted, [settings] * len(wanted)):
            found.append(checked)
            if told:
                told("check laws", len(found), len(wanted))
    return found


@contextmanager
def _pool(workers: int, known: Mapping[str, Sequence[Law]]) -> Iterator[Callable[..., Iterable[Checked]]]:
    if workers <= 1:
        yield partial(map, lambda name, settings: check_law(known[name], settings))
        return
    with processes(workers) as pool:
        yield partial(pool.map, _check_named)


_known = cache(families)
"""For processes that do nothing else: elsewhere the catalogue may change."""


def _check_named(name: str, settings: Settings) -> Checked:
    return check_law(_known()[name], settings)
