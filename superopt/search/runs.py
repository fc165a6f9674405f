"""What models give for inputs, as it is found in a process of its own: so this imports nothing that reads models."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from superopt.arithmetic import Array
from superopt.cost.runtime import Argument, Draw, Feeds, Runtime, RuntimeFailed

Interface: TypeAlias = tuple[tuple[Argument, ...], tuple[Argument, ...]]
"""The inputs and outputs of a model, as the runtime reports them."""


def drawn(standard: Runtime, model: Path, seed: int, draws: Sequence[Draw]) -> list[Feeds]:
    """Random inputs for a model; those of types without a random are left out."""
    session, found = standard.session(model, optimize=False), []
    for i, draw in enumerate(draws):
        with suppress(RuntimeFailed):
            found.append(standard.feeds(session, seed + i, draw))
    return found


def expected(
    standard: Runtime, original: Path, feeds: Sequence[Feeds], demanded: int
) -> tuple[Interface, list[list[Array] | None]]:
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


def ran(
    runtime: Runtime, model: Path, optimize: bool, interface: Interface, feeds: Sequence[Feeds]
) -> tuple[str, list[list[Array]]]:
    """The outputs for some inputs; none where the interface is another, and how it differs."""
    session = runtime.session(model, optimize)
    difference = _differs(interface, (runtime.inputs(session), runtime.outputs(session)))
    return difference, [] if difference else [runtime.run(session, f) for f in feeds]


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
