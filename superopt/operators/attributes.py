"""Attributes of operators: what is declared of each besides its type."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Attribute:
    """What is declared of an attribute besides its type and default.

    `size` attributes are sizes or tuples of sizes and may be symbols in rules; others are part of the operator's
    structure and always concrete. `least` is the smallest legal size; `sample` is what enumeration tries.
    """

    size: bool
    least: int
    sample: tuple[Any, ...]
    onnx: str | None


@dataclasses.dataclass(frozen=True)
class Field:
    """An attribute of a declared operator: its name, its default (or `dataclasses.MISSING`) and its facts."""

    name: str
    default: Any
    facts: Attribute


def attr(
    *,
    default: Any = dataclasses.MISSING,
    size: bool = False,
    least: int = 0,
    sample: Sequence[Any] = (),
    onnx: str | None = None,
) -> Any:
    """Declare an attribute; see `Attribute`."""
    return dataclasses.field(default=default, metadata={"facts": Attribute(size, least, tuple(sample), onnx)})
