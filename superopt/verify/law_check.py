"""The laws themselves: each holds at all small sizes that it fits, and none follows from the others.

A law is tested *exactly* in each carrier that has all that its operators need. Where none has, it is *compared*: both
sides agree in 64-bit floating point up to rounding; and it may hold *for any function*: in a carrier with a keyed hash
in place of what that lacks. That every law holds says too that they do not contradict each other: the operators are a
model of them.

That a law follows from the others is a proof. That it does not is never claimed, only that no proof was found within
the solver's limit.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from math import prod
from typing import Literal, TypeAlias

import numpy as np

from superopt.arithmetic import EXACT, FLOAT, Array, Carrier
from superopt.dim import Dim, assuming, symbols
from superopt.operators.declare import CATALOGUE, Declared
from superopt.operators.instances import all_symbols, conditions, resize
from superopt.operators.laws.collected import Law, Scope, laws_in, scope_of, widened
from superopt.term import Operator, Term, subterms, variable, variables
from superopt.verify.law_sizes import LIMIT, Columns, Sizes, generator, small_sizes
from superopt.verify.prove import Proved, Unknown, prove
from superopt.workers import processes

EVALUATIONS = 16
"""How often an instance is evaluated, at least: on other values again, where it fits fewer shapes."""

TOLERANCE = 1e-9
"""Which part of the largest element two 64-bit floats may differ by."""

RESOURCES = 300_000
"""z3 resource units for a proof that an instance of a law follows from the others."""

Told: TypeAlias = "Callable[[str, int, int], None]"
Kind = Literal["exact", "any function", "compared"]


def wide_scope() -> Scope:
    """What the laws are checked in: a finite part of all the scopes that there are.

    Every operator; ranks 0 to 4; all permutations of up to three axes and six of four (the two layouts of images,
    swaps of neighbours, the reverse); all broadcasts to up to three axes and five to four; all re-shapes of up to four
    axes; reductions along any axes of up to three; an element taken twice along each of three axes. So each law is
    there at its ranks and along its axes.
    """
    reduced = ("sum", "mean", "largest", "smallest")
    images = {(0, 1, 2, 3), (0, 2, 3, 1), (0, 3, 1, 2), (1, 0, 2, 3), (0, 1, 3, 2), (3, 2, 1, 0)}
    spreads = {((), 4), ((1,), 4), ((0, 2), 4), ((2, 3), 4), ((0, 1, 2, 3), 4)}
    return Scope(
        frozenset(CATALOGUE),
        frozenset(range(5)),
        frozenset(p for rank in range(4) for p in itertools.permutations(range(rank))) | images,
        frozenset((axes, r) for r in range(4) for n in range(r + 1) for axes in itertools.combinations(range(r), n))
        | spreads,
        frozenset((a, b) for a in range(5) for b in range(5)),
        frozenset((name, axes, rank) for name in reduced for rank in (1, 2, 3) for axes in _subsets(rank)),
        frozenset({("avgpool", (1,)), *(("take", (axis, (0, 0))) for axis in range(3))}),
    )


def _subsets(rank: int) -> list[tuple[int, ...]]:
    return [axes for n in range(1, rank + 1) for axes in itertools.combinations(range(rank), n)]


def families() -> dict[str, list[Law]]:
    """The laws of the wide scope by name: of each its instances at all ranks, axes and permutations."""
    found: dict[str, list[Law]] = {}
    for law in laws_in(wide_scope()):
        found.setdefault(law.name, []).append(law)
    return found


# --------------------------------------------------------------------------------------------------------- both sides


@dataclass(frozen=True)
class Tried:
    """How one instance of a law fared: on how many shapes, which may be all that it fits, and where it holds."""

    shapes: int
    complete: bool
    carriers: tuple[tuple[str, Kind], ...] = ()
    fault: str | None = None


def try_law(law: Law, limit: int = LIMIT, seed: int = 0) -> Tried:
    """Evaluate both sides of a law at small sizes, in the carriers that can tell."""
    if (unbound := _unbound(law)) is not None:
        return Tried(0, True, fault=unbound)
    sizes = small_sizes(law, limit, seed)
    tried = Tried(len(sizes.rows), sizes.complete)
    if not tried.shapes:
        found = "no shape fits it" if sizes.complete else "none of the shapes that were drawn fits it"
        return replace(tried, fault=f"{found}, so it says nothing: {law}")
    sides = _Sides(law, sizes, seed)
    fault = sides.mistyped()
    if fault is not None:
        return replace(tried, fault=fault)
    asked = needs(law)
    exact = [ring for ring in EXACT if asked <= ring.has]
    for ring in exact or [FLOAT]:
        fault = sides.difference(ring)
        if fault is not None:
            return replace(tried, fault=fault)
    if exact:
        return replace(tried, carriers=tuple((ring.name, "exact") for ring in exact))
    hashed = (ring for ring in EXACT if _can_meet(law, ring) and sides.difference(ring) is None)
    agreed: tuple[tuple[str, Kind], ...] = tuple((ring.name, "any function") for ring in itertools.islice(hashed, 1))
    return replace(tried, carriers=((FLOAT.name, "compared"), *agreed))


def _unbound(law: Law) -> str | None:
    """Of a condition that is about nothing in the law."""
    names = set(all_symbols(law.left, law.right))
    for c in law.conditions:
        if not symbols(c.left) | symbols(c.right) <= names:
            return f"its condition {c} is about a size that neither side has: {law}"
    for fact in law.facts:
        if fact.of not in variables(law.left, law.right):
            return f"its condition {fact} is about no variable of it: {law}"
    return None


def needs(law: Law) -> frozenset[str]:
    """What a carrier must have besides sums and products for a law's operators, and what these are made of."""
    found = {need for t in subterms(law.left, law.right) for need in _needs(t)}
    return frozenset(found | {"order" for fact in law.facts if fact.kind == "nonnegative"})


def _needs(term: Term) -> frozenset[str]:
    op = term.operator
    if not isinstance(op, Declared):
        return frozenset()
    with assuming():
        meaning = op.definition(*(variable(f"x{i}", t.shape, t.type.dtype) for i, t in enumerate(term.inputs)))
    return op.needs.union(*map(_needs, subterms(meaning) if meaning is not None else ()))


def _can_meet(law: Law, ring: Carrier) -> bool:
    """Whether values can be drawn of which the facts hold."""
    return "order" in ring.has or all(fact.kind != "nonnegative" for fact in law.facts)


class _Sides:
    """Both sides of a law at each of its sizes."""

    def __init__(self, law: Law, sizes: Sizes, seed: int) -> None:
        self.law, self.sizes, self.seed = law, sizes, seed
        self.known = Columns(dict(zip(sizes.names, sizes.rows.T, strict=True)))
        self.terms = list(subterms(law.left, law.right))
        self.arguments = {t: self.known.table(_arguments(t)).tolist() for t in self.terms}
        self.sized: dict[tuple[Term, tuple[int, ...]], Operator] = {}

    def mistyped(self) -> str | None:
        """Where the sides are of different types, or something is empty though it is well formed."""
        left, right = self.law.left, self.law.right
        if left.type.dtype != right.type.dtype or left.type.rank != right.type.rank:
            return f"its sides are of different types, {left.type} and {right.type}: {self.law}"
        wrong = (self.known.table(left.shape) != self.known.table(right.shape)).any(axis=1)
        for t in self.terms:
            wrong |= (self.known.table(t.shape) < 1).any(axis=1)
        if not wrong.any():
            return None
        return f"its sides differ in shape, or something is empty: {self._shown(int(np.argmax(wrong)))}"

    def difference(self, ring: Carrier) -> str | None:
        """Where the sides differ in a carrier; None where they agree at all sizes."""
        values = _Values(self.law, ring, generator(self.seed, str(self.law), ring.name))
        agree, examined, count = _close if ring is FLOAT else _equal, False, len(self.sizes.rows)
        for i in range(max(count, EVALUATIONS)):
            with np.errstate(all="ignore"):  # some of what is drawn has no root, no logarithm, no inverse
                left, right = self._evaluated(i % count, values)
            if left.shape != right.shape or not agree(left, right):
                return f"its sides differ ({ring.name}, seed {self.seed}): {self._shown(i % count)}"
            examined = examined or ring is not FLOAT or bool(np.isfinite(left).any())
        return None if examined else f"it has no finite value ({ring.name}, seed {self.seed}): {self.law}"

    def _evaluated(self, row: int, values: _Values) -> tuple[Array, Array]:
        values.next()
        done: dict[Term, Array] = {}
        for t in self.terms:
            arguments = tuple(self.arguments[t][row])
            if t.is_variable:
                done[t] = values.of(t, arguments)
            else:
                done[t] = self._operator(t, arguments).eval(values.ring, *(done[i] for i in t.inputs))
        return done[self.law.left], done[self.law.right]

    def _operator(self, term: Term, arguments: tuple[int, ...]) -> Operator:
        if (term, arguments) not in self.sized:
            assert isinstance(term.operator, Declared)
            self.sized[term, arguments] = term.operator.with_sizes(arguments)
        return self.sized[term, arguments]

    def _shown(self, row: int) -> str:
        """The law at one of its sizes."""
        values: dict[str, Dim] = dict(zip(self.sizes.names, map(int, self.sizes.rows[row]), strict=True))
        left, right = resize((self.law.left, self.law.right), values)
        return str(replace(self.law, left=left, right=right, conditions=(), facts=()))


class _Values:
    """Random elements of a carrier, of which a law's facts hold; in every other evaluation some of them are 0."""

    def __init__(self, law: Law, ring: Carrier, rng: np.random.Generator) -> None:
        self.ring, self.rng = ring, rng
        self.kinds = {v: {f.kind for f in law.facts if f.of is v} for v in variables(law.left, law.right)}
        self.drawn, self.used, self.zeros = self._more(0), 0, True

    def next(self) -> None:
        """Another evaluation."""
        self.zeros = not self.zeros

    def of(self, v: Term, shape: tuple[int, ...]) -> Array:
        """Values for a variable: elements that were not given out yet."""
        count = prod(shape)
        if self.used + count > len(self.drawn):
            self.drawn, self.used = self._more(count), 0
        values = self.drawn[self.used : self.used + count].reshape(shape)
        self.used += count
        if "nonnegative" in self.kinds[v]:
            values = np.abs(values)
        if self.zeros and "nonzero" not in self.kinds[v]:
            values = np.where(self.rng.random(shape) < 0.25, 0, values)
        return values

    def _more(self, least: int) -> Array:
        return self.ring.sample((max(least, 2**14),), self.rng)


def _equal(left: Array, right: Array) -> bool:
    return bool((left == right).all())


def _close(left: Array, right: Array) -> bool:
    """Equal up to rounding where both are numbers; where one is none, so is the other."""
    finite = np.isfinite(left)
    if (finite != np.isfinite(right)).any():
        return False
    a, b = left[finite], right[finite]
    return bool((np.abs(a - b) <= TOLERANCE * max(1.0, np.abs(a).max(initial=0.0))).all())


def _arguments(term: Term) -> Sequence[Dim]:
    """The sizes of a variable, or those among the attributes of an operator."""
    op = term.operator
    return op.sizes() if isinstance(op, Declared) else term.shape


# ------------------------------------------------------------------------------------------- what follows from others


def derived(instances: Sequence[Law], resources: int = RESOURCES) -> Proved | Unknown:
    """Whether all instances of a law follow from the other laws, lemmas aside; `Unknown` where one is not proved to.

    The others are those of the instance's scope, with the operators that they bring in.
    """
    used: set[str] = set()
    for law in instances:
        near = laws_in(widened(scope_of(law.left, law.right)))
        others = [other for other in near if other.name != law.name and not other.lemma]
        guard = [*conditions(law.left, law.right), *law.conditions]
        verdict = prove([law.left], [law.right], guard, law.facts, resources, others)
        if isinstance(verdict, Unknown):
            return Unknown(f"{verdict.why}: {law}")
        used.update(verdict.laws)
    return Proved(tuple(sorted(used)))


# ---------------------------------------------------------------------------------------------------------- all of it


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
