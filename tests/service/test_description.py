"""What the server says of itself."""

from typing import Any

import pytest

from service.app import create_app
from service.problems import KINDS
from service.settings import Settings


@pytest.fixture(scope="module")
def api() -> dict[str, Any]:
    return create_app(Settings()).openapi()


def test_the_model_is_declared_as_binary_both_ways(api: dict[str, Any]) -> None:
    optimize = api["paths"]["/v1/optimize"]["post"]
    for place in (optimize["requestBody"], optimize["responses"]["200"]):
        assert place["content"]["application/octet-stream"]["schema"]["format"] == "binary"


def test_every_parameter_is_described(api: dict[str, Any]) -> None:
    parameters = api["paths"]["/v1/optimize"]["post"]["parameters"]
    names = {"objective", "time", "runtime", "strategy", "alpha", "seed", "shape", "threads"}
    assert {one["name"] for one in parameters} == names
    assert all(one["description"] for one in parameters)


def test_every_kind_of_problem_is_declared_somewhere(api: dict[str, Any]) -> None:
    told = [
        response["description"]
        for path in api["paths"].values()
        for operation in path.values()
        for response in operation["responses"].values()
    ]
    missing = [kind.name for kind in KINDS.values() if not any(kind.title in one for one in told)]
    assert missing == []
