"""What can go wrong with a request, as RFC 9457 problem documents: one table, from which the rest follows."""

import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from service.schemas import ProblemDocument

LOG: Final = logging.getLogger("uvicorn.error")
MEDIA_TYPE: Final = "application/problem+json"


@dataclass(frozen=True)
class Kind:
    """One kind of problem: `/problems/{name}` is its type, where `meaning` can be read."""

    name: str
    status: int
    title: str
    meaning: str


INVALID_REQUEST: Final = Kind(
    "invalid-request", 422, "A parameter cannot be used", "Mend the parameters named in `errors` and send it again."
)
INVALID_MODEL: Final = Kind(
    "invalid-model",
    422,
    "Not a valid ONNX model",
    "The body is no ONNX model, or breaks ONNX's own rules: `detail` says where. Weights must be inside the model: "
    "external data cannot be sent.",
)
TOO_LARGE: Final = Kind("too-large", 413, "The model is too large", "The server is set to accept models up to a limit.")
WRONG_MEDIA_TYPE: Final = Kind(
    "wrong-media-type",
    415,
    "The body is not a bare ONNX file",
    "Send the bytes of the file as the body, as application/octet-stream; no form, no JSON, no compression.",
)
NOT_ACCEPTABLE: Final = Kind(
    "not-acceptable",
    406,
    "No such form of answer",
    "The answer is application/octet-stream, or multipart/mixed with the report as its second part.",
)
SLOW_UPLOAD: Final = Kind("slow-upload", 408, "The model did not arrive in time", "The connection was too slow.")
BUSY: Final = Kind(
    "busy",
    503,
    "The server is busy",
    "Models are optimized one at a time, as measurements would disturb each other. Retry after `Retry-After` seconds.",
)
OUT_OF_TIME: Final = Kind(
    "out-of-time", 504, "The time limit passed before there was an answer", "Ask for more `time`, if the server allows."
)
OUT_OF_MEMORY: Final = Kind(
    "out-of-memory",
    507,
    "The model needs more memory than this server grants",
    "A retry will not help: the server must be started with a larger `--memory`.",
)
NO_ROOM: Final = Kind(
    "no-room", 503, "The server has no room on its disk", "Nothing is wrong with the model: the server's log has it."
)
NO_REPORT: Final = Kind(
    "no-report", 404, "No such report", "It never was, or made room for newer ones: reports are kept for a while only."
)
NOT_READY: Final = Kind("not-ready", 503, "The server is not ready", "The optimizer has not answered yet, or cannot.")
NOT_RUN: Final = Kind(
    "not-run",
    422,
    "The runtime cannot run the model",
    "`detail` says what the runtime said: mend the model, or ask for another `runtime`.",
)
NOT_VERIFIED: Final = Kind(
    "not-verified",
    500,
    "The optimized model did not agree with the original",
    "It was thrown away. This is an error of the optimizer: please report it, with the model if you can.",
)
FAILED: Final = Kind(
    "failed", 500, "The optimizer failed", "An error that the model's sender did not make; the server's log has it."
)

KINDS: Final = {
    kind.name: kind
    for kind in (
        INVALID_REQUEST,
        INVALID_MODEL,
        TOO_LARGE,
        WRONG_MEDIA_TYPE,
        NOT_ACCEPTABLE,
        SLOW_UPLOAD,
        BUSY,
        OUT_OF_TIME,
        OUT_OF_MEMORY,
        NO_ROOM,
        NO_REPORT,
        NOT_READY,
        NOT_RUN,
        NOT_VERIFIED,
        FAILED,
    )
}


class Problem(Exception):
    """A problem on its way to the client."""

    def __init__(
        self,
        kind: Kind,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        errors: list[dict[str, str]] | None = None,
    ) -> None:
        super().__init__(f"{kind.name}: {detail}")
        self.kind = kind
        self.detail = detail
        self.headers = headers
        self.errors = errors

    def response(self) -> Response:
        """The document that the client gets."""
        return _document(
            ProblemDocument(
                type=f"/problems/{self.kind.name}",
                title=self.kind.title,
                status=self.kind.status,
                detail=self.detail,
                errors=self.errors,
            ),
            self.headers,
        )


def no_room(error: OSError) -> Problem:
    """The problem that nothing can be written on this machine, of which the log tells more than the client is told."""
    LOG.warning("%s: %s", NO_ROOM.name, error)
    return Problem(NO_ROOM, NO_ROOM.meaning)


def responses(*kinds: Kind) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of these problems, by status."""
    titles: dict[int | str, list[str]] = {}
    for kind in kinds:
        titles.setdefault(kind.status, []).append(kind.title)
    content = {MEDIA_TYPE: {"schema": ProblemDocument.model_json_schema()}}
    return {status: {"description": "; or: ".join(told), "content": content} for status, told in titles.items()}


def _document(document: ProblemDocument, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse(
        document.model_dump(exclude_none=True), document.status, headers=dict(headers or {}), media_type=MEDIA_TYPE
    )


async def _known(_: Request, error: Problem) -> Response:
    return error.response()


async def _invalid(_: Request, error: RequestValidationError) -> Response:
    # Of a list, the last part is a place in it.
    names = [[part for part in one["loc"] if isinstance(part, str)][-1] for one in error.errors()]
    errors = [{"name": name, "detail": one["msg"]} for name, one in zip(names, error.errors(), strict=True)]
    told = "; ".join(f"{one['name']}: {one['detail']}" for one in errors)
    return Problem(INVALID_REQUEST, told, errors=errors).response()


async def _plain_http(_: Request, error: HTTPException) -> Response:
    """Unknown paths and methods: the status says it all."""
    title = HTTPStatus(error.status_code).phrase
    return _document(ProblemDocument(title=title, status=error.status_code, detail=error.detail), error.headers)


async def _unexpected(_: Request, __: Exception) -> Response:
    """The traceback goes to the log (Starlette sees to that), and nothing of it to the client."""
    return Problem(FAILED, FAILED.meaning).response()


async def _gone(_: Request, __: Exception) -> Response:
    """Nobody reads this: the client has left."""
    return Response(status_code=499)


HANDLERS: Final[dict[int | type[Exception], Callable[[Request, Any], Coroutine[Any, Any, Response]]]] = {
    Problem: _known,
    RequestValidationError: _invalid,
    HTTPException: _plain_http,
    ClientDisconnect: _gone,
    Exception: _unexpected,
}
