"""A step of a recurrent network, as ONNX's operators have it."""

from __future__ import annotations

from typing import NamedTuple

import onnx_ir as ir

from superopt.onnx_io.otherwise.cells.affine import Affine


class Cell(NamedTuple):
    """One step: the states that it leaves and those that it finds, and rows that its gates are made of, as ONNX orders
    them; what `bounds` the candidates, and a state that is given. Of a GRU that resets behind the product, `behind` is
    what is reset. What is `fed` back is made of the state that is found, and of nothing else, by layers that are in the
    gates' rows.
    """

    op_type: str
    ends: tuple[ir.Value, ...]
    begins: tuple[ir.Value, ...]
    gates: tuple[Affine, ...]
    bounds: tuple[str, ...]
    behind: Affine | None = None
    fed: tuple[ir.Value, ...] = ()

    @property
    def read(self) -> list[ir.Value]:
        """What a step reads beside the state that it finds."""
        own = dict.fromkeys(v for gate in self.gates for v in gate.parts)
        return [v for v in own if v != self.begins[0]]
