"""The sizes that a model is to be fast at: those that its inputs are said to have, or a few of a range."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from superopt.cost.runtime import Draw
from superopt.dim import Dim, substitute, symbol_name, symbols
from superopt.errors import UsageError
from superopt.onnx_io import Program

Range: TypeAlias = tuple[int, int]
"""The least and the most that a size is to be, which may be the same."""

_SHAPE = re.compile(r"(?P<name>.+):(?P<sizes>[^:]+)")
_SIZE = re.compile(r"([1-9][0-9]{0,8})(?:\.\.([1-9][0-9]{0,8}))?")


@dataclass(frozen=True)
class Setting:
    """Sizes of a model: of its symbols, and of those inputs that these determine."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def draw(self, draw: Draw | None = None) -> Draw:
        """How inputs of these sizes are drawn."""
        draw = draw or Draw()
        return Draw(draw.scale, draw.offset, draw.uniform, draw.size, self.sizes, draw.below, self.shapes)

    def __str__(self) -> str:
        return " ".join(f"{name}:{','.join(map(str, shape))}" for name, shape in self.shapes.items())


def read_shape(text: str) -> tuple[str, tuple[Range, ...]]:
    """An input and its sizes, from text such as `x:1..8,128`. Raises `UsageError`."""
    found = _SHAPE.fullmatch(text)
    sizes = [_SIZE.fullmatch(part.strip()) for part in found["sizes"].split(",")] if found else [None]
    ranges = [(int(s[1]), int(s[2] or s[1])) for s in sizes if s is not None]
    if found is None or len(ranges) < len(sizes) or any(low > high for low, high in ranges):
        raise UsageError(f"shape {text!r} cannot be read; write an input and its sizes, as in x:1..8,128")
    return found["name"], tuple(ranges)


def settings_of(program: Program, asked: Mapping[str, Sequence[Range]]) -> tuple[Setting, ...]:
    """What to try: sizes in the middle of all ranges first, then the least, then the most.

    The middle is the geometric one: between 1 and 64 it is 8. Raises `UsageError` where there is no such input, or it
    has other sizes.
    """
    ranges: dict[str, Range] = {}
    for name, given in asked.items():
        _match(program, name, given, ranges)
    middle = {n: round(math.sqrt(low * high)) for n, (low, high) in ranges.items()}
    least, most = ({n: ends[i] for n, ends in ranges.items()} for i in (0, 1))
    several = [middle, least, most] if least != most else [most]
    return tuple(_setting(program, dict(sizes)) for sizes in dict.fromkeys(tuple(s.items()) for s in several))


def _match(program: Program, name: str, given: Sequence[Range], ranges: dict[str, Range]) -> None:
    if name not in program.inputs:
        raise UsageError(f"shape: the model has no input {name!r}; its inputs are {', '.join(program.inputs)}")
    term = program.values.get(name)
    if term is None:
        raise UsageError(f"shape: input {name!r} is no tensor of known rank")
    if len(given) != len(term.shape):
        raise UsageError(f"shape: input {name!r} has {len(term.shape)} sizes, not {len(given)}")
    for axis, (dim, (low, high)) in enumerate(zip(term.shape, given, strict=True)):
        fixed = (dim, dim) if isinstance(dim, int) else ranges.setdefault(_symbol(dim), (low, high))
        if fixed != (low, high):
            told = "..".join(map(str, dict.fromkeys(fixed)))
            raise UsageError(f"shape: size {axis} of input {name!r} is {told}, not {'..'.join(map(str, {low, high}))}")


def _symbol(dim: Dim) -> str:
    name = symbol_name(dim)
    assert name is not None  # inputs are read with numbers and symbols alone
    return name


def _setting(program: Program, sizes: dict[str, int]) -> Setting:
    shapes: dict[str, tuple[int, ...]] = {}
    for name in program.inputs:
        shape = program.values[name].shape if name in program.values else ()
        if sizes and set().union(*map(symbols, shape)) <= set(sizes):
            shapes[name] = tuple(int(substitute(d, sizes)) for d in shape)  # type: ignore[arg-type]
    return Setting(sizes, shapes)
