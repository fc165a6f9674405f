"""The catalogue: declaring an operator, and the functions that read nodes as declared ones.

The decorator checks a declaration, makes its instances immutable values and enters it into `CATALOGUE`.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

from superopt.errors import SuperoptError
from superopt.operators.attributes import Field, attr
from superopt.operators.declared import Declared
from superopt.operators.nodes import Source
from superopt.term import Term

CATALOGUE: dict[str, type[Declared]] = {}
"""Every declared operator by its name in text."""

READERS: dict[tuple[str, str], Callable[[Source], Term | tuple[Term | None, ...]]] = {}
"""What reads a node, by domain (empty for ONNX's own) and operator: the term of its value, or of each output.

None stands for an output that has no term; where something reads that, the node is not understood.
"""


D = TypeVar("D", bound=Declared)


@dataclass_transform(frozen_default=True, field_specifiers=(attr,))
def operator(name: str, onnx: str | None = None, domain: str = "") -> Callable[[type[D]], type[D]]:
    """Declare an operator under a name, written as an ONNX operator of a domain.

    Raises `SuperoptError` for a declaration that contradicts itself.
    """

    def declare(cls: type[D]) -> type[D]:
        made = dataclasses.dataclass(frozen=True, repr=False)(cls)
        declared: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(made)  # type: ignore[arg-type]
        made.name, made.onnx, made.domain = name, onnx, domain
        made.fields = tuple(Field(f.name, f.default, f.metadata["facts"]) for f in declared if "facts" in f.metadata)
        made._structural = tuple(f.name for f in made.fields if not f.facts.size)
        made._sized = tuple(f for f in made.fields if f.facts.size)
        made.arity = len(inspect.signature(made.eval).parameters) - 2
        for rule in (made.shape, made.eval):
            if rule in (Declared.shape, Declared.eval):
                raise SuperoptError(f"operator {name}: it needs a shape rule, and an evaluation")
        if any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(made.eval).parameters.values()):
            raise SuperoptError(f"operator {name}: eval names its inputs, one by one")
        if name in CATALOGUE:
            raise SuperoptError(f"operator {name} is declared twice")
        if len(inspect.signature(made.shape).parameters) - 1 != made.arity:
            raise SuperoptError(f"operator {name}: shape and eval take different numbers of inputs")
        if not (made.__doc__ or "").startswith("`"):
            raise SuperoptError(f"operator {name}: its docstring opens with its formula in backquotes")
        CATALOGUE[name] = made
        if onnx is not None:
            READERS[domain, onnx] = made.from_onnx
        return made

    return declare


Reader = TypeVar("Reader", bound=Callable[[Source], "Term | tuple[Term | None, ...]"])


def reads(*op_types: str, domain: str = "") -> Callable[[Reader], Reader]:
    """Enter a function into `READERS`: for ONNX operators that are another form of a declared one."""

    def enter(reader: Reader) -> Reader:
        READERS.update({(domain, op_type): reader for op_type in op_types})
        return reader

    return enter


def is_shipped(cls: type[Declared]) -> bool:
    """Whether an operator comes with superopt, and not from a file of the user's."""
    return cls.__module__.startswith("superopt.operators.")
