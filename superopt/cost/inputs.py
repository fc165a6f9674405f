"""Random inputs for models that are run and measured: how they are drawn."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from superopt.cost.smooth import smooth
from superopt.errors import RuntimeFailed

Feeds: TypeAlias = "dict[str, NDArray[Any]]"

_DTYPES: dict[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int8)": np.int8,
    "tensor(int16)": np.int16,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(uint8)": np.uint8,
    "tensor(uint16)": np.uint16,
    "tensor(uint32)": np.uint32,
    "tensor(uint64)": np.uint64,
    "tensor(bool)": np.bool_,
}


MOST_TURNS = 4
"""How many turns a loop takes, at most, where an input says how many: of one without any, nothing can be told."""


@dataclass(frozen=True)
class Argument:
    """An input or output of a model as the runtime reports it; dimensions are sizes, names or None."""

    name: str
    type: str
    shape: tuple[int | str | None, ...]


@dataclass(frozen=True)
class Draw:
    """How random floating-point inputs are drawn: normal around `offset`, or uniform over `offset … offset + scale`;
    images `smooth`, if so, with neighbours alike; and half of the rows zeros, where it is `blank`.

    `shapes` gives those of inputs, `sizes` symbolic dimensions by name; others are `size`. Integers are 0 or more,
    and less than `below`; where that is None, less than the `limits` say of inputs by name (of all elements, or of each
    place along the last axis), and than 2 of all others: 0 and 1 are valid indices into every axis longer than one,
    valid token types and masks. What is `given`, by name, is not drawn, and `deciding` inputs are one number each.
    Inputs that say how many `turns` a loop takes let it take some.
    """

    scale: float = 1.0
    offset: float = 0.0
    uniform: bool = False
    smooth: bool = False
    blank: bool = False
    size: int = 1
    sizes: Mapping[str, int] = field(default_factory=dict)
    below: int | None = None
    limits: Mapping[str, int | tuple[int, ...]] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int | None, ...]] = field(default_factory=dict)
    given: Mapping[str, NDArray[Any]] = field(default_factory=dict, compare=False)
    deciding: Mapping[str, int] = field(default_factory=dict)
    turns: frozenset[str] = frozenset()


PHOTOGRAPH = Draw(scale=0.25, offset=0.5, smooth=True)
"""How inputs of models are drawn that are measured: bright images as photographs are, mostly from 0 to 1. Where they
are dark as often, more depends on what sign a number has, and what asks for none gains more than people will see.
"""

KERNEL = Draw(below=1, smooth=True)
"""How inputs of kernels and pieces are drawn: their integers may be indices into any axis."""


def drawn(argument: Argument, rng: np.random.Generator, draw: Draw) -> NDArray[Any]:
    """Random values for an input. Raises `RuntimeFailed` for a type that has none, and what memory does not hold."""
    dtype = _DTYPES.get(argument.type)
    if dtype is None:
        raise RuntimeFailed(f'input "{argument.name}" is a {argument.type}: there are no random values of that type')
    named = {d: draw.sizes.get(d, draw.size) for d in argument.shape if isinstance(d, str)}
    own = [d if isinstance(d, int) else named.get(d or "", draw.size) for d in argument.shape]
    shape = [o if d is None else d for d, o in zip(draw.shapes.get(argument.name, own), own, strict=True)]
    if math.prod(shape) * 8 > _memory() / 2:
        raise RuntimeFailed(f'input "{argument.name}" of shape {shape} does not fit in memory; give it smaller sizes')
    if argument.name in draw.deciding:
        return np.full(shape, draw.deciding[argument.name], dtype)
    if argument.name in draw.turns:
        return rng.integers(1, MOST_TURNS, size=shape, endpoint=True).astype(dtype)
    if not issubclass(dtype, np.floating):
        below = draw.limits.get(argument.name, 2) if draw.below is None else draw.below
        return rng.integers(0, 2 if dtype is np.bool_ else below, size=shape).astype(dtype)
    if draw.uniform:
        values = rng.random(shape)
    else:
        values = smooth(rng, shape) if draw.smooth else rng.standard_normal(shape)
    if (draw.scale, draw.offset) != (1.0, 0.0):
        values = draw.offset + draw.scale * values
    if draw.blank:
        zeros = rng.random(values.shape[:-1]) < 0.5
        zeros.flat[:1] = True
        values = np.where(zeros[..., None] if values.ndim else zeros, 0.0, values)
    return np.asarray(values, dtype=dtype)


@cache
def _memory() -> int:
    """The machine's memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
