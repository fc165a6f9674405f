"""Whether a candidate model computes what the original does, within what rounding explains.

The original without the runtime's optimizations is the standard; a 64-bit evaluation of it, where the caller has one,
tells how far rounding alone takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from superopt.arithmetic import Array
from superopt.cost.child import Caller, Here
from superopt.cost.runtime import Draw, Feeds, Runtime, RuntimeFailed
from superopt.errors import SuperoptError
from superopt.folders import temporary_folder
from superopt.memory import give_back, giving_back_large
from superopt.onnx_io import neighbours, save_nudged
from superopt.search.agreement import Agreement, Sample, judged, relative_error, same_special
from superopt.search.laid import Value, laid, taken
from superopt.search.runs import Interface, drawn, expected, ran
from superopt.search.settings import Setting


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

MOST_NOISE = 1e-2
"""By how much weights changed in their last bit may change an output: wrong programs are off by more, mostly."""

LONGEST_S = 900.0
"""What has not run on all samples by then is taken as never ending."""


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
    sized = [settings[i % len(settings)].draw(draw) for i, draw in enumerate(draws)]
    feeds = [*inputs, *caller.call(LONGEST_S, drawn, standard, working or original, seed, sized)]
    # The values in 64 bits are computed while the caller, which may be another process, runs the models.
    with temporary_folder() as folder, giving_back_large(), _evaluated(reference, feeds, folder) as exact:
        interface, outputs = caller.call(LONGEST_S, expected, standard, original, feeds, len(inputs), folder)
        names = [a.name for a in interface[1]]
        told = [values is not None and (i < len(inputs) or not _are_empty(values)) for i, values in enumerate(outputs)]
        accepted = [i for i, tells in enumerate(told) if tells]
        samples = [Sample(feeds[i], outputs[i] or [], [None] * len(names)) for i in accepted]
        if not samples:
            reason = "the original runs on none of the inputs, or gives nothing for them"
            return Agreement(False, False, reason, 0, ())
        difference = _run_all(original, candidate, runtime, interface, samples, caller, folder)
        if difference:
            return Agreement(False, True, difference, len(samples), ())
        rough = _apart(names, samples)  # known without the values in 64 bits, which are still computed
        _add_noise(working or original, runtime, interface, rough, seed, caller, folder)
        for i, sample in zip(accepted, samples, strict=True):
            sample.exact = exact(i) or sample.exact
        late = [sample for sample in _apart(names, samples) if sample not in rough]
        _add_noise(working or original, runtime, interface, late, seed, caller, folder)
        _add_noise_of_weights(working or original, standard, interface, _apart(names, samples), seed, caller, folder)
        return judged(names, samples)


def _are_empty(outputs: Sequence[Value]) -> bool:
    """Whether outputs hold nothing, so that nothing can be told of them."""
    return bool(outputs) and all(0 in value.shape for value in outputs)


@contextmanager
def _evaluated(
    reference: Reference | None, feeds: Sequence[Feeds], folder: Path
) -> Iterator[Callable[[int], Sequence[Value | None] | None]]:
    """What gives the values in 64 bits by the number of the inputs, if there is a way to them: evaluated in a thread
    from now on, large ones laid in a folder.

    Matrix products are that thread's alone: others of the library would wait for those that run the models.
    """
    stop = Event()

    def evaluated(known: Reference, given: Feeds) -> Sequence[Value | None]:
        values = known(given, stop.is_set)
        return [None if value is None or stop.is_set() else laid(value, folder) for value in values]

    with threadpool_limits(1, "blas"), ThreadPoolExecutor(1, "reference") as pool:
        try:
            found = [pool.submit(evaluated, reference, given) for given in feeds] if reference else []
            yield lambda i: found[i].result() if found else None
        finally:
            stop.set()  # who interrupts waits for one operator at most
            pool.shutdown(wait=False, cancel_futures=True)


def _run_all(
    original: Path,
    candidate: Path,
    runtime: Runtime,
    interface: Interface,
    samples: Sequence[Sample],
    caller: Caller,
    folder: Path,
) -> str:
    """Run the candidate on all samples, and the original where its runtime is not the standard; why that cannot be."""
    feeds = [sample.feeds for sample in samples]
    if runtime.standard != runtime:  # it may round otherwise, or lack an operator: that is not the candidate's doing
        _, outputs = caller.call(LONGEST_S, ran, runtime, original, True, interface, feeds, folder)
        for sample, own in zip(samples, outputs, strict=True):
            sample.noisy.append(own)
    for where, optimize in ((runtime.standard, False), (runtime, True)):
        try:
            difference, outputs = caller.call(LONGEST_S, ran, where, candidate, optimize, interface, feeds, folder)
        except RuntimeFailed as error:
            return f"candidate: {error}"
        if difference:
            return difference
        for sample, found in zip(samples, outputs, strict=True):
            sample.found.append(found)
    return ""


def _apart(names: Sequence[str], samples: Sequence[Sample]) -> list[Sample]:
    """Those that do not agree by what is known of them."""
    return [sample for sample in samples if not judged(names, [sample]).agrees]


def _add_noise(
    original: Path,
    runtime: Runtime,
    interface: Interface,
    samples: Sequence[Sample],
    seed: int,
    caller: Caller,
    folder: Path,
) -> None:
    """How much the original itself changes: with inputs changed in their last bit, and when it is optimized."""
    if not samples:
        return
    rngs = [np.random.default_rng(seed + i) for i in range(len(samples))]
    as_given = [s.feeds for s in samples]
    changed = [{k: neighbours(v, r) for k, v in feeds.items()} for feeds, r in zip(as_given, rngs, strict=True)]
    for where, optimize, feeds in ((runtime.standard, False, changed), (runtime, True, as_given)):
        _, outputs = caller.call(LONGEST_S, ran, where, original, optimize, interface, feeds, folder)
        for sample, noisy in zip(samples, outputs, strict=True):
            sample.noisy.append(noisy)


def _add_noise_of_weights(
    original: Path,
    standard: Runtime,
    interface: Interface,
    samples: Sequence[Sample],
    seed: int,
    caller: Caller,
    folder: Path,
) -> None:
    """How much the original changes with its weights changed in their last bit, where its inputs have none: a norm of
    tokens that are nearly all alike may differ by a thousandth. What changes by more, or does not run then, decides by
    a weight what it computes: that is no noise.
    """
    if not samples or any(np.issubdtype(v.dtype, np.floating) for s in samples for v in s.feeds.values()):
        return
    changed, feeds = folder / "nudged.onnx", [s.feeds for s in samples]
    try:
        save_nudged(original, changed, seed)
        _, outputs = caller.call(LONGEST_S, ran, standard, changed, False, interface, feeds, folder)
    except SuperoptError:
        return
    for sample, noisy in zip(samples, outputs, strict=False):  # none, where the interface is another
        if all(_is_near(taken(n), taken(e)) for n, e in zip(noisy, sample.expected, strict=True)):
            sample.noisy.append(noisy)


def _is_near(changed: Array, expected: Array) -> bool:
    """Whether an output differs by what may be noise: floating-point numbers by little, others by nothing."""
    if not np.issubdtype(expected.dtype, np.floating):
        return np.array_equal(changed, expected)
    return same_special(changed, expected) and relative_error(changed, expected) <= MOST_NOISE
