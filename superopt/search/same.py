"""Whether a candidate model computes what the original does, within what rounding explains.

The original without the runtime's optimizations is the standard; a 64-bit evaluation of it, where the caller has one,
tells how far rounding alone takes it. Every sample must agree. An output that shows nothing, because it is constant or
not a number, is not examined, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from superopt.cost.child import Caller, Here
from superopt.cost.runtime import Argument, Draw, Feeds, Runtime, RuntimeFailed
from superopt.memory import give_back, giving_back_large
from superopt.search.settings import Setting

Array = NDArray[Any]


class Reference(Protocol):
    """A 64-bit evaluation of the original."""

    def __call__(self, feeds: Feeds, stopped: Callable[[], bool] = ...) -> Sequence[Array | None]:
        """The outputs in order; None for one that it cannot evaluate, and for all soon after it is stopped."""


DRAWS = (
    Draw(scale=1.0),
    Draw(scale=0.1, size=2),
    Draw(scale=10.0),
    Draw(scale=1.0, offset=1.0, size=3),
    Draw(scale=255.0, uniform=True),  # pictures as they come
)

LONGEST_S = 900.0
"""What has not run on all samples by then is taken as never ending."""

_Interface: TypeAlias = tuple[tuple[Argument, ...], tuple[Argument, ...]]

NOISE_FACTOR = 16.0
ABSOLUTE_EPS = 1024.0
REFERENCE_FACTOR = 8.0
REFERENCE_EPS = 32.0
"""The bounds, in units of the machine epsilon of an output's type; errors are relative to its largest magnitude.

Against the original: 1024 ε, 1.2e-4 for float32. Rounding errors of a sum of k products grow like √k ε and pass on
from layer to layer: networks of a hundred layers show 10 to 100 ε between two correct orders of summation, wrong
programs nearly always 10⁻² or more. Some samples are ill conditioned, as a softmax over logits of a thousand: there,
16 times the *noise* is allowed, the change of the original itself under the runtime's optimizations and under inputs
changed in their last bit; it is looked at only where the bound without it is passed.

Against the 64-bit evaluation: 8 times the original's own error, and 32 ε where that happens to be nearly exact. This is
the sharper bound, and tells a program that is wrong by little from one that rounds differently."""


@dataclass(frozen=True)
class OutputAgreement:
    """One output: the largest errors over all samples, relative to its largest magnitude in each.

    `error` is the candidate's against the original; the other two are against the 64-bit evaluation, where there is
    one. `bound` is what `error` was allowed in the sample where it came closest to it or passed it most. `saturated`
    says that no sample shows two values that differ by more than rounding, as a softmax that always gives 1 for one
    class: then agreement says little of what stands before it.
    """

    name: str
    error: float
    bound: float
    original_error: float | None
    candidate_error: float | None
    examined: bool
    saturated: bool
    agrees: bool


@dataclass(frozen=True)
class Agreement:
    """The outcome over all outputs and samples; `reason` says why it does not agree or was not examined."""

    agrees: bool
    examined: bool
    reason: str
    samples: int
    outputs: tuple[OutputAgreement, ...]

    @property
    def error(self) -> float:
        """The largest relative error of any output against the original."""
        return max((o.error for o in self.outputs), default=0.0)


@dataclass
class _Sample:
    """Inputs, and what is known of the outputs that they should give: `found` are the candidate's, by session."""

    feeds: Feeds
    expected: list[Array]
    exact: Sequence[Array | None] = ()
    noisy: list[list[Array]] = field(default_factory=list)
    found: list[list[Array]] = field(default_factory=list)


def examine(
    original: Path,
    candidate: Path,
    runtime: Runtime,
    reference: Reference | None = None,
    seed: int = 0,
    inputs: Sequence[Feeds] = (),
    draws: Sequence[Draw] = DRAWS,
    settings: Sequence[Setting] = (Setting(),),
    caller: Caller | None = None,
    working: Path | None = None,
) -> Agreement:
    """Compare two models on the given inputs and on random ones of several scales and offsets.

    They are of the sizes of each setting in turn. Those that the original does not accept are left out. The original
    is run on the standard of the runtime, without its optimizations; the candidate is so too, and on the runtime
    itself, with them. One session is alive at a time, the `caller`'s (of this process by default). `working` is the
    original as it loads sooner, if it does: by it is told how far rounding alone takes it. Raises `RuntimeFailed` for
    an original that does not load, crashes the runtime, or never ends; a candidate that does does not agree.
    """
    give_back()  # a session of a model that was just written needs as much again
    caller, standard = caller or Here(), runtime.standard
    feeds = [*inputs, *caller.call(LONGEST_S, _drawn, standard, working or original, seed, draws, settings)]
    # The values in 64 bits are computed while the caller, which may be another process, runs the models.
    with giving_back_large(), _evaluated(reference, feeds) as exact:
        interface, outputs = caller.call(LONGEST_S, _expected, standard, original, feeds, len(inputs))
        names = [a.name for a in interface[1]]
        accepted = [i for i, values in enumerate(outputs) if values is not None]
        samples = [_Sample(feeds[i], outputs[i] or []) for i in accepted]
        if not samples:
            return Agreement(False, False, "the original runs on none of the inputs", 0, ())
        difference = _run_all(original, candidate, runtime, interface, samples, caller)
        if difference:
            return Agreement(False, True, difference, len(samples), ())
        for i, sample in zip(accepted, samples, strict=True):
            sample.exact = exact(i) or [None] * len(names)
    apart = [sample for sample in samples if not _judged(names, [sample]).agrees]
    if apart:
        _add_noise(working or original, runtime, interface, apart, seed, caller)
    return _judged(names, samples)


@contextmanager
def _evaluated(
    reference: Reference | None, feeds: Sequence[Feeds]
) -> Iterator[Callable[[int], Sequence[Array | None] | None]]:
    """What gives the values in 64 bits by the number of the inputs, if there is a way to them: evaluated in a thread
    from now on.

    Matrix products are that thread's alone: others of the library would wait for those that run the models.
    """
    stop = Event()
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(1, "reference") as pool:
        try:
            found = [pool.submit(reference, given, stop.is_set) for given in feeds] if reference else []
            yield lambda i: found[i].result() if found else None
        finally:
            stop.set()  # who interrupts waits for one operator at most
            pool.shutdown(wait=False, cancel_futures=True)


def _run_all(
    original: Path,
    candidate: Path,
    runtime: Runtime,
    interface: _Interface,
    samples: Sequence[_Sample],
    caller: Caller,
) -> str:
    """Run the candidate on all samples, and the original where its runtime is not the standard; why that cannot be."""
    feeds = [sample.feeds for sample in samples]
    if runtime.standard != runtime:  # it may round otherwise, or lack an operator: that is not the candidate's doing
        _, outputs = caller.call(LONGEST_S, _ran, runtime, original, True, interface, feeds)
        for sample, own in zip(samples, outputs, strict=True):
            sample.noisy.append(own)
    for where, optimize in ((runtime.standard, False), (runtime, True)):
        try:
            difference, outputs = caller.call(LONGEST_S, _ran, where, candidate, optimize, interface, feeds)
        except RuntimeFailed as error:
            return f"candidate: {error}"
        if difference:
            return difference
        for sample, found in zip(samples, outputs, strict=True):
            sample.found.append(found)
    return ""


def _drawn(
    standard: Runtime, model: Path, seed: int, draws: Sequence[Draw], settings: Sequence[Setting]
) -> list[Feeds]:
    """Random inputs for a model, of the sizes of each setting in turn; those of types without a random are left out."""
    session, found = standard.session(model, optimize=False), []
    for i, draw in enumerate(draws):
        with suppress(RuntimeFailed):
            found.append(standard.feeds(session, seed + i, settings[i % len(settings)].draw(draw)))
    return found


def _expected(
    standard: Runtime, original: Path, feeds: Sequence[Feeds], demanded: int
) -> tuple[_Interface, list[list[Array] | None]]:
    """What the original gives for each of some inputs; None for those that it does not accept, except for the first,
    which are demanded: there `RuntimeFailed` is raised.
    """
    session = standard.session(original, optimize=False)
    found: list[list[Array] | None] = []
    for i, given in enumerate(feeds):
        try:
            found.append(standard.run(session, given))
        except RuntimeFailed:
            if i < demanded:
                raise
            found.append(None)
    return (standard.inputs(session), standard.outputs(session)), found


def run_once(runtime: Runtime, model: Path, draw: Draw) -> None:
    """Run a model without the runtime's optimizations on random inputs. Raises `RuntimeFailed`."""
    session = runtime.session(model, optimize=False)
    runtime.run(session, runtime.feeds(session, 0, draw))


def _ran(
    runtime: Runtime, model: Path, optimize: bool, interface: _Interface, feeds: Sequence[Feeds]
) -> tuple[str, list[list[Array]]]:
    """The outputs for some inputs; none where the interface is another, and how it differs."""
    session = runtime.session(model, optimize)
    difference = _interface_differs(interface, (runtime.inputs(session), runtime.outputs(session)))
    return difference, [] if difference else [runtime.run(session, f) for f in feeds]


def _add_noise(
    original: Path, runtime: Runtime, interface: _Interface, samples: list[_Sample], seed: int, caller: Caller
) -> None:
    """How much the original itself changes: with inputs changed in their last bit, and when it is optimized."""
    rngs = [np.random.default_rng(seed + i) for i in range(len(samples))]
    as_given = [s.feeds for s in samples]
    changed = [{k: _last_bit(v, r) for k, v in feeds.items()} for feeds, r in zip(as_given, rngs, strict=True)]
    for where, optimize, feeds in ((runtime.standard, False, changed), (runtime, True, as_given)):
        _, outputs = caller.call(LONGEST_S, _ran, where, original, optimize, interface, feeds)
        for sample, noisy in zip(samples, outputs, strict=True):
            sample.noisy.append(noisy)


def _judged(names: Sequence[str], samples: list[_Sample]) -> Agreement:
    worst = [_Worst(name, [s.expected[i] for s in samples]) for i, name in enumerate(names)]
    for sample in samples:
        for outputs in sample.found:
            for i, found in enumerate(outputs):
                worst[i].compare(sample, i, found)
    return _agreement(worst, len(samples))


def _last_bit(value: Array, rng: np.random.Generator) -> Array:
    """Floating-point inputs up or down to their next neighbour."""
    if not np.issubdtype(value.dtype, np.floating):
        return value
    toward = np.where(rng.random(value.shape) < 0.5, -np.inf, np.inf).astype(value.dtype)
    return np.asarray(np.nextafter(value, toward))


def _interface_differs(ours: _Interface, theirs: _Interface) -> str:
    for kind, a, b in zip(("inputs", "outputs"), ours, theirs, strict=True):
        if [(x.name, x.type) for x in a] != [(x.name, x.type) for x in b]:
            return f"{kind} differ: {_show(a)} and {_show(b)}"
        for x, y in zip(a, b, strict=True):
            if len(x.shape) != len(y.shape) or (kind == "inputs" and x.shape != y.shape):
                return f"{kind} differ: {_show([x])} and {_show([y])}"
    return ""


def _show(arguments: Sequence[Any]) -> str:
    return ", ".join(f"{a.name} {a.type}{list(a.shape)}" for a in arguments)


class _Worst:
    """The comparisons of one output, as they come in."""

    def __init__(self, name: str, expected: list[Array]) -> None:
        self.name, self.reason = name, ""
        self.examined = _shows_something(expected)
        self.saturated = not any(map(_shows_two_values, expected))
        self.error = self.bound = 0.0
        self.original_error: float | None = None
        self.candidate_error: float | None = None

    def compare(self, sample: _Sample, index: int, found: Array) -> None:
        """Compare what the candidate gave for one sample."""
        expected, exact = sample.expected[index], sample.exact[index]
        if found.shape != expected.shape or found.dtype != expected.dtype:
            self._fail(f"is {found.dtype}{found.shape}, not {expected.dtype}{expected.shape}")
        elif not np.issubdtype(expected.dtype, np.floating):
            if any(not np.array_equal(n[index], expected) for n in sample.noisy):
                self.examined = False  # as the place of the largest of two that are equal but for rounding
            elif not np.array_equal(found, expected):
                self.error = math.inf
                self._fail("is not equal, and is of no floating-point type")
        elif not _same_special(found, expected):
            self.error = math.inf
            self._fail("is infinite or not a number in other places")
        else:
            noise = max((relative_error(n[index], expected) for n in sample.noisy), default=0.0)
            self._judge(found, expected, exact, noise)

    def _judge(self, found: Array, expected: Array, exact: Array | None, noise: float) -> None:
        eps = float(np.finfo(expected.dtype).eps)
        error, bound = relative_error(found, expected), ABSOLUTE_EPS * eps + NOISE_FACTOR * noise
        if not self.bound or error / bound > self.error / self.bound:
            self.error, self.bound = error, bound
        if error > bound:
            self._fail(f"differs from the original by {error:.2g} of its largest magnitude; {bound:.2g} is allowed")
        if exact is None or not _same_special(expected, exact):
            return
        ours, theirs = relative_error(expected, exact), relative_error(found, exact)
        self.original_error = max(ours, self.original_error or 0.0)
        self.candidate_error = max(theirs, self.candidate_error or 0.0)
        allowed = REFERENCE_FACTOR * max(ours, noise) + REFERENCE_EPS * eps
        if theirs > allowed:
            self._fail(f"is off by {theirs:.2g} from a 64-bit evaluation, the original by {ours:.2g}")

    def _fail(self, reason: str) -> None:
        self.reason = self.reason or f'output "{self.name}" {reason}'

    def outcome(self) -> OutputAgreement:
        """What has come in, as a value."""
        errors = (self.error, self.bound, self.original_error, self.candidate_error)
        return OutputAgreement(self.name, *errors, self.examined, self.saturated, not self.reason)


def relative_error(found: Array, expected: Array) -> float:
    """The largest difference over the largest magnitude expected, both over finite elements; infinite where one is not.

    Only elements that are finite in `expected` count.
    """
    finite = np.isfinite(expected)
    if not finite.any():
        return 0.0
    wanted = expected[finite].astype(np.float64)
    difference = float(np.abs(found[finite].astype(np.float64) - wanted).max())
    largest = float(np.abs(wanted).max())
    if math.isnan(difference):
        return math.inf
    return difference / largest if largest else (math.inf if difference else 0.0)


def _same_special(found: Array, expected: Array) -> bool:
    """Whether infinities and NaNs stand in the same places."""
    return found.shape == expected.shape and all(
        np.array_equal(test(found), test(expected)) for test in (np.isnan, np.isposinf, np.isneginf)
    )


def _shows_something(values: list[Array]) -> bool:
    """Whether an output has two different finite values, in one sample or in two."""
    finite = [v[np.isfinite(v)] if np.issubdtype(v.dtype, np.floating) else v for v in values]
    seen = [v for v in finite if v.size]
    return bool(seen) and any((v != seen[0].flat[0]).any() for v in seen)


def _shows_two_values(value: Array) -> bool:
    """Whether elements that stand out from rounding at the largest magnitude differ; a single one shows itself."""
    if not np.issubdtype(value.dtype, np.floating):
        return bool(value.size < 2 or (value != value.flat[0]).any())
    finite = value[np.isfinite(value)].astype(np.float64)
    if finite.size < 2:
        return bool(finite.size)
    resolution = REFERENCE_EPS * float(np.finfo(value.dtype).eps) * np.abs(finite).max()
    seen = finite[np.abs(finite) > resolution]
    return bool(seen.size and (np.abs(seen - seen[0]) > resolution).any())


def _agreement(worst: list[_Worst], samples: int) -> Agreement:
    outputs = tuple(w.outcome() for w in worst)
    examined = bool(outputs) and all(o.examined for o in outputs)
    agrees = all(o.agrees for o in outputs)
    reason = next((w.reason for w in worst if w.reason), "")
    if agrees and not examined:
        unseen = ", ".join(f'"{o.name}"' for o in outputs if not o.examined)
        what = "is constant, not a number, or not the same in two runs of the original,"
        reason = f"not examined: {unseen} {what} on all {samples} samples"
    return Agreement(agrees, examined, reason, samples, outputs)
