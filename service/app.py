"""The application: its parts in a column, and how it is served."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version

import uvicorn
from fastapi import FastAPI

from service import health, kinds, optimize, reports
from service.line import Line
from service.problems import HANDLERS
from service.settings import Settings
from service.store import ReportStore

__all__ = ["Settings", "create_app", "serve"]

_CLEAN_WITHIN = 5  # seconds
_NO_START = 3
"""The exit code of a server that cannot start, as uvicorn has it."""


def create_app(settings: Settings) -> FastAPI:
    """The application, complete: nothing is kept outside it."""
    line = Line(settings.waiting)
    store = ReportStore(settings.kept_bytes)
    probe = health.Probe()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        probing = asyncio.create_task(probe.run(settings))
        yield
        probing.cancel()
        with suppress(asyncio.CancelledError):
            await probing
        # Requests that were under way have been cancelled by now. The process may end as soon as this does, and they
        # have files to remove.
        with suppress(TimeoutError):
            await asyncio.wait_for(line.emptied(), _CLEAN_WITHIN)

    app = FastAPI(
        title="superopt",
        summary="Makes ONNX models faster, and says why the result is the same.",
        version=version("superopt"),
        lifespan=lifespan,
        exception_handlers=HANDLERS,
        # The usual pages load scripts from elsewhere; /openapi.json is for any tool.
        docs_url=None,
        redoc_url=None,
    )
    for part in (
        optimize.router(settings, line, store),
        reports.router(store),
        kinds.router(),
        health.router(line, probe),
    ):
        app.include_router(part)
    return app


def serve(settings: Settings) -> None:
    """Serve until told to stop. Exits where it cannot start, as on a port that is taken."""
    config = uvicorn.Config(
        create_app(settings),
        host=settings.host,
        port=settings.port,
        # One process, as measurements must not disturb each other. h11 also reads on after an early answer, such as
        # 413, so that the client sees the answer and not a broken connection.
        http="h11",
        timeout_graceful_shutdown=settings.stop_after,
        server_header=False,
    )
    server = uvicorn.Server(config)
    # Who forces it to end by another Ctrl-C need not read what was under way then.
    logging.getLogger("uvicorn.error").addFilter(lambda _: not server.force_exit)
    with suppress(KeyboardInterrupt):  # it stopped, and comes again
        server.run()
    if not server.started:
        sys.exit(_NO_START)
