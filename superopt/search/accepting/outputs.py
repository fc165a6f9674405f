"""What outputs of two models say of each other: that one computes what the other does, within what rounding explains.

Every sample must agree. An output that shows nothing, because it is constant or not a number, is not examined, and says
so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.cost.inputs import Feeds
from superopt.search.accepting.agreement import Agreement, OutputAgreement
from superopt.search.accepting.bounds import (
    MOST_NOISE,
    NOISE_FACTOR,
    REFERENCE_FACTOR,
    allowed_of,
)
from superopt.search.accepting.distance import relative_error, same_special, shows_two_values
from superopt.search.accepting.laid import Value, taken
from superopt.search.accepting.values import (
    as_overflowed,
    is_astray,
    is_finite,
    noise_in,
    numbers_of,
    rounded_to,
    steady_in,
    the_same,
)


@dataclass(eq=False)
class Sample:
    """Inputs, and what is known of the outputs that they should give: `noisy` and `jolted` are the original's when a
    little is changed, `found` the candidate's, by session, the first without the runtime's optimizations. Where the
    original may be `overflowing`, as it has 16 bits where the candidate has 32, nothing is told by values of it that
    are not finite. A `blank` one, of whose inputs rows are zeros, tells whether what is finite stays so, and nothing
    else.
    """

    feeds: Feeds
    expected: list[Value]
    exact: Sequence[Value | None]
    overflowing: bool = False
    blank: bool = False
    noisy: list[list[Value]] = field(default_factory=list)
    jolted: list[list[Value]] = field(default_factory=list)
    found: list[list[Value]] = field(default_factory=list)
    _told: tuple[tuple[int, ...], list[_Worst]] | None = field(default=None, init=False, repr=False)

    def told(self, names: Sequence[str]) -> list[_Worst]:
        """What each of its outputs, which have these names, comes to; compared anew only where more is known: nothing
        that is known becomes another.
        """
        exact = sum(value is not None for value in self.exact)
        known = (exact, len(self.noisy), len(self.jolted), len(self.found))
        if self._told is None or self._told[0] != known:
            self._told = known, [_compared(name, self, i) for i, name in enumerate(names)]
        return self._told[1]


def judged(names: Sequence[str], samples: Sequence[Sample]) -> Agreement:
    """What a candidate's outputs of these names come to, over all samples."""
    worst = [_Worst(name) for name in names]
    told = [sample.told(names) for sample in samples]
    for i, one in enumerate(worst):
        astray = any(of_each[i].is_astray for of_each in told)
        for of_each in told:
            one.join(of_each[i], shows=not (astray and of_each[i].is_the_same))
    return _agreement(worst, sum(not sample.blank for sample in samples))


def _compared(name: str, sample: Sample, index: int) -> _Worst:
    """The comparison of one output in one sample."""
    found = _Worst(name)
    found.compare(sample, index)
    return found


class _Worst:
    """The comparisons of one output, as they come in."""

    def __init__(self, name: str) -> None:
        self.name, self.reason, self.is_wrong, self.is_discrete = name, "", False, True
        self.is_the_same = self.is_astray = False  # where there is much noise
        self.same_twice = self.saturated = True
        self.shown: Array | None = None  # a finite value
        self.varies = False
        self.error = self.bound = 0.0
        self.original_error: float | None = None
        self.candidate_error: float | None = None

    @property
    def examined(self) -> bool:
        """Whether the output has two different finite values, in one sample that tells something or in two, and is the
        same in two runs.
        """
        return self.varies and self.same_twice

    def join(self, other: _Worst, shows: bool = True) -> None:
        """Take in what another sample came to, and if it shows something, what its values are."""
        self.reason, self.is_wrong = self.reason or other.reason, self.is_wrong or other.is_wrong
        self.is_discrete = self.is_discrete and other.is_discrete
        self.same_twice = self.same_twice and other.same_twice
        if shows:
            both = self.shown is not None and other.shown is not None
            self.saturated = self.saturated and other.saturated
            self.varies = self.varies or other.varies or (both and bool(self.shown != other.shown))
            self.shown = other.shown if self.shown is None else self.shown
        if other.closeness > self.closeness:
            self.error, self.bound = other.error, other.bound
        self.original_error = _larger(self.original_error, other.original_error)
        self.candidate_error = _larger(self.candidate_error, other.candidate_error)

    @property
    def closeness(self) -> float:
        """How near the error comes to what is allowed, or by how many times it passes that; less than none where no
        numbers were told from each other.
        """
        return self.error / self.bound if self.bound else (self.error or -1.0)

    def compare(self, sample: Sample, index: int) -> None:
        """Compare what the candidate gave for one sample. One output of one sample is in memory at a time."""
        if sample.blank:
            if is_finite(taken(sample.expected[index])) and not all(is_finite(taken(o[index])) for o in sample.found):
                self._fail("is not finite where rows of the inputs are zeros, and the original is")
            return
        expected, exact = taken(sample.expected[index]), sample.exact[index]
        noisy, jolted = ([taken(values[index]) for values in some] for some in (sample.noisy, sample.jolted))
        noise, steady = noise_in(noisy, expected), steady_in(jolted, numbers_of(expected))
        if noise <= MOST_NOISE:
            self._look(numbers_of(expected)[steady])
        wanted = None if exact is None else taken(exact)
        for outputs in sample.found:
            found = taken(outputs[index])
            if sample.overflowing:
                found = as_overflowed(found, expected)
            if self._is_comparable(found, expected, wanted, [*noisy, *jolted]) and noise <= MOST_NOISE:
                told = wanted[steady] if wanted is not None and wanted.shape == numbers_of(expected).shape else None
                kind = rounded_to(expected) if sample.overflowing else numbers_of(expected).dtype
                self._judge(numbers_of(found)[steady], numbers_of(expected)[steady], told, noise, kind)
        if noise > MOST_NOISE:
            ours = [numbers_of(taken(outputs[index])) for outputs in sample.found]
            if sample.overflowing:
                ours = [as_overflowed(found, numbers_of(expected)) for found in ours]
            same = the_same(ours, numbers_of(expected), noisy, noise)
            self.is_the_same, self.is_astray = same is not None, is_astray(ours, numbers_of(expected), noise)
            if same is not None:
                self._look(same)

    def _look(self, expected: Array) -> None:
        if self.varies and not self.saturated:
            return
        finite = expected[np.isfinite(expected)] if np.issubdtype(expected.dtype, np.floating) else expected
        if finite.size:
            self.shown = finite.flat[0] if self.shown is None else self.shown
            self.varies = self.varies or bool((finite != self.shown).any())
        self.saturated = self.saturated and not shows_two_values(expected)

    def _is_comparable(self, found: Array, expected: Array, exact: Array | None, others: list[Array]) -> bool:
        """Whether it is to be told by how much two arrays of floating-point numbers differ. What must be equal is
        compared here, unless the original itself gives `others` when a little is changed.
        """
        if any(other.shape != expected.shape for other in others):
            self.same_twice = False  # as how many of all are above a bound that some are at but for rounding
            return False
        if found.shape != expected.shape or found.dtype != expected.dtype:
            self._fail(f"is {found.dtype}{found.shape}, not {expected.dtype}{expected.shape}")
            return False
        found, expected, *others = map(numbers_of, (found, expected, *others))
        if not np.issubdtype(expected.dtype, np.floating):
            if any(not np.array_equal(other, expected) for other in others):
                self.same_twice = False  # as the place of the largest of two that are equal but for rounding
            elif not np.array_equal(found, expected):
                self.error = math.inf
                self._fail("is not equal, and is of no floating-point type", is_discrete=True)
            return False
        if not same_special(found, expected, exact):
            self.error = math.inf
            is_rounding = exact is not None and exact.shape == expected.shape and not same_special(expected, exact)
            self._fail("is infinite or not a number in other places", is_rounding)
            return False
        return True

    def _judge(self, found: Array, expected: Array, exact: Array | None, noise: float, kind: np.dtype[Any]) -> None:
        absolute, nearly_exact = allowed_of(kind)
        error, bound = relative_error(found, expected), absolute + NOISE_FACTOR * noise
        if error / bound > self.closeness:
            self.error, self.bound = error, bound
        is_told = exact is not None and same_special(expected, exact)
        ours = relative_error(expected, exact) if exact is not None and is_told else 0.0
        if error > bound:
            reason = f"differs from the original by {error:.2g} of its largest magnitude; {bound:.2g} is allowed"
            self._fail(reason, error <= NOISE_FACTOR * ours)
        if exact is None or not is_told:
            return
        theirs = relative_error(found, exact)
        self.original_error = _larger(self.original_error, ours)
        self.candidate_error = _larger(self.candidate_error, theirs)
        allowed = REFERENCE_FACTOR * max(ours, noise) + nearly_exact
        if theirs > allowed:
            self._fail(f"is off by {theirs:.2g} from a 64-bit evaluation, the original by {ours:.2g}", error <= bound)

    def _fail(self, reason: str, is_rounding: bool = False, is_discrete: bool = False) -> None:
        """Note a difference. It `is_rounding` where it is small beside the original, and only farther from 64 bits;
        where the original itself is about as far from these; or where that is infinite in other places than in them.
        Of what `is_discrete` nothing tells how large it is.
        """
        self.reason = self.reason or f'output "{self.name}" {reason}'
        self.is_wrong |= not is_rounding
        self.is_discrete &= is_discrete

    def outcome(self) -> OutputAgreement:
        """What has come in, as a value."""
        errors = (self.error, self.bound, self.original_error, self.candidate_error)
        return OutputAgreement(self.name, *errors, self.examined, self.saturated, not self.reason)


def _larger(a: float | None, b: float | None) -> float | None:
    """The larger of two, of those that are known."""
    return max((error for error in (a, b) if error is not None), default=None)


def _agreement(worst: list[_Worst], samples: int) -> Agreement:
    outputs = tuple(w.outcome() for w in worst)
    examined = bool(outputs) and all(o.examined for o in outputs)
    agrees = all(o.agrees for o in outputs)
    reason = next((w.reason for w in worst if w.reason), "")
    if agrees and not examined:
        unseen = ", ".join(f'"{o.name}"' for o in outputs if not o.examined)
        what = "is constant, not a number, or not the same in two runs of the original,"
        reason = f"not examined: {unseen} {what} on all {samples} samples"
    rounds = not agrees and not any(w.is_wrong for w in worst)
    discrete = not agrees and all(w.is_discrete for w in worst)
    return Agreement(agrees, examined, reason, samples, outputs, rounds=rounds, discrete=discrete)
