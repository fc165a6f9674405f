"""The two forms of answer: the model alone, or model and report as the two parts of a multipart document."""

import os
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import BinaryIO, Final

import anyio.to_thread
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

MODEL_TYPE: Final = "application/octet-stream"
MIXED_TYPE: Final = "multipart/mixed"
_CHUNK: Final = 1 << 20


def preferred(accept: str | None, offers: Sequence[str]) -> str | None:
    """The offer that an Accept header likes best, the first of equals; None where it excludes them all.

    A type counts more than `type/*`, and that more than `*/*`, as RFC 9110 has it.
    """
    ranges = [_media_range(part) for part in (accept or "*/*").split(",") if part.strip()]
    best, best_quality = None, 0.0
    for offer in offers:
        fitting = [(_precision(name), quality) for name, quality in ranges if _fits(offer, name)]
        quality = max(fitting)[1] if fitting else 0.0
        if quality > best_quality:
            best, best_quality = offer, quality
    return best


def _media_range(text: str) -> tuple[str, float]:
    name, *parameters = (part.strip().lower() for part in text.split(";"))
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip() == "q":
            return name, _quality(value)
    return name, 1.0


def _quality(text: str) -> float:
    """A q value; one that is none counts as refusal."""
    try:
        quality = float(text)
    except ValueError:
        return 0.0
    return min(quality, 1.0) if quality >= 0 else 0.0  # which what is no number is not


def _fits(offer: str, name: str) -> bool:
    return name in ("*/*", offer, offer.partition("/")[0] + "/*")


def _precision(name: str) -> int:
    return 2 - name.count("*")


class ModelResponse(StreamingResponse):
    """Streams an open file, between a head and a tail, and closes it whether or not the client stays to the end."""

    def __init__(
        self, model: BinaryIO, headers: Mapping[str, str], media_type: str, head: bytes = b"", tail: bytes = b""
    ) -> None:
        size = os.fstat(model.fileno()).st_size
        length = len(head) + size + len(tail)
        super().__init__(
            _chunks(head, model, tail), headers={**headers, "Content-Length": str(length)}, media_type=media_type
        )
        self._model = model

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._model:
            await super().__call__(scope, receive, send)


async def _chunks(head: bytes, model: BinaryIO, tail: bytes) -> AsyncIterator[bytes]:
    if head:
        yield head
    while chunk := await anyio.to_thread.run_sync(model.read, _CHUNK):
        yield chunk
    if tail:
        yield tail


def alone(model: BinaryIO, headers: Mapping[str, str]) -> ModelResponse:
    """The model as the whole body."""
    disposition = {"Content-Disposition": 'attachment; filename="optimized.onnx"'}
    return ModelResponse(model, {**headers, **disposition}, MODEL_TYPE)


def mixed(model: BinaryIO, report: bytes, headers: Mapping[str, str]) -> ModelResponse:
    """The model, then the report."""
    boundary = secrets.token_hex(16)
    head = _part_head(boundary, MODEL_TYPE, "optimized.onnx")
    tail = (
        b"\r\n" + _part_head(boundary, "application/json", "report.json") + report + f"\r\n--{boundary}--\r\n".encode()
    )
    return ModelResponse(model, headers, f"{MIXED_TYPE}; boundary={boundary}", head, tail)


def _part_head(boundary: str, media_type: str, name: str) -> bytes:
    lines = (f"--{boundary}", f"Content-Type: {media_type}", f'Content-Disposition: attachment; filename="{name}"')
    return "\r\n".join((*lines, "", "")).encode()
