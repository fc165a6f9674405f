"""What the sizes of a model are while it is searched: those asked for, likely ones where nobody says, and those within
it that nothing tells before it runs.

What a node gives that is carried through has sizes of its own names: taken as 1, half a detector would be searched for
images of one place. So the model is run once, and they are seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from superopt.cost.child import Ask
from superopt.cost.runtime import Runtime
from superopt.errors import RuntimeFailed, SuperoptError
from superopt.onnx_io import Program, gone_after, save_showing
from superopt.search.accepting.runs import first_that_runs, shapes
from superopt.search.joining import with_joined
from superopt.search.likely import likely, of_first_input
from superopt.search.settings import Setting, limited, sized

PATIENCE_S = 60.0
"""How long a model may take to run at sizes that nobody asked for."""

MOST_JOINED = 2
"""How many sizes of the first input are tried to see those of others by."""


@dataclass(frozen=True)
class Settled:
    """The settings that a model is to be fast in, and the sizes of its symbols in the first, where they are known."""

    settings: tuple[Setting, ...]
    sizes: Mapping[str, int]


def settled(
    program: Program, model: Path, asked: Sequence[Setting], standard: Runtime, ask: Ask | None, folder: Path
) -> Settled:
    """The sizes of a model that lies in a file; what is made to see them goes into the folder.

    Nothing is run where all sizes are given, and without anybody to `ask`: then the first likely ones are taken. What
    is wrong with a model that does not run is not said here.
    """
    if ask is None:
        settings = likely(program, asked, lambda _: 0)
        return Settled(settings, settings[0].sizes)

    def first(settings: Sequence[Setting]) -> int | None:
        draws = [setting.draw() for setting in settings]
        try:
            place: int | None = ask(first_that_runs, standard, model, draws)
        except RuntimeFailed:
            return None
        return place

    settings = likely(program, asked, first)
    if not settings[0].likely:
        settings = _joined(program, model, settings, first, standard, ask, folder)
    settings = _limited(program, settings, first)
    try:
        seen = _seen(program, model, settings[0], standard, ask, folder)
    except SuperoptError:
        seen = {}
    return Settled(settings, {**seen, **settings[0].sizes})


def _joined(
    program: Program,
    model: Path,
    asked: Sequence[Setting],
    first: Callable[[Sequence[Setting]], int | None],
    standard: Runtime,
    ask: Ask,
    folder: Path,
) -> tuple[Setting, ...]:
    """The settings with likely sizes of the first input, and those of others that it is joined with; as they are where
    the model does not run at these either.
    """

    def show(value: str, setting: Setting) -> Sequence[int] | None:
        try:
            return _shapes(model, [value], setting, standard, ask, folder).get(value)
        except SuperoptError:
            return None

    for sizes in islice(of_first_input(program, asked[0]), MOST_JOINED):
        found = with_joined(program, sizes, show)
        if len(found) > len(sizes) and first([sized(program, found)]) is not None:
            return tuple(replace(sized(program, {**found, **s.sizes}), likely=True) for s in asked)
    return tuple(asked)


def _limited(
    program: Program, settings: tuple[Setting, ...], first: Callable[[Sequence[Setting]], int | None]
) -> tuple[Setting, ...]:
    """The settings with what integers may be, where the model accepts such."""
    told = tuple(limited(program, setting) for setting in settings)
    return told if any(s.limits or s.turns for s in told) and first(told[:1]) is not None else settings


def _seen(program: Program, model: Path, setting: Setting, standard: Runtime, ask: Ask, folder: Path) -> dict[str, int]:
    """The sizes of symbols that are no input's, as the model has them; what is empty there counts as 1."""
    places = {s: place for s, place in program.size_sources.items() if s and s not in setting.sizes}
    names = {name for name, _ in places.values()} - set(program.inputs)
    if not names:
        return {}
    shape_of = _shapes(model, sorted(names), setting, standard, ask, folder)
    told = {s: (shape_of[name], axis) for s, (name, axis) in places.items() if name in shape_of}
    # A value may have fewer axes than it is declared to have.
    return {s: max(shape[axis], 1) for s, (shape, axis) in told.items() if axis < len(shape)}


def _shapes(
    model: Path, names: Sequence[str], setting: Setting, standard: Runtime, ask: Ask, folder: Path
) -> dict[str, tuple[int, ...]]:
    """The shapes of inner values at some sizes, of those that can be seen."""
    path = folder / "shown.onnx"
    with gone_after(path):
        shown = save_showing(model, path, names)
        found: list[tuple[int, ...]] = ask(shapes, standard, path, setting.draw()) if shown else []
    return dict(zip(shown, found, strict=True))
