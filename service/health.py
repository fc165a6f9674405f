"""`GET /health/live` and `/health/ready`: for whoever starts, restarts and balances servers."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from fastapi import APIRouter

from service import jobs, problems
from service.line import Line
from service.problems import Problem
from service.sandbox import run_limited
from service.schemas import Health
from service.settings import Settings

_STARTS_WITHIN: Final = 120.0  # seconds, on a machine that has just booted


class Probe:
    """Whether the optimizer answers at all, under the limits that models will be optimized under."""

    def __init__(self) -> None:
        self.fault: str | None = "the optimizer is starting"

    async def run(self, settings: Settings) -> None:
        """Ask the command for its help: imports all of it, so the first model need not wait for the disk."""
        try:
            with TemporaryDirectory(prefix="superopt-", ignore_cleanup_errors=True) as name:
                ending = await run_limited(
                    [*jobs.COMMAND, "--help"],
                    folder=Path(name),
                    environment=jobs.child_environment(Path(name)),
                    seconds=_STARTS_WITHIN,
                    memory=settings.memory,
                )
        except OSError as error:  # no folder can be made, or no process
            self._does_not_start(str(error))
            return
        if ending.code == 0:
            self.fault = None
        else:
            self._does_not_start(f"exit code {ending.code}, {ending.errors}")

    def _does_not_start(self, why: str) -> None:
        self.fault = "the optimizer does not start: the server's log says why"
        problems.LOG.error("the optimizer does not start: %s", why)


def router(line: Line, probe: Probe) -> APIRouter:
    """The routes on health."""
    routes = APIRouter()

    @routes.get("/health/live", summary="Is the server running?")
    async def live() -> Health:
        """Always true where there is an answer."""
        return Health(status="live")

    @routes.get(
        "/health/ready",
        summary="Would the server take a model now?",
        responses=problems.responses(problems.NOT_READY, problems.BUSY),
    )
    async def ready() -> Health:
        """The optimizer has been seen to start, and there is room in the line."""
        if probe.fault:
            raise Problem(problems.NOT_READY, probe.fault)
        line.require_room()
        return Health(status="ready")

    return routes
