"""What a form is: the terms whose values must be there, and what writes the nodes over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from superopt.term import Term


@dataclass(frozen=True)
class Form:
    """The terms whose values must be there, and what writes the nodes over them and gives the result's name."""

    operands: tuple[Term, ...]
    write: Callable[..., str]
