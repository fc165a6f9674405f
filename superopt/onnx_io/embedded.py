"""Models whose weights stay in their files until somebody asks for them: reading takes no memory for them."""

from __future__ import annotations

import math
import mmap
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from superopt.onnx_io.skeleton import SMALL
from superopt.onnx_io.wire import Buffer, Field, Malformed, fields, frame

_CHUNK = 2**20


class _Source:
    """A file as it was when it was opened, also after another one has taken its name.

    A mapping holds it, not a file object: that one wants to be closed, and closing it from a finalizer would swallow an
    interrupt that arrives there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            self.bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def read(self, offset: int, length: int) -> bytes:
        """So many bytes. Raises `OSError` where the file became shorter."""
        if self.bytes.size() < offset + length:
            raise OSError(f"{self.path}: became shorter while it was read")
        found = self.bytes[offset : offset + length]
        start = offset - offset % mmap.PAGESIZE
        self.bytes.madvise(mmap.MADV_DONTNEED, start, offset + length - start)
        return found


class EmbeddedTensor(ir.LazyTensor):
    """An initializer whose bytes stand in a file that is held, as a model's own; each request reads them anew."""

    def __init__(self, proto: onnx.TensorProto, source: _Source, offset: int) -> None:
        metadata = {entry.key: entry.value for entry in proto.metadata_props}
        super().__init__(
            self._read,
            ir.DataType(proto.data_type),
            ir.Shape(tuple(proto.dims), frozen=True),
            name=proto.name,
            doc_string=proto.doc_string or None,
            metadata_props=metadata,
        )
        self._source, self._offset = source, offset

    def _read(self) -> ir.TensorProtocol:
        flat = np.frombuffer(self.tobytes(), np.dtype(self.dtype.numpy()).newbyteorder("<"))
        return ir.Tensor(flat.reshape(self.shape.numpy()), self.dtype, name=self.name)

    def tobytes(self) -> bytes:
        """The elements, little-endian."""
        return self._source.read(self._offset, self.nbytes)

    def tofile(self, file: Any) -> None:
        """Write the elements to a file, a part at a time."""
        for start in range(0, self.nbytes, _CHUNK):
            file.write(self._source.read(self._offset + start, min(_CHUNK, self.nbytes - start)))


def read(path: Path) -> tuple[onnx.ModelProto, dict[str, EmbeddedTensor]]:
    """A model's message, and the large weights of its main graph: in the message these lack their bytes.

    Weights whose number of bytes is not what their type needs stay in the message, for the checks to find. Raises
    `OSError`, and `google.protobuf.message.DecodeError` for what is no message.
    """
    proto, source = onnx.ModelProto(), _Source(path)
    try:
        message, found = _without_weights(source.bytes)
    except Malformed:  # protobuf itself decides
        proto.ParseFromString(source.bytes[:])
        return proto, {}
    proto.ParseFromString(message)
    tensors = proto.graph.initializer
    return proto, {tensors[i].name: EmbeddedTensor(tensors[i], source, offset) for i, offset in found.items()}


def held(model: ir.Model) -> None:
    """Let a model stand on its own, whatever becomes of the files of its external weights.

    They are no external ones afterwards, but read where they lie, also when a file has lost its name.
    """
    sources: dict[Path, _Source] = {}
    for value in (v for graph in model.graphs() for v in graph.initializers.values()):
        tensor = value.const_value
        if not isinstance(tensor, ir.ExternalTensor) or tensor.dtype.bitwidth % 8 or not tensor.nbytes:
            continue
        path = Path(tensor.path)
        if path not in sources:
            sources[path] = _Source(path)
        value.const_value = EmbeddedTensor(_without_data(tensor), sources[path], tensor.offset or 0)
    ir.external_data.load_to_model(model)  # the rest, which is small or packed


def _without_data(tensor: ir.ExternalTensor) -> onnx.TensorProto:
    """The message of a tensor but for where its bytes are."""
    proto = onnx.TensorProto(name=tensor.name, data_type=tensor.dtype.value, dims=tensor.shape.numpy())
    if tensor.doc_string:
        proto.doc_string = tensor.doc_string
    for key, value in tensor.metadata_props.items():
        proto.metadata_props.add(key=key, value=value)
    return proto


def _without_weights(data: Buffer) -> tuple[bytes, dict[int, int]]:
    """A model's message without the bytes of large weights, and by the number of the initializer where those begin."""
    model = list(fields(data, 0, len(data)))
    graphs = [f for f in model if f.number == onnx.ModelProto.GRAPH_FIELD_NUMBER]
    if len(graphs) != 1:
        raise Malformed(f"{len(graphs)} graphs")
    parts: list[bytes] = []
    found: dict[int, int] = {}
    count = 0
    for field in fields(data, graphs[0].value, graphs[0].end):
        if field.number == onnx.GraphProto.INITIALIZER_FIELD_NUMBER:
            raw = _large_raw(data, field)
            if raw is not None:
                found[count] = raw.value
                kept = data[field.value : raw.start] + data[raw.end : field.end]
                parts += [frame(field.number, len(kept)), kept]
            count += 1
            if raw is not None:
                continue
        parts.append(data[field.start : field.end])
    graph = b"".join(parts)
    around = [data[f.start : f.end] for f in model if f is not graphs[0]]
    return b"".join([*around, frame(onnx.ModelProto.GRAPH_FIELD_NUMBER, len(graph)), graph]), found


def _large_raw(data: Buffer, tensor: Field) -> Field | None:
    """The field with a tensor's bytes, if they are many and as many as its type needs."""
    if tensor.end - tensor.value <= SMALL:
        return None
    inner = list(fields(data, tensor.value, tensor.end))
    raws = [f for f in inner if f.number == onnx.TensorProto.RAW_DATA_FIELD_NUMBER]
    if len(raws) != 1:
        return None
    proto = onnx.TensorProto()
    proto.ParseFromString(data[tensor.value : raws[0].start] + data[raws[0].end : tensor.end])
    try:
        bits = ir.DataType(proto.data_type).bitwidth
    except (ValueError, TypeError):
        return None
    whole = bits % 8 == 0 and 8 * (raws[0].end - raws[0].value) == bits * math.prod(proto.dims)
    internal = proto.data_location != onnx.TensorProto.EXTERNAL
    return raws[0] if whole and internal and 8 * math.prod(proto.dims) > SMALL else None
