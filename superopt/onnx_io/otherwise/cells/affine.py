"""Rows as what matrices make of other rows: products, sums, parts and joins of such, however a model spells them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array

Parts: TypeAlias = "Mapping[ir.Value, Array | None]"


class Affine(NamedTuple):
    """Rows of a width: the sum of products of other rows by matrices, (rows' width, width), and of one row. In place of
    a matrix that would be the identity stands None.
    """

    parts: Parts
    more: Array
    picked: bool = False
    """Whether these are parts and joins of other rows, as they are."""

    @property
    def width(self) -> int:
        return int(self.more.size)

    def matrix(self, of: ir.Value, width: int) -> Array:
        """The matrix that rows are multiplied by, zeros for rows of this width that are not among them."""
        if of not in self.parts:
            return np.zeros((width, self.width), self.more.dtype)
        return matrix_of(self.parts[of], width)

    def part(self, begin: int, width: int) -> Affine:
        """So many columns of the rows."""
        end = begin + width
        parts = {v: _places(self.width, begin, width) if m is None else m[:, begin:end] for v, m in self.parts.items()}
        return Affine(parts, self.more[begin:end], self.picked)

    def times(self, matrix: Array | None) -> Affine:
        """The rows multiplied by a matrix, or as they are."""
        if matrix is None:
            return self
        return Affine({v: matrix if m is None else m @ matrix for v, m in self.parts.items()}, self.more @ matrix)

    def plus(self, other: Affine) -> Affine:
        """The sum with rows that are as wide."""
        parts = dict(self.parts)
        for v, m in other.parts.items():
            parts[v] = m if v not in parts else matrix_of(parts[v], self.width) + matrix_of(m, self.width)
        return Affine(parts, self.more + other.more)

    def negated(self) -> Affine:
        """The rows with their signs changed."""
        return Affine({v: -matrix_of(m, self.width) for v, m in self.parts.items()}, -self.more)


class NotRows(ValueError):
    """A value is none that is made of rows of a known width."""


def matrix_of(matrix: Array | None, width: int) -> Array:
    """The matrix that rows of a width are multiplied by, also where that would be the identity."""
    return np.eye(width, dtype=np.float32) if matrix is None else matrix


def _places(whole: int, begin: int, width: int) -> Array:
    """The matrix that takes so many numbers of rows."""
    return np.eye(whole, width, -begin, dtype=np.float32)


def row(data: Array, width: int) -> Affine:
    """A constant that is added to each row. Raises `NotRows` where it is not the same for all."""
    if any(d != 1 for d in data.shape[:-1]) or data.size not in (1, width):
        raise NotRows
    return Affine({}, np.broadcast_to(data.reshape(-1), (width,)).astype(np.float32))
