"""What models give for inputs, as it is found in a process of its own: so this imports nothing that reads models."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from superopt.cost.inputs import Argument, Draw, Feeds
from superopt.cost.runtime import Runtime
from superopt.errors import RuntimeFailed
from superopt.search.accepting.laid import Value, all_laid

Interface: TypeAlias = tuple[tuple[Argument, ...], tuple[Argument, ...]]
"""The inputs and outputs of a model, as the runtime reports them."""

LONGEST_S = 900.0
"""What has not run on all samples by then is taken as never ending."""


def drawn(standard: Runtime, model: Path, seed: int, draws: Sequence[Draw]) -> dict[int, Feeds]:
    """Random inputs for a model by the number of their draw; those of types without a random, or too large, are left
    out.
    """
    session, found = standard.session(model, optimize=False), dict[int, Feeds]()
    for i, draw in enumerate(draws):
        with suppress(RuntimeFailed):
            found[i] = standard.feeds(session, seed + i, draw)
    return found


def expected(
    standard: Runtime, original: Path, feeds: Sequence[Feeds], demanded: int, folder: Path
) -> tuple[Interface, list[list[Value] | None]]:
    """What the original gives for each of some inputs, large outputs laid in a folder; None for inputs that it does not
    accept, except for the first, which are demanded: there `RuntimeFailed` is raised.
    """
    session = standard.session(original, optimize=False)
    found: list[list[Value] | None] = []
    for i, given in enumerate(feeds):
        try:
            found.append(all_laid(standard.run(session, given), folder))
        except RuntimeFailed:
            if i < demanded:
                raise
            found.append(None)
    return (standard.inputs(session), standard.outputs(session)), found


def run_once(runtime: Runtime, model: Path, draw: Draw, optimize: bool = False) -> None:
    """Run a model on random inputs, without the runtime's optimizations by default. Raises `RuntimeFailed`."""
    session = runtime.session(model, optimize)
    runtime.run(session, runtime.feeds(session, 0, draw))


class Once(NamedTuple):
    """The seconds that a model takes to be loaded, with the runtime's optimizations, and to run the first time; 0 where
    it was not run, or neither is known.
    """

    loading_s: float = 0.0
    running_s: float = 0.0


def time_once(runtime: Runtime, model: Path, draw: Draw | None) -> Once:
    """What a model takes, which is run on random inputs if it is said how they are drawn. Raises `RuntimeFailed`."""
    start = time.monotonic()
    session = runtime.session(model)
    loading_s = time.monotonic() - start
    if draw is None:
        return Once(loading_s)
    feeds, start = runtime.feeds(session, 0, draw), time.monotonic()
    runtime.run(session, feeds)
    return Once(loading_s, time.monotonic() - start)


def run_on(runtime: Runtime, model: Path, feeds: Feeds, optimize: bool = False) -> None:
    """The same on some inputs."""
    runtime.run(runtime.session(model, optimize), feeds)


def first_that_runs(runtime: Runtime, model: Path, draws: Sequence[Draw]) -> int | None:
    """Which of some ways to draw inputs is the first whose inputs the model accepts. Raises `RuntimeFailed` where it
    does not load.
    """
    session = runtime.session(model, optimize=False)
    for i, draw in enumerate(draws):
        with suppress(RuntimeFailed):
            runtime.run(session, runtime.feeds(session, 0, draw))
            return i
    return None


def shapes(runtime: Runtime, model: Path, draw: Draw) -> list[tuple[int, ...]]:
    """The shapes of what a model gives for random inputs. Raises `RuntimeFailed`."""
    session = runtime.session(model, optimize=False)
    return [array.shape for array in runtime.run(session, runtime.feeds(session, 0, draw))]


def ran(
    runtime: Runtime, model: Path, optimize: bool, interface: Interface, feeds: Sequence[Feeds], folder: Path
) -> tuple[str, list[list[Value]]]:
    """The outputs for some inputs, large ones laid in a folder; none where the interface is another, and how it
    differs.
    """
    session = runtime.session(model, optimize)
    difference = _differs(interface, (runtime.inputs(session), runtime.outputs(session)))
    return difference, [] if difference else [all_laid(runtime.run(session, f), folder) for f in feeds]


def _differs(ours: Interface, theirs: Interface) -> str:
    for kind, a, b in zip(("inputs", "outputs"), ours, theirs, strict=True):
        if [(x.name, x.type) for x in a] != [(x.name, x.type) for x in b]:
            return f"{kind} differ: {_show(a)} and {_show(b)}"
        for x, y in zip(a, b, strict=True):
            if len(x.shape) != len(y.shape) or (kind == "inputs" and x.shape != y.shape):
                return f"{kind} differ: {_show([x])} and {_show([y])}"
    return ""


def _show(arguments: Sequence[Any]) -> str:
    return ", ".join(f"{a.name} {a.type}{list(a.shape)}" for a in arguments)
