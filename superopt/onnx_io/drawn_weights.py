"""Random weights of models that are only timed: drawn once, and kept in files that many such models read.

Drawing and writing what a model reads would take longer than timing it, over and over: a kernel is timed beside copies
of itself, each with weights of its own.
"""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.drawn import normal
from superopt.folders import temporary_folder
from superopt.operators.nodes import concrete
from superopt.term import REAL, Graph, Term, variables

APART = 2**16
"""Weights of more bytes stand in files beside a model: in a message they are there three times while it is written."""

ALIGNED = 2**12
"""Weights begin at multiples of so many bytes, as ONNX asks for what is mapped into memory."""

MOST_KEPT = 2**28
"""Bytes of files, of which none that the next model does not need are kept beyond."""


@dataclass(frozen=True)
class Spread:
    """What the numbers of a weight are like: of a type, and normal with a deviation, or zeros where that is 0, or
    positive and near 1 where there is none.
    """

    dtype: str
    deviation: float | None

    def numbers(self, count: int, rng: np.random.Generator) -> Array:
        """So many of them."""
        if self.deviation is None:
            return rng.uniform(0.5, 1.5, count).astype(self.dtype)
        if not self.deviation:
            return np.zeros(count, self.dtype)
        return normal(rng, (count,), self.deviation).astype(self.dtype, copy=False)


def spread(v: Term) -> Spread:
    """Matrices and kernels keep the scale of what passes through them (He 2015); vectors are positive, near 1.

    So nothing measured becomes infinite, NaN or denormal, which would change its time. Integers are zeros: an index
    into any axis.
    """
    dtype, shape = dtype_of(v), concrete(v.shape, "weight")
    if "float" not in dtype:
        return Spread(dtype, 0.0)
    if len(shape) < 2:
        return Spread(dtype, None)
    fan_in = shape[-2] if len(shape) < 4 else math.prod(shape[1:])
    return Spread(dtype, math.sqrt(2.0 / fan_in))


def leaves(graph: Graph) -> list[Term]:
    """The variables of a graph, its inputs first."""
    return list(dict.fromkeys((*graph.inputs, *variables(*graph.outputs))))


def random_weights(graph: Graph, seed: int = 0) -> dict[Term, Array]:
    """Values of the constants among the variables of a graph, the same for one seed."""
    return {v: _drawn(v, np.random.default_rng([seed, i])) for i, v in enumerate(leaves(graph)) if v.constant}


def dtype_of(v: Term) -> str:
    """The type of a value in a file: `REAL` is float32."""
    return "float32" if v.type.dtype == REAL else v.type.dtype


def _drawn(v: Term, rng: np.random.Generator) -> Array:
    shape = concrete(v.shape, "weight")
    return spread(v).numbers(math.prod(shape), rng).reshape(shape)


class DrawnWeights:
    """Files of random weights in a `folder`, which is there from the first use until this object is gone.

    Weights of one spread are in one file. Of what is timed together each has a place of its own there, as in a model.
    """

    def __init__(self) -> None:
        self._held = ExitStack()
        self._folder: Path | None = None
        self._lengths: dict[Spread, int] = {}
        self._taken: dict[Spread, int] = {}
        self._asked = 0

    @property
    def folder(self) -> Path:
        """Where the files are, and the models that read them have to be. Raises `NoRoom`."""
        if self._folder is None:
            self._folder = self._held.enter_context(temporary_folder())
        return self._folder

    def begin(self) -> None:
        """What is asked for from now on may stand where others stood before."""
        self._taken.clear()
        self._asked = 0
        self._make_room()

    def tensor(self, v: Term, like: Term | None = None) -> ir.TensorProtocol:
        """The values of a constant, which may be as those of another are: in a file, but for small ones. Raises
        `NoRoom`, and `OSError` where none can be written.
        """
        kind, shape, self._asked = spread(like or v), concrete(v.shape, "weight"), self._asked + 1
        dtype = np.dtype(kind.dtype)
        count = math.prod(shape) * dtype.itemsize
        if count <= APART:
            numbers = kind.numbers(math.prod(shape), np.random.default_rng(self._asked))
            return ir.Tensor(numbers.reshape(shape), name=v.label)
        start = self._taken.get(kind, 0)
        self._taken[kind] = -(-(start + count) // ALIGNED) * ALIGNED
        self._lengthen(kind, start + count)
        held = ir.DataType.from_numpy(dtype)
        place, folder = self._file(kind), self.folder
        return ir.ExternalTensor(place, start, count, held, shape=ir.Shape(shape), name=v.label, base_dir=folder)

    def _lengthen(self, kind: Spread, least: int) -> None:
        """Have a file be of so many bytes."""
        length = self._lengths.get(kind, 0)
        if least <= length:
            return
        self._make_room(least - length)
        numbers = kind.numbers((least - length) // np.dtype(kind.dtype).itemsize, np.random.default_rng(length))
        with (self.folder / self._file(kind)).open("r+b" if length else "wb") as file:
            file.seek(length)
            numbers.tofile(file)
        self._lengths[kind] = least

    def _make_room(self, more: int = 0) -> None:
        """Let files go that are not in use, where all are too long with so many bytes more."""
        for kind in [k for k in self._lengths if k not in self._taken]:
            if sum(self._lengths.values()) + more > MOST_KEPT:
                del self._lengths[kind]
                (self.folder / self._file(kind)).unlink(missing_ok=True)

    def _file(self, kind: Spread) -> str:
        return f"{kind.dtype} {kind.deviation}.data"
