"""Witnesses against a rule: the smallest sizes, and plain integers, at which both sides have a value and differ.

Sizes are tried in the order of their sum, so none smaller was missed among those tried. Values are small integers,
evaluated in 64- and 32-bit floating point; one counts where everything that the source computes is finite, the target
differs by far more than rounding could, and both precisions give the same values: so a runtime shows it too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.arithmetic.floats import FLOAT, SINGLE, Float
from superopt.dim import Condition, Dim, Truth
from superopt.errors import ShapeError, Undecided
from superopt.evaluate import evaluate_all
from superopt.operators.constant import Scalar
from superopt.operators.declared import Declared
from superopt.operators.instances import is_small
from superopt.operators.logic import Logical, Where
from superopt.operators.solved_sizes import fitting
from superopt.operators.symbolic import all_symbols, defaults, resize
from superopt.rules.rule import Rule
from superopt.substitution import substitute, substitute_condition
from superopt.term import Fact, Term, size_symbols, subterms, variables

FAR = 1e-5
"""By which part of the larger of two values they must differ to count as different."""

STEADY = 1e-3
"""By which part a value may change from 64 bits to 32: what changes more is rounding, made large."""

EXCESS = 7
"""By how much, at most, the sizes together pass the smallest that they may be."""

DRAWS = 6
"""How many samples of integers are tried at each sizes."""

DRAWN = 300
"""How many are, where there is but one size: of a rule about numbers."""


Place: TypeAlias = "tuple[int, tuple[int, ...], float, float]"
"""An output, the place in it, and the values of both sides there."""


@dataclass(frozen=True)
class Witness:
    """Both sides at sizes that are numbers, the elements of each variable in row-major order, and where they differ."""

    source: tuple[Term, ...]
    target: tuple[Term, ...]
    values: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]
    """Of each variable its name, shape and elements."""
    output: int
    """Which of the outputs differs."""
    place: tuple[int, ...]
    """Where, in that output; empty where the shapes differ."""
    left: str
    right: str

    @property
    def arrays(self) -> dict[str, Array]:
        """The inputs by name."""
        return {name: np.asarray(elements, np.float64).reshape(shape) for name, shape, elements in self.values}

    def __str__(self) -> str:
        given = ", ".join(f"?{name}{list(shape)} = {_shown(elements)}" for name, shape, elements in self.values)
        output = f" of output {self.output + 1}" if len(self.source) > 1 else ""
        where = f" at [{', '.join(map(str, self.place))}]{output}" if self.place else output
        return f"{self.left} on the left and {self.right} on the right{where} for {given}"


def find_witness(rule: Rule, seed: int = 0, most: int = 500) -> Witness | None:
    """The smallest witness against a rule among the first `most` sizes; None where there is none of such sizes.

    None too for what jumps (comparisons, rounding) after what is not exact in floating point: it might be rounding.
    """
    roots, count = (*rule.source, *rule.target), len(rule.source)
    rng, several = np.random.default_rng(seed), bool(all_symbols(*roots))
    for example in itertools.islice(by_size(roots, rule.conditions, most), most):
        found = differing(example[:count], example[count:], rule.facts, int(rng.integers(2**31)), several=several)
        if found is not None:
            return found
    return None


def by_size(roots: Sequence[Term], given: Sequence[Condition], most: int) -> Iterator[tuple[Term, ...]]:
    """The terms at all sizes at which they are well formed and the conditions hold, those of smallest sum first."""
    names = all_symbols(*roots)
    try:
        fixed, rest = fitting(roots, given, names)
    except ShapeError:
        return
    free, usual = [n for n in names if n not in fixed], defaults(roots)
    dims = size_symbols(*roots)
    least = [usual.get(n, int(n in dims)) for n in free]
    for step in itertools.islice(_steps(len(free)), 20 * most):
        sizes: dict[str, Dim] = {n: a + b for n, a, b in zip(free, least, step, strict=True)}
        try:
            if any(_broken(substitute_condition(c, sizes)) for c in rest):
                continue
            sizes |= {n: substitute(d, sizes) for n, d in fixed.items()}
            example = resize(roots, sizes)
        except (ShapeError, Undecided):
            continue
        if is_small(example):
            yield example


def _broken(truth: Truth) -> bool:
    return truth is not True


def _steps(count: int) -> Iterator[tuple[int, ...]]:
    """Vectors of natural numbers, those of smallest sum first."""
    for total in range(EXCESS + 1 if count else 1):
        for bars in itertools.combinations(range(total + count - 1), count - 1) if count else [()]:
            ends = (-1, *bars, total + count - 1)
            yield tuple(b - a - 1 for a, b in itertools.pairwise(ends)) if count else ()


def differing(
    source: tuple[Term, ...],
    target: tuple[Term, ...],
    given: Sequence[Fact],
    seed: int,
    simple: bool = True,
    several: bool = True,
) -> Witness | None:
    """A witness at the sizes of these terms, which are numbers, of `simple` integers; None where no sample is one.

    More samples are tried where there are not `several` sizes to try.
    """
    rng = np.random.default_rng(seed)
    facts = {v.label: {f.kind for f in given if f.of.label == v.label} for v in variables(*source, *target)}
    if any(s.shape != t.shape for s, t in zip(source, target, strict=True)):
        ones = {v: np.ones(_shape(v), np.int64) for v in variables(*source, *target)}
        return _witness(source, target, ones)
    if _jumps(source, target) or _of_truth(source, target):
        return None
    for _ in range(DRAWS if several else DRAWN):
        drawn = {v: _draw(v, facts[v.label], rng) for v in variables(*source, *target)}
        if _differs(source, target, drawn) is not None:
            return _witness(source, target, _simplified(source, target, drawn, facts) if simple else drawn)
    return None


def _draw(v: Term, facts: set[str], rng: np.random.Generator) -> Array:
    values = rng.integers(-3, 4, size=_shape(v))
    values = np.abs(values) if "nonnegative" in facts else values
    return np.asarray(np.where(values == 0, 1, values) if "nonzero" in facts else values)


def _simplified(
    source: tuple[Term, ...], target: tuple[Term, ...], values: dict[Term, Array], facts: Mapping[str, set[str]]
) -> dict[Term, Array]:
    """The values with each element made 0, else 1, wherever both sides then still differ."""
    for v in values:
        for place in np.ndindex(values[v].shape):
            for simple in (0, 1):
                if (simple == 0 and "nonzero" in facts[v.label]) or values[v][place] in (0, simple):
                    continue
                tried = values | {v: values[v].copy()}
                tried[v][place] = simple
                if _differs(source, target, tried) is not None:
                    values = tried
                    break
    return values


def _differs(source: tuple[Term, ...], target: tuple[Term, ...], values: Mapping[Term, Array]) -> Place | None:
    """The first place at which both sides differ by far, in 64 bits and, by the same values, in 32."""
    lefts, rights = _computed(source, target, values, FLOAT), _computed(source, target, values, SINGLE)
    if lefts is None or rights is None:
        return None
    for output, ((left, right), (left32, right32)) in enumerate(zip(lefts, rights, strict=True)):
        steady = _near(left, left32, STEADY) & _near(right, right32, STEADY)
        places = np.argwhere(steady & ~_near(left, right, FAR))
        if len(places):
            place = tuple(map(int, places[0]))
            return output, place, float(left[place]), float(right[place])
    return None


def _computed(
    source: tuple[Term, ...], target: tuple[Term, ...], values: Mapping[Term, Array], ring: Float
) -> list[tuple[Array, Array]] | None:
    """Both sides of each output; None where something that the source computes is not finite."""
    given = {v: a.astype(ring.dtype) for v, a in values.items()}
    whole = tuple(subterms(*source))
    with np.errstate(all="ignore"):
        computed = evaluate_all(whole, ring, given)
        if not all(np.isfinite(a).all() for a in computed):
            return None
        rights = evaluate_all(target, ring, given)
    lefts = (computed[whole.index(s)] for s in source)
    return [(np.asarray(a, np.float64), np.asarray(b, np.float64)) for a, b in zip(lefts, rights, strict=True)]


def _near(a: Array, b: Array, part: float) -> Array:
    """Where two arrays agree to a part of the larger, or are both no numbers, or the same infinity."""
    with np.errstate(invalid="ignore"):
        near = np.isfinite(a - b) & (np.abs(a - b) <= part * np.maximum(np.abs(a), np.abs(b)) + part)
    return np.asarray(near | (a == b) | (np.isnan(a) & np.isnan(b)))


def _of_truth(source: tuple[Term, ...], target: tuple[Term, ...]) -> bool:
    """Whether a variable, which is a number, is taken for a truth value."""
    for t in subterms(*source, *target):
        taken = t.inputs if isinstance(t.operator, Logical) else t.inputs[:1] if isinstance(t.operator, Where) else ()
        if any(i.is_variable for i in taken):
            return True
    return False


def _jumps(source: tuple[Term, ...], target: tuple[Term, ...]) -> bool:
    """Whether rounding may change a value by far: it is inexact, and then compared or cut."""
    operators = [t.operator for t in subterms(*source, *target) if isinstance(t.operator, Declared)]
    inexact = any(
        not op.value.is_integer() if isinstance(op, Scalar) else op.needs & {"div", "root", "exp"} for op in operators
    )
    return inexact and any(op.jumps for op in operators)


def _witness(source: tuple[Term, ...], target: tuple[Term, ...], values: Mapping[Term, Array]) -> Witness:
    plain = tuple((v.label, _shape(v), tuple(map(int, a.ravel()))) for v, a in values.items())
    for output, (s, t) in enumerate(zip(source, target, strict=True)):
        if s.shape != t.shape:
            return Witness(source, target, plain, output, (), f"shape {s.shape}", f"shape {t.shape}")
    found = _differs(source, target, values)
    assert found is not None
    output, place, left, right = found
    return Witness(source, target, plain, output, place, f"{left:.7g}", f"{right:.7g}")


def _shape(v: Term) -> tuple[int, ...]:
    return tuple(d for d in v.shape if isinstance(d, int))


def _shown(elements: Sequence[int]) -> str:
    shown = " ".join(map(str, elements[:12]))
    return f"{shown} …" if len(elements) > 12 else shown
