"""ONNX models written to files, so that another process sees a whole one or none."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import onnx_ir as ir

from superopt.errors import UsageError
from superopt.folders import unfinished
from superopt.onnx_io.other_weights import holding, with_weights
from superopt.onnx_io.passed_on import with_texts
from superopt.onnx_io.skeleton import clone
from superopt.onnx_io.stream import write

PROTOBUF_LIMIT = 2**31 - 1
"""A protobuf message is shorter than this; larger models keep their weights in a file beside."""

_ROOM = 2**24  # for all that is not weights

_SMALL = 256
"""Weights of at most so many bytes stay in the model, where others go to a file."""


def save(model: ir.Model, path: str | Path, *, external_data: bool | None = None, shared: bool = False) -> None:
    """Write a model; another process sees the whole file or none.

    Weights go to a file beside it, `<name>.data`, where the model had external data or passes protobuf's 2 GB, or
    where `external_data` asks for it; those that lie in files of this folder already are left there, if they may be
    `shared`. An existing data file is never overwritten: a model may still read from it.
    Raises `UsageError` where the path cannot be written; then nothing has changed there.
    """
    path = Path(path)
    values = _weights(model)
    tensors = [value.const_value for value in values if value.const_value is not None]
    size = sum(t.nbytes for t in tensors) + _ROOM
    outside = external_data or size > PROTOBUF_LIMIT or any(isinstance(t, ir.ExternalTensor) for t in tensors)
    temporary, is_whole = unfinished(path), False
    data = path.with_name(_unused_data_name(path)) if outside else None
    try:
        if data is not None:
            model = _unloaded(model, values, path.parent, data.name, shared)
        with temporary.open("wb") as file:
            write(model, file)
        is_whole = True
        os.replace(temporary, path)
    except BaseException as error:  # an interrupt too leaves nothing behind
        is_in_place = is_whole and not temporary.exists()  # then it needs its weights
        temporary.unlink(missing_ok=True)
        if data is not None and not is_in_place:
            data.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from None
        raise


def may_hold_weights(file: Path, model: Path) -> bool:
    """Whether `save` may put a model's weights into a file of this name."""
    return (
        file.parent == model.parent and re.fullmatch(rf"{re.escape(model.name)}(\.\d+)?\.data", file.name) is not None
    )


@contextmanager
def gone_after(*models: Path) -> Iterator[None]:
    """Models that are saved at these paths within the block are gone after it, and so are their weights, of which there
    may be many.
    """
    try:
        yield
    finally:
        for model in models:
            model.unlink(missing_ok=True)
            for file in [file for file in model.parent.iterdir() if may_hold_weights(file, model)]:
                file.unlink(missing_ok=True)


def _unloaded(model: ir.Model, values: Sequence[ir.Value], folder: Path, name: str, shared: bool) -> ir.Model:
    """The model with what these values hold in a file, or in several; strings have no bytes to put there, and stay."""

    def stays(tensor: ir.TensorProtocol) -> bool:
        there = isinstance(tensor, ir.ExternalTensor) and Path(tensor.base_dir) == folder
        return tensor.dtype == ir.DataType.STRING or (shared and there)

    tensors = [v.const_value for v in values if v.const_value is not None]
    moving = [i for i, tensor in enumerate(tensors) if tensor.nbytes > _SMALL and not stays(tensor)]
    placed = ir.external_data.convert_tensors_to_external([tensors[i] for i in moving], folder, name)
    made = [tensor if stays(tensor) else _kept_small(tensor) for tensor in tensors]
    for i, there in zip(moving, placed, strict=True):
        made[i] = with_texts(there, tensors[i])
    if not (folder / name).stat().st_size:
        (folder / name).unlink()
    if all(value.graph is model.graph for value in values):
        return with_weights(model, [holding(value, tensor) for value, tensor in zip(values, made, strict=True)])
    copy = clone(model)
    for value, tensor in zip(_weights(copy), made, strict=True):
        value.const_value = tensor
    return copy


def _weights(model: ir.Model) -> list[ir.Value]:
    """The values of a model and of the graphs within it that hold a tensor."""
    return [v for graph in model.graphs() for v in graph.initializers.values() if v.const_value is not None]


def _kept_small(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    """A small weight that lies in a file in memory. onnx-ir would close the file, though arrays of it are used."""
    if isinstance(tensor, ir.ExternalTensor) and tensor.nbytes <= _SMALL:
        return with_texts(ir.Tensor(tensor.numpy().copy(), tensor.dtype, name=tensor.name), tensor)
    return tensor


def _unused_data_name(path: Path) -> str:
    name, count = f"{path.name}.data", 0
    while path.with_name(name).exists():
        count += 1
        name = f"{path.name}.{count}.data"
    return name
