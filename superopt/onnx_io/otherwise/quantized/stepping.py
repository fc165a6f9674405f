"""Which numbers bytes stand for, where these are steps of one width: what quantizes and dequantizes says so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.said import held, input_of, number

_BYTES = ("int8", "uint8")


@dataclass(frozen=True)
class Steps:
    """Which numbers bytes of a type stand for: how far these are apart, and the byte of 0."""

    scale: float
    zero: int
    dtype: str

    def bytes(self, numbers: Array) -> Array:
        """The bytes of numbers, which are bounded."""
        bounds = np.iinfo(self.dtype)
        with np.errstate(all="ignore"):
            steps = np.rint(numbers / np.float32(self.scale)) + np.float32(self.zero)
        return np.asarray(np.clip(steps, bounds.min, bounds.max), np.float32)

    @property
    def ends(self) -> tuple[int, int]:
        """The lowest and the highest byte."""
        bounds = np.iinfo(self.dtype)
        return int(bounds.min), int(bounds.max)

    @property
    def are_restored(self) -> bool:
        """Whether each byte is that of the number that it stands for."""
        low, high = self.ends
        every = np.arange(low, high + 1).astype(np.float32)
        with np.errstate(all="ignore"):
            numbers = (every - np.float32(self.zero)) * np.float32(self.scale)
        return bool(np.array_equal(self.bytes(numbers), every))


def steps_of(node: ir.Node) -> Steps | None:
    """The steps of 32-bit numbers to or from bytes of which a node is, if these are the same for all."""
    scale, zero = held(input_of(node, 1)), held(input_of(node, 2))
    if scale is None or zero is None or scale.numpy().size != 1 or zero.numpy().size != 1:
        return None
    if scale.dtype != ir.DataType.FLOAT or zero.numpy().dtype.name not in _BYTES or number(node, "precision", 0):
        return None
    return Steps(scale.numpy().item(), zero.numpy().item(), zero.numpy().dtype.name)
