"""Whether a candidate model computes what the original does, within what rounding explains.

The original without the runtime's optimizations is the standard; a 64-bit evaluation of it, where the caller has one,
tells how far rounding alone takes it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
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
from superopt.cost.inputs import Draw, Feeds
from superopt.cost.runtime import Runtime
from superopt.errors import OutOfTime, RuntimeFailed
from superopt.folders import temporary_folder
from superopt.memory import give_back, giving_back_large
from superopt.search.accepting.agreement import Agreement
from superopt.search.accepting.laid import Value, laid
from superopt.search.accepting.noise import Noise
from superopt.search.accepting.outputs import Sample, judged
from superopt.search.accepting.runs import LONGEST_S, Interface, drawn, expected, ran
from superopt.search.settings import Setting

T = TypeVar("T")


class Reference(Protocol):
    """A 64-bit evaluation of the original."""

    def __call__(
        self, feeds: Feeds, stopped: Callable[[], bool] = ..., keep: Callable[[Array], Value] = ...
    ) -> Sequence[Value | None]:
        """The outputs in order, each kept as soon as nothing more is made of it; None for one that it cannot evaluate,
        and for all soon after it is stopped.
        """


DRAWS = (
    Draw(scale=1.0),
    Draw(scale=0.1, size=2, below=2),  # padding, and words that are all alike
    Draw(scale=10.0),
    Draw(scale=1.0, offset=1.0, size=3),
    Draw(scale=255.0, uniform=True),  # pictures as they come
    Draw(blank=True),  # padding, silence, black
)
"""The last one only tells of numbers that are not finite. What is divided by its own length, or masked after that, is
none where a row is zeros; its errors say little, as the last bit of a zero is nothing, and so is all that rounds.
"""

SEVERAL_THREADS = 2
"""A candidate is run in so many once, at least: there onnxruntime 1.32 loses rows that a ScatterND adds in one place.
"""


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
    longest_s: float = LONGEST_S,
    until: float = math.inf,
    one_by_one: bool = False,
    overflowing: bool = False,
) -> Agreement:
    """Compare two models on the given inputs and on random ones of several scales and offsets.

    They are of the sizes of each setting in turn. Those that the original does not accept are left out. The original
    is run on the standard of the runtime, without its optimizations; the candidate is so too, and on the runtime
    itself, with them. One session is alive at a time, the `caller`'s (of this process by default). `working` is the
    original as it loads sooner, if it does: by it is told how far rounding alone takes it. All runs together take
    `longest_s` at most. Values in 64 bits are computed meanwhile, or where that is to be `one_by_one`, afterwards; for
    those nobody waits beyond `until`, a time of `time.monotonic`. An original may be `overflowing` where a candidate is
    not.

    Raises `RuntimeFailed` for an original that does not load, crashes the runtime, or never ends; a candidate that does
    not load or crashes does not agree. Raises `OutOfTime` where that has not ended in time, or where values in 64 bits
    were late, and outputs do not agree without them.
    """
    give_back()  # a session of a model that was just written needs as much again
    caller = caller or Here()
    ask, standard = within(caller, longest_s), runtime.standard
    sized = [settings[i % len(settings)].draw(draw) for i, draw in enumerate(draws)]
    made = ask(drawn, standard, working or original, seed, sized)
    feeds = [*inputs, *made.values()]
    blank = {i for i, number in enumerate(made, start=len(inputs)) if draws[number].blank}
    told_by_numbers = [None if i in blank else given for i, given in enumerate(feeds)]
    # The values in 64 bits are computed while the caller, which may be another process, runs the models; large ones
    # when it has.
    begin = Event()
    if not one_by_one:
        begin.set()
    with (
        temporary_folder() as folder,
        giving_back_large(),
        _evaluated(reference, told_by_numbers, folder, until, begin) as exact,
    ):
        interface, outputs = ask(expected, standard, original, feeds, len(inputs), folder)
        names = [a.name for a in interface[1]]
        told = [values is not None and (i < len(inputs) or not _are_empty(values)) for i, values in enumerate(outputs)]
        accepted = [i for i, tells in enumerate(told) if tells]
        unknown = [None] * len(names)
        samples = [Sample(feeds[i], outputs[i] or [], unknown, overflowing, i in blank) for i in accepted]
        if not samples:
            reason = "the original runs on none of the inputs, or gives nothing for them"
            return Agreement(False, False, reason, 0, ())
        in_time = _in_time(ask)
        refused = _run_all(original, candidate, runtime, interface, samples, in_time, folder)
        if refused:
            return refused
        rough = _apart(names, samples)  # known without the values in 64 bits, which are still computed
        noise = Noise(working or original, runtime, interface, seed, in_time, folder)
        noise.of_rounding(rough)
        if one_by_one:
            caller.rest()
            begin.set()
        told_exactly = list[Sample]()
        for i, sample in zip(accepted, samples, strict=True):
            with suppress(TimeoutError):
                sample.exact = exact(i) or sample.exact
                told_exactly.append(sample)
        late = [sample for sample in _apart(names, samples) if sample not in rough]
        noise.of_rounding(late)
        noise.of_logistic(_apart(names, samples))
        noise.of_weights(_apart(names, samples))
        noise.of_jolts(_apart(names, samples))
        found = judged(names, samples)
        if found.differs and len(told_exactly) < len(samples) and not judged(names, told_exactly).differs:
            raise OutOfTime("what the original gives in 64 bits took too long to tell whether a candidate differs")
        return found


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
