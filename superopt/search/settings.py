"""The sizes that a model is to be fast at: those that its inputs are said to have, or a few of a range."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from superopt.cost.inputs import Draw
from superopt.cost.sizes import sized_dim
from superopt.dim import Dim, symbol_name
from superopt.errors import UsageError
from superopt.onnx_io import Limit, Program, counting, index_limits
from superopt.substitution import substitute, symbols

Range: TypeAlias = tuple[int, int]
"""The least and the most that a size is to be, which may be the same."""

_SHAPE = re.compile(r"(?P<name>.+):(?P<sizes>[^:]+)")
_SIZE = re.compile(r"([1-9][0-9]{0,8})(?:\.\.([1-9][0-9]{0,8}))?")


@dataclass(frozen=True)
class Setting:
    """Sizes of a model: of its symbols, and of its inputs; None stands for sizes that are left open. They are `likely`
    where nobody said all of them. `deciding` are the inputs that say which branches run, and what they are set to.
    The `limits` say of how many numbers, from 0, inputs of integers may hold each, where that is more than two; those
    of `turns` say how many a loop takes.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int | None, ...]] = field(default_factory=dict)
    likely: bool = False
    deciding: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, Limit] = field(default_factory=dict)
    turns: frozenset[str] = frozenset()

    def draw(self, draw: Draw | None = None) -> Draw:
        """How inputs of these sizes are drawn."""
        draw = draw or Draw()
        return replace(
            draw,
            shapes={**draw.shapes, **self.shapes},
            deciding={**draw.deciding, **self.deciding},
            limits={**draw.limits, **self.limits},
            turns=draw.turns | self.turns,
        )

    def decides_as(self, sample: Mapping[str, np.ndarray]) -> bool:
        """Whether inputs that say which branches run are set so in a sample."""
        return all(name not in sample or bool((sample[name] == number).all()) for name, number in self.deciding.items())

    def __str__(self) -> str:
        shown = {n: ",".join("?" if d is None else str(d) for d in shape) for n, shape in self.shapes.items()}
        shown |= {name: str(number).lower() for name, number in self.deciding.items()}
        return " ".join(f"{name}:{shape}" for name, shape in shown.items())


def as_range(name: str, size: object) -> Range:
    """A size of an input, given as a number or a pair of them. Raises `UsageError`."""
    try:
        low, high = map(operator.index, size if isinstance(size, Iterable) else (size, size))
    except (TypeError, ValueError):
        raise UsageError(f"shapes: a size of {name!r} is {size!r}; give a number, or the least and the most") from None
    if not 1 <= low <= high:
        raise UsageError(f"shapes: a size of {name!r} is {size!r}; sizes are at least 1, and the least comes first")
    return low, high


def shape_text(ranges: Sequence[Range]) -> str:
    """What `read_shape` reads, without the input."""
    return ",".join("..".join(map(str, dict.fromkeys(r))) for r in ranges)


def read_shapes(texts: Sequence[str]) -> dict[str, tuple[Range, ...]]:
    """Inputs and their sizes from texts such as `x:1..8,128`. Raises `UsageError`."""
    found: dict[str, tuple[Range, ...]] = {}
    for text in texts:
        name, ranges = read_shape(text)
        if name in found:
            raise UsageError(f"shape: input {name!r} is given twice")
        found[name] = ranges
    return found


def _least(size: str) -> int | None:
    """The size that a text gives, or the least of its range; None of what is none."""
    least = size.partition("..")[0].strip()
    return int(least) if least.isdecimal() else None


def read_shape(text: str) -> tuple[str, tuple[Range, ...]]:
    """An input and its sizes, from text such as `x:1..8,128`. Raises `UsageError`."""
    found = _SHAPE.fullmatch(text)
    sizes = [_SIZE.fullmatch(part.strip()) for part in found["sizes"].split(",")] if found else [None]
    ranges = [(int(s[1]), int(s[2] or s[1])) for s in sizes if s is not None]
    if found is not None and 0 in map(_least, found["sizes"].split(",")):
        raise UsageError(
            f"shape {text!r} leaves {found['name']!r} empty, and nothing to measure; write sizes from 1 on"
        )
    if found is None or len(ranges) < len(sizes) or any(low > high for low, high in ranges):
        raise UsageError(f"shape {text!r} cannot be read; write an input and its sizes, as in x:1..8,128")
    return found["name"], tuple(ranges)


def settings_of(program: Program, asked: Mapping[str, Sequence[Range]]) -> tuple[Setting, ...]:
    """What to try: sizes in the middle of all ranges first, then the least, then the most.

    The middle is the geometric one: between 1 and 64 it is 8. Raises `UsageError` where there is no such input, or it
    has other sizes.
    """
    ranges: dict[str, Range] = {}
    for only_symbols in (True, False):  # first those that give a symbol its size
        for name, given in asked.items():
            _match(program, name, given, ranges, only_symbols)
    middle = {n: round(math.sqrt(low * high)) for n, (low, high) in ranges.items()}
    least, most = ({n: ends[i] for n, ends in ranges.items()} for i in (0, 1))
    several = [middle, least, most] if least != most else [most]
    settings = tuple(sized(program, dict(sizes)) for sizes in dict.fromkeys(tuple(s.items()) for s in several))
    return settings if asked else (Setting(),)


def assumed(program: Program, asked: Setting, taken: Setting) -> dict[str, str]:
    """What inputs are taken to be whose sizes nobody said, as `read_shape` reads it; sizes still open are 1."""
    inputs = {name: program.values[name].shape for name in program.inputs if name in program.values}
    left = {n: shape for n, shape in inputs.items() if any(symbols(d) - set(asked.sizes) for d in shape)}
    return {n: ",".join(str(sized_dim(d, taken.sizes)) for d in shape) for n, shape in left.items()}


def _match(program: Program, name: str, given: Sequence[Range], ranges: dict[str, Range], only_symbols: bool) -> None:
    if name not in program.inputs:
        raise UsageError(f"shape: the model has no input {name!r}; its inputs are {', '.join(program.inputs)}")
    term = program.values.get(name)
    if term is None:
        raise UsageError(f"shape: input {name!r} is no tensor of known rank")
    if len(given) != len(term.shape):
        raise UsageError(f"shape: input {name!r} has {len(term.shape)} sizes, not {len(given)}")
    for axis, (dim, range_) in enumerate(zip(term.shape, given, strict=True)):
        symbol = symbol_name(dim)
        if symbol is not None:
            ranges.setdefault(symbol, range_)
        if symbol is None and only_symbols:
            continue
        missing = symbols(dim) - set(ranges)
        if missing:
            raise UsageError(f"shape: size {axis} of input {name!r} is {dim}; give {min(missing)} by another input")
        low, high = (substitute(dim, {n: ends[i] for n, ends in ranges.items()}) for i in (0, 1))
        if (low, high) != range_:
            told = "..".join(map(str, dict.fromkeys((low, high))))
            raise UsageError(f"shape: size {axis} of input {name!r} is {told}, not {shape_text([range_])}")


def sized(program: Program, sizes: Mapping[str, int]) -> Setting:
    """The setting in which symbols have these sizes."""
    inputs = {name: program.values[name].shape for name in program.inputs if name in program.values}
    return Setting(sizes, {name: tuple(_number(d, sizes) for d in shape) for name, shape in inputs.items()})


def limited(program: Program, setting: Setting) -> Setting:
    """A setting in which integers are any that the model is known to take at its sizes, and its loops take turns."""
    return replace(setting, limits=index_limits(program, setting.sizes), turns=counting(program))


def _number(dim: Dim, sizes: Mapping[str, int]) -> int | None:
    found = substitute(dim, sizes)
    return found if isinstance(found, int) else None
