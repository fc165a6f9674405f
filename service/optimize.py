"""`POST /v1/optimize`: a model in, an equivalent faster one out."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from service import answers, jobs, problems
from service.line import Line
from service.presence import while_connected
from service.problems import Problem
from service.schemas import Wish
from service.settings import Settings
from service.store import ReportStore
from service.upload import receive_model

_BINARY: Final = {"schema": {"type": "string", "format": "binary", "contentMediaType": answers.MODEL_TYPE}}
_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "description": "The bytes of an ONNX file, its weights inside.",
        "required": True,
        "content": {answers.MODEL_TYPE: _BINARY},
    }
}
_DONE: Final[dict[str, Any]] = {
    "description": "The optimized model; the very bytes that were sent, where nothing faster was found.",
    "headers": {
        "Link": {
            "description": 'Where the report is: `</v1/reports/{id}>; rel="describedby"`.',
            "schema": {"type": "string"},
        }
    },
    "content": {
        answers.MODEL_TYPE: _BINARY,
        answers.MIXED_TYPE: {
            "schema": {
                "type": "object",
                "description": "Two parts: the model (application/octet-stream), then the report (application/json).",
            }
        },
    },
}
_PROBLEMS: Final = problems.responses(
    problems.INVALID_MODEL,
    problems.INVALID_REQUEST,
    problems.TOO_LARGE,
    problems.WRONG_MEDIA_TYPE,
    problems.NOT_ACCEPTABLE,
    problems.SLOW_UPLOAD,
    problems.BUSY,
    problems.OUT_OF_TIME,
    problems.OUT_OF_MEMORY,
    problems.NO_ROOM,
    problems.NOT_VERIFIED,
    problems.NOT_RUN,
    problems.FAILED,
)


def router(settings: Settings, line: Line, store: ReportStore) -> APIRouter:
    """The route that optimizes."""
    routes = APIRouter()

    @routes.post(
        "/v1/optimize",
        summary="Optimize a model",
        response_class=Response,
        responses={200: _DONE, **_PROBLEMS},
        openapi_extra=_BODY,
    )
    async def optimize(request: Request, wish: Annotated[Wish, Query()]) -> Response:
        """Send an ONNX model and get an equivalent one that was measured to be faster.

        Each rewrite is proved or tested exactly, and the whole is compared with the original; the report tells all of
        it. Models are optimized one at a time; a client that leaves ends its search.
        """
        _require_possible(wish, settings)
        form = answers.preferred(request.headers.get("accept"), (answers.MODEL_TYPE, answers.MIXED_TYPE))
        if form is None:
            raise Problem(problems.NOT_ACCEPTABLE, problems.NOT_ACCEPTABLE.meaning)
        try:
            done = await _optimized(request, wish, settings, line)
        except asyncio.CancelledError:  # the server has waited for as long as it may
            told = "the server is stopping; send the model again when it is back"
            raise Problem(problems.BUSY, told, headers={"Retry-After": "5"}) from None
        link = {"Link": f'</v1/reports/{store.keep(done.report)}>; rel="describedby"; type="application/json"'}
        if form == answers.MIXED_TYPE:
            return answers.mixed(done.model, done.report, link)
        return answers.alone(done.model, link)

    return routes


async def _optimized(request: Request, wish: Wish, settings: Settings, line: Line) -> jobs.Optimized:
    async with line.place():
        with _folder() as folder:
            await receive_model(
                request, folder / jobs.MODEL, max_bytes=settings.max_bytes, seconds=settings.upload_time
            )
            return await while_connected(request, _in_turn(folder, wish, settings, line))


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder for one model, which is gone after the block. Raises the problem `no-room` where none can be made."""
    try:
        made = TemporaryDirectory(prefix="superopt-", ignore_cleanup_errors=True)
    except OSError as error:
        raise problems.no_room(error) from None
    with made as name:
        yield Path(name)


async def _in_turn(folder: Path, wish: Wish, settings: Settings, line: Line) -> jobs.Optimized:
    async with line.turn(settings.time_of(wish.time) + settings.grace):
        return await jobs.optimize(folder, wish, settings)


def _require_possible(wish: Wish, settings: Settings) -> None:
    """What a request asks for must be within what the server grants; raises `invalid-request`."""
    granted = {"time": (wish.time, settings.time_limit), "threads": (wish.threads, settings.max_threads)}
    errors = [
        {"name": name, "detail": f"{asked:g} is more than this server's limit of {limit:g}"}
        for name, (asked, limit) in granted.items()
        if asked is not None and asked > limit
    ]
    if errors:
        told = "; ".join(f"{one['name']}: {one['detail']}" for one in errors)
        raise Problem(problems.INVALID_REQUEST, told, errors=errors)
