"""Whether a candidate model computes what the original does, within what rounding explains.

The original without the runtime's optimizations is the standard; a 64-bit evaluation of it, where the caller has one,
tells how far rounding alone takes it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Protocol, TypeVar

from threadpoolctl import threadpool_limits

from superopt.arithmetic.carrier import Array
from superopt.cost.child import Ask, Caller, Here, Unending, within
from superopt.cost.inputs import Feeds
from superopt.cost.runtime import Runtime
from superopt.errors import OutOfTime, RuntimeFailed
from superopt.folders import temporary_folder
from superopt.memory import give_back, giving_back_large
from superopt.search.accepting.agreement import Agreement
from superopt.search.accepting.fed import EVERY_DRAW, UNHURRIED, Allowed, Fed
from superopt.search.accepting.laid import Value, laid
from superopt.search.accepting.noise import Noise
from superopt.search.accepting.outputs import Sample, judged
from superopt.search.accepting.runs import Interface, expected, ran

T = TypeVar("T")


class Reference(Protocol):
    """A 64-bit evaluation of the original."""

    def __call__(
        self, feeds: Feeds, stopped: Callable[[], bool] = ..., keep: Callable[[Array], Value] = ...
    ) -> Sequence[Value | None]:
        """The outputs in order, each kept as soon as nothing more is made of it; None for one that it cannot evaluate,
        and for all soon after it is stopped.
        """


SEVERAL_THREADS = 2
"""A candidate is run in so many once, at least: there onnxruntime 1.32 loses rows that a ScatterND adds in one place.
"""


def examine(
    original: Path,
    candidate: Path,
    runtime: Runtime,
    reference: Reference | None = None,
    fed: Fed = EVERY_DRAW,
    allowed: Allowed = UNHURRIED,
    caller: Caller | None = None,
    working: Path | None = None,
    overflowing: bool = False,
) -> Agreement:
    """Compare two models on what they are fed, but for what the original does not accept, in the time allowed.

    The original is run on the standard of the runtime, without its optimizations; the candidate is so too, and on the
    runtime itself, with them. One session is alive at a time, the `caller`'s (of this process by default). `working` is
    the original as it loads sooner, if it does: by it is told how far rounding alone takes it. An original may be
    `overflowing` where a candidate is not.

    Raises `RuntimeFailed` for an original that does not load, crashes the runtime, or never ends; a candidate that does
    not load or crashes does not agree. Raises `OutOfTime` where that has not ended in time, or where values in 64 bits
    were late, and outputs do not agree without them.
    """
    give_back()  # a session of a model that was just written needs as much again
    caller, working = caller or Here(), working or original
    ask = within(caller, allowed.longest_s)
    feeds, blank = fed.made(ask, runtime.standard, working)
    told_by_numbers = [None if i in blank else given for i, given in enumerate(feeds)]
    # The values in 64 bits are computed while the caller, which may be another process, runs the models; large ones
    # when it has.
    begin = Event()
    if not allowed.one_by_one:
        begin.set()
    with (
        temporary_folder() as folder,
        giving_back_large(),
        _evaluated(reference, told_by_numbers, folder, allowed.until, begin) as exact,
    ):
        interface, outputs = ask(expected, runtime.standard, original, feeds, len(fed.inputs), folder)
        unknown = [None] * len(interface[1])
        samples = {
            i: Sample(feeds[i], values, unknown, overflowing, i in blank)
            for i, values in enumerate(outputs)
            if values is not None and (i < len(fed.inputs) or not _are_empty(values))
        }
        if not samples:
            reason = "the original runs on none of the inputs, or gives nothing for them"
            return Agreement(False, False, reason, 0, ())
        in_time = _in_time(ask)
        refused = _run_all(original, candidate, runtime, interface, list(samples.values()), in_time, folder)
        if refused:
            return refused

        def when_models_ran() -> None:
            if allowed.one_by_one:
                caller.rest()
                begin.set()

        noise = Noise(working, runtime, interface, fed.seed, in_time, folder)
        return _judged([a.name for a in interface[1]], samples, noise, exact, when_models_ran)


def _judged(
    names: Sequence[str],
    samples: Mapping[int, Sample],
    noise: Noise,
    exact: Callable[[int], Sequence[Value | None] | None],
    when_models_ran: Callable[[], None],
) -> Agreement:
    """How outputs compare that do not agree by themselves, by how far rounding takes them and by the values in 64 bits.
    Raises `OutOfTime` where those of some samples were late, and outputs do not agree without them.
    """
    found = list(samples.values())
    rough = _apart(names, found)  # known without the values in 64 bits, which are still computed
    noise.of_rounding(rough)
    when_models_ran()
    told_exactly = list[Sample]()
    for i, sample in samples.items():
        with suppress(TimeoutError):
            sample.exact = exact(i) or sample.exact
            told_exactly.append(sample)
    noise.of_rounding([sample for sample in _apart(names, found) if sample not in rough])
    for changed in (noise.of_logistic, noise.of_weights, noise.of_jolts):
        changed(_apart(names, found))
    agreement = judged(names, found)
    if agreement.differs and len(told_exactly) < len(found) and not judged(names, told_exactly).differs:
        raise OutOfTime("what the original gives in 64 bits took too long to tell whether a candidate differs")
    return agreement


def _in_time(ask: Ask) -> Ask:
    """The same, of whom what has not ended in time is told to be late: the original itself has ended before."""

    def asked(function: Callable[..., T], *arguments: Any) -> T:
        try:
            return ask(function, *arguments)
        except Unending as error:
            raise OutOfTime(f"a candidate took too long to be compared: {error}") from None

    return asked


def _are_empty(outputs: Sequence[Value]) -> bool:
    """Whether outputs hold nothing, so that nothing can be told of them."""
    return bool(outputs) and all(0 in value.shape for value in outputs)


@contextmanager
def _evaluated(
    reference: Reference | None, feeds: Sequence[Feeds | None], folder: Path, until: float, begin: Event
) -> Iterator[Callable[[int], Sequence[Value | None] | None]]:
    """What gives the values in 64 bits by the number of the inputs, if there is a way to them: evaluated in a thread
    from when it may `begin`, large ones laid in a folder. It raises `TimeoutError` for those that are not there `until`
    then.

    Matrix products are that thread's alone: others of the library would wait for those that run the models.
    """
    stop = Event()

    def evaluated(known: Reference, given: Feeds) -> Sequence[Value | None]:
        begin.wait()
        values = known(given, stop.is_set, partial(laid, folder=folder))
        return [None if stop.is_set() else value for value in values]

    with threadpool_limits(1, "blas"), ThreadPoolExecutor(1, "reference") as pool:
        try:
            found = {
                i: pool.submit(evaluated, reference, g) for i, g in enumerate(feeds) if reference and g is not None
            }
            yield lambda i: found[i].result(_seconds_to(until)) if i in found else None
        finally:
            stop.set()
            begin.set()  # who interrupts waits for one operator at most
            pool.shutdown(wait=False, cancel_futures=True)


def _seconds_to(until: float) -> float | None:
    """Those that are left, or None where there is no end."""
    return None if math.isinf(until) else max(until - time.monotonic(), 0.0)


def _run_all(
    original: Path,
    candidate: Path,
    runtime: Runtime,
    interface: Interface,
    samples: Sequence[Sample],
    ask: Ask,
    folder: Path,
) -> Agreement | None:
    """Run the candidate on all samples, once in several threads, and the original where its runtime is not the
    standard; what it comes to where that cannot be. Raises what `examine` does.
    """
    feeds = [sample.feeds for sample in samples]
    if runtime.standard != runtime:  # it may round otherwise, or lack an operator: that is not the candidate's doing
        _, outputs = ask(ran, runtime, original, True, interface, feeds, folder)
        for sample, own in zip(samples, outputs, strict=True):
            sample.noisy.append(own)
    standard = replace(runtime.standard, threads=max(runtime.threads, SEVERAL_THREADS))
    for where, optimize in ((standard, False), (runtime, True)):
        try:
            difference, outputs = ask(ran, where, candidate, optimize, interface, feeds, folder)
        except RuntimeFailed as error:
            return Agreement(False, True, f"candidate: {error}", len(samples), (), ran=False)
        if difference:
            return Agreement(False, True, difference, len(samples), ())
        for sample, found in zip(samples, outputs, strict=True):
            sample.found.append(found)
    return None


def _apart(names: Sequence[str], samples: Sequence[Sample]) -> list[Sample]:
    """Those that do not agree by what is known of them."""
    return [sample for sample in samples if not judged(names, [sample]).agrees]
