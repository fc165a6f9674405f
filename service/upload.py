"""Receives a model into a file as it arrives, never holding more than a chunk of it."""

import asyncio
from pathlib import Path
from typing import Final

from starlette.requests import Request

from service.problems import INVALID_MODEL, SLOW_UPLOAD, TOO_LARGE, WRONG_MEDIA_TYPE, Problem, no_room

# Clients that set no type, or one that says nothing (curl's default is a form's), most likely send the bare file.
_REFUSED: Final = ("multipart/", "application/json", "text/")


async def receive_model(request: Request, target: Path, *, max_bytes: int, seconds: float) -> None:
    """Write the body to `target`.

    Raises the problems `wrong-media-type`, `too-large`, `slow-upload`, `no-room` and, for an empty body,
    `invalid-model`; `ClientDisconnect` where the client leaves before the end.
    """
    _require_bare_bytes(request)
    declared = request.headers.get("content-length")
    if declared is not None and int(declared) > max_bytes:
        raise _too_large(max_bytes)
    received = 0
    try:
        async with asyncio.timeout(seconds):
            with target.open("wb") as file:
                async for chunk in request.stream():
                    received += len(chunk)
                    if received > max_bytes:
                        raise _too_large(max_bytes)
                    file.write(chunk)
    except TimeoutError:
        raise Problem(SLOW_UPLOAD, f"{received} bytes arrived in {seconds:g} seconds") from None
    except OSError as error:  # the disk is full, mostly
        raise no_room(error) from None
    if not received:
        raise Problem(INVALID_MODEL, "the body is empty")


def _require_bare_bytes(request: Request) -> None:
    media_type = request.headers.get("content-type", "").lower()
    if media_type.startswith(_REFUSED):
        raise Problem(WRONG_MEDIA_TYPE, f"the body is declared as {media_type}")
    encoding = request.headers.get("content-encoding", "identity").lower()
    if encoding != "identity":
        raise Problem(WRONG_MEDIA_TYPE, f"the body is encoded as {encoding}", headers={"Accept-Encoding": "identity"})


def _too_large(max_bytes: int) -> Problem:
    return Problem(TOO_LARGE, f"this server accepts models of up to {max_bytes} bytes")
