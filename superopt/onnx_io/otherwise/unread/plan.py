"""Which places of values are read, as it is planned for all nodes of a program."""

from __future__ import annotations

from typing import NamedTuple

import onnx_ir as ir

from superopt.onnx_io.naming import name_of
from superopt.onnx_io.otherwise.unread.cuts import Need
from superopt.onnx_io.otherwise.unread.evenly import whole
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import shape_of

OPEN = 2**31
"""As many places as there are at most along an axis whose size is not known."""


class Made(NamedTuple):
    """A node of which some places are read, or all as None says, and what it reads for them."""

    of: Need | None
    read: dict[int, Need]


class Plan(NamedTuple):
    """What nodes are to give, by their places, and which places values have then, by their names."""

    nodes: dict[int, Made]
    has: dict[str, Need]


def there(program: Program, plan: Plan, value: ir.Value | None, axis: int) -> Need | None:
    """The places that a value has along an axis once it is made as planned; None where nothing is known of it."""
    made, shape = plan.has.get(name_of(value)), shape_of(program, value)
    size = None if shape is None else shape[axis]
    return made if made or size is None else Need(axis, whole(size if isinstance(size, int) else OPEN))
