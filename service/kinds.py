"""`GET /problems/{name}`: what a problem's `type` means, where it points."""

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse

from service.problems import KINDS


def router() -> APIRouter:
    """The route that explains problems."""
    routes = APIRouter()

    @routes.get("/problems/{name}", summary="What a kind of problem means", response_class=PlainTextResponse)
    async def explain(name: str) -> PlainTextResponse:
        """A sentence or two on what happened and what can be done."""
        kind = KINDS.get(name)
        if kind is None:
            raise HTTPException(404)
        return PlainTextResponse(f"{kind.status}: {kind.title}. {kind.meaning}\n")

    return routes
