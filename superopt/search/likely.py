"""Sizes that a model with symbolic ones is likely run at, where nobody says which: the first of a few that it accepts.

Batches are of one: single inputs are what is served most. But of an image or a sentence of one element nothing can be
told, and many networks accept none: those that halve an image five times and join what is left take multiples of 32.
Where the first axis is no batch, as of the nodes that a graph's edges point at, one of it is too few.
What an axis is shows in its place, in the sizes beside it, and in its name.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto

from superopt.dim import Shape, symbol_name
from superopt.onnx_io import Program
from superopt.search.settings import Setting, limited, sized
from superopt.substitution import substitute, symbols

IMAGES = (224, 320, 640, 64)
"""The sides that images are tried with: of classifiers, of detectors, and small ones."""

LENGTHS = (128, 512, 16000, 16, 2)
"""The lengths that sequences are tried with: tokens, frames, and samples of a second."""

MOST_TRIED = 9
"""How many sizes are tried, at most, of one batch."""

MOST_ELEMENTS = 2**23
"""Inputs of more elements are not made without being asked for."""

OTHER_SIDES, OTHER_LENGTH, OTHER_BATCH = (64, 96), 16, 2
"""The sizes beside the likely ones at which a candidate is compared: an image is no square there."""

OTHER_SMALL = 3
"""And the size that all have in one sample, of those that accept as little."""

COLOURS = (1, 3, 4)
"""As many channels images have."""


class Axis(Enum):
    """What a symbolic size is the size of."""

    BATCH = auto()
    CHANNELS = auto()
    SIDE = auto()
    """Of an image."""
    LENGTH = auto()
    """Of a sequence; with a past, of what is new."""
    PAST = auto()
    """Of what was computed before, as decoders keep it."""
    WHOLE = auto()
    """Of past and new together."""
    SOURCE = auto()
    """Of another sequence, which an encoder has read."""


_NAMES = (
    (re.compile("batch"), Axis.BATCH),
    (re.compile("total"), Axis.WHOLE),
    (re.compile("encoder|source|src|memory"), Axis.SOURCE),
    (re.compile("past|cache"), Axis.PAST),
    (re.compile("height|width"), Axis.SIDE),
    (re.compile("seq|len|time|frame|sample|token|step"), Axis.LENGTH),
)
"""What exporters call sizes, in lower case; the first that fits holds."""


def likely(
    program: Program, asked: Sequence[Setting], first: Callable[[Sequence[Setting]], int | None]
) -> tuple[Setting, ...]:
    """The settings asked for, with the sizes that they leave open; as they are where one batch alone is open, several
    may be of one, or no size that is tried does. `first` tells the first of several settings that the model runs at.
    """
    kinds = {name: kind for name, kind in _axes(program).items() if name not in asked[0].sizes}
    are_batches = set(kinds.values()) <= {Axis.BATCH}
    if are_batches and len(kinds) < 2:
        return tuple(asked)
    made = _batches(kinds) if are_batches else (_sizes(kinds, [s], n) for s, n in _sides_and_lengths(kinds))
    tried = _runnable(program, asked[0], made)[:MOST_TRIED]
    if Axis.BATCH in kinds.values() and not are_batches:  # rows that others point at, as the nodes of edges, last
        rows = (_sizes(kinds, [s], n, LENGTHS[0]) for s, n in _sides_and_lengths(kinds))
        tried += _runnable(program, asked[0], itertools.islice(rows, 1))
    found = first([sized(program, sizes) for sizes in tried]) if tried else None
    if found is None or all(tried[found][name] == 1 for name in kinds):
        return tuple(asked)
    return tuple(replace(sized(program, {**tried[found], **s.sizes}), likely=True) for s in asked)


def of_first_input(program: Program, asked: Setting) -> Iterator[dict[str, int]]:
    """Sizes to try of the first input that leaves some open, and of batches; those of other inputs may follow."""
    kinds = {name: kind for name, kind in _axes(program).items() if name not in asked.sizes}
    shapes = [program.values[name].shape for name in program.inputs if name in program.values]
    has = [set().union(*map(symbols, shape)).intersection(kinds) for shape in shapes]
    main = next((names for names in has if any(kinds[n] is not Axis.BATCH for n in names)), None)
    for side, length in _sides_and_lengths(kinds) if main else ():
        made = _sizes(kinds, [side], length)
        yield {n: d for n, d in made.items() if n in (main or ()) or kinds[n] is Axis.BATCH} | dict(asked.sizes)


def compared_at(program: Program, settings: Sequence[Setting], asked: Sequence[Setting]) -> tuple[Setting, ...]:
    """The settings that samples are drawn at, in turns, for comparing: where sizes are likely ones, a few others of
    these too, since what is the same is so at all sizes.
    """
    if not settings[0].likely or len(asked) > 1:
        return tuple(settings)
    axes = {name: axis for name, axis in _axes(program).items() if name not in asked[0].sizes}
    other = {**_sizes(axes, OTHER_SIDES, OTHER_LENGTH, OTHER_BATCH), **asked[0].sizes}
    small = {**dict.fromkeys(axes, OTHER_SMALL), **asked[0].sizes}
    deciding = settings[0].deciding
    others = [
        replace(sized(program, sizes), deciding=deciding) if _has_room(program, sizes) else settings[0]
        for sizes in (other, small)
    ]
    if settings[0].limits or settings[0].turns:
        others = [limited(program, setting) for setting in others]
    return settings[0], others[0], settings[0], others[1], settings[0]


def _axes(program: Program) -> dict[str, Axis]:
    """What the symbols of a model's inputs are, of inputs of most axes first."""
    shapes = {name: program.values[name].shape for name in program.inputs if name in program.values}
    found: dict[str, Axis] = {}
    # Beside sequences, what has one channel is a mask and no image.
    has_sequences = any(len(shape) < 4 and any(map(symbols, shape[1:])) for shape in shapes.values())
    leading = {symbol_name(shape[0]) for shape in shapes.values() if len(shape) > 1 and _is_of_many_places(shape)}
    # Where another symbolic size stands first, what is behind it is no batch: of a mask it is a length.
    behind = {n for shape in shapes.values() if shape and symbols(shape[0]) for dim in shape[1:] for n in symbols(dim)}
    colours = COLOURS[1:] if has_sequences else COLOURS
    for given, shape in sorted(shapes.items(), key=lambda item: len(item[1]), reverse=True):
        for place, dim in enumerate(shape):
            for name in sorted(symbols(dim)):
                alone = symbol_name(dim) is not None
                axis = _axis(name, place if alone else len(shape), shape, colours)
                axis = Axis.BATCH if name in leading - behind and not _is_named(name) else axis
                found.setdefault(name, axis if _is_named(name) else _of_input(given, place, shape) or axis)
    return found


def _is_of_many_places(shape: Shape) -> bool:
    """Whether behind the first axis of an input there are two more, as of a chunk of frames beside whose states
    it may stand elsewhere, or one of another symbolic size: sentences, and not one.
    """
    return len(shape) > 2 or any(symbols(dim) - symbols(shape[0]) for dim in shape[1:])


def _of_input(name: str, place: int, shape: Shape) -> Axis | None:
    """What an input's name says of a length in it, where exporters number sizes: keys and values that are kept, and a
    mask over these and what is new.
    """
    if len(shape) in (4, 5) and place == len(shape) - 2 and re.search("past|cache", name.lower()):
        return Axis.PAST
    return Axis.WHOLE if (len(shape), place) == (2, 1) and "mask" in name.lower() else None


def _is_named(name: str) -> bool:
    return any(pattern.search(name.lower()) for pattern, _ in _NAMES)


def _axis(name: str, place: int, shape: Shape, colours: Sequence[int]) -> Axis:
    for pattern, axis in _NAMES:
        if pattern.search(name.lower()):
            return axis
    is_open = [not isinstance(d, int) for d in shape]
    if place == 0 and len(shape) > 1:
        return Axis.BATCH
    if len(shape) == 3 and place == 1 and is_open == [False, True, False]:
        return Axis.BATCH  # the state of a recurrent network: layers, batch, channels
    if len(shape) == 4 and all(is_open[1:]):
        return Axis.CHANNELS if place == 1 else Axis.SIDE
    fixed = [d for d in (shape[1:2] + shape[-1:]) if isinstance(d, int)]
    is_image = len(shape) > 3 and (any(d in colours for d in fixed) or (sum(is_open[2:]) > 1 and 1 not in fixed))
    return Axis.SIDE if is_image else Axis.LENGTH


def _batches(names: Iterable[str]) -> Iterator[dict[str, int]]:
    """Sizes for several batches: of one each, and where there are too few of something else, as of texts that an image
    is held against, of more: of all but the first, then of all.
    """
    first, *others = names
    yield dict.fromkeys((first, *others), 1)
    yield {first: 1, **dict.fromkeys(others, LENGTHS[0])}
    yield dict.fromkeys((first, *others), LENGTHS[0])


def _sides_and_lengths(kinds: Mapping[str, Axis]) -> Iterator[tuple[int, int]]:
    has_images = Axis.SIDE in kinds.values()
    has_lengths = bool({Axis.LENGTH, Axis.PAST, Axis.WHOLE, Axis.SOURCE} & set(kinds.values()))
    sides, lengths = IMAGES if has_images else IMAGES[:1], LENGTHS if has_lengths else LENGTHS[:1]
    pairs = itertools.product(range(len(sides)), range(len(lengths)))
    yield from ((sides[i], lengths[j]) for i, j in sorted(pairs, key=sum))


def _sizes(kinds: Mapping[str, Axis], sides: Sequence[int], length: int, batch: int = 1) -> dict[str, int]:
    """A size for each symbol; the sides of an image take turns."""
    of_kind = {Axis.BATCH: batch, Axis.CHANNELS: 3, Axis.PAST: length - 1}
    of_kind |= dict.fromkeys((Axis.LENGTH, Axis.WHOLE, Axis.SOURCE), length)
    if Axis.PAST in kinds.values():
        of_kind[Axis.LENGTH] = 1
    turns = itertools.cycle(sides)
    return {name: next(turns) if kind is Axis.SIDE else of_kind[kind] for name, kind in kinds.items()}


def _runnable(program: Program, asked: Setting, made: Iterable[Mapping[str, int]]) -> list[dict[str, int]]:
    """Sizes with those asked for in their place, of which no value is huge or empty."""
    tried = [{**sizes, **asked.sizes} for sizes in made]
    return [sizes for sizes in tried if _is_moderate(program, sizes) and _has_room(program, sizes)]


def _is_moderate(program: Program, sizes: Mapping[str, int]) -> bool:
    """Whether no input is huge."""
    shapes = [program.values[name].shape for name in program.inputs if name in program.values]
    found = [[d for d in (substitute(dim, sizes) for dim in shape) if isinstance(d, int)] for shape in shapes]
    return all(math.prod(numbers) <= MOST_ELEMENTS for numbers in found)


def _has_room(program: Program, sizes: Mapping[str, int]) -> bool:
    """Whether no value is empty: of an image smaller than a window onnxruntime gives what no definition does."""
    dims = {d for term in program.values.values() for d in term.shape if not isinstance(d, int)}
    return all(not isinstance(d, int) or d >= 1 for d in (substitute(dim, sizes) for dim in dims))
