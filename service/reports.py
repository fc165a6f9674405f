"""`GET /v1/reports/{id}`: what was done to a model, and how it is known to be right."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path
from starlette.responses import Response

from service import problems
from service.problems import Problem
from service.store import ReportStore

_FOUND: Final[dict[str, Any]] = {
    "description": "The report, as `superopt optimize --report` writes it.",
    "content": {"application/json": {"schema": {"type": "object"}}},
}


def router(store: ReportStore) -> APIRouter:
    """The route that gives reports."""
    routes = APIRouter()

    @routes.get(
        "/v1/reports/{id}",
        summary="The report of an optimized model",
        response_class=Response,
        responses={200: _FOUND, **problems.responses(problems.NO_REPORT)},
    )
    async def report(key: Annotated[str, Path(alias="id", description="From the Link header.")]) -> Response:
        """Each rewrite with its rule, place and proof; predicted and measured times; errors found; seeds, versions."""
        found = store.find(key)
        if found is None:
            raise Problem(problems.NO_REPORT, problems.NO_REPORT.meaning)
        return Response(found, media_type="application/json")

    return routes
