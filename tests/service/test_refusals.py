"""Requests that are refused before any model is looked at."""

import socket
import time
from collections.abc import Iterator

import httpx
import pytest

from tests.service.serving import Server
from tests.usable import why_not

PROBLEM = "application/problem+json"
OPTIMIZE = "/v1/optimize"


def refused(response: httpx.Response, status: int, kind: str) -> dict[str, object]:
    document: dict[str, object] = response.json()
    assert response.headers["content-type"] == PROBLEM
    assert (response.status_code, document["status"], document["type"]) == (status, status, f"/problems/{kind}")
    return document


@pytest.mark.parametrize(
    "query",
    [
        "time=0",
        "time=nan",
        "time=31",
        "alpha=0.5",
        "seed=-1",
        "threads=0",
        "threads=100000",
        "runtime=ours",
        "objective=speed",
        "colour=red",
    ],
)
def test_a_parameter_out_of_its_domain_is_refused_by_name(client: httpx.Client, query: str) -> None:
    document = refused(client.post(f"{OPTIMIZE}?{query}", content=b"model"), 422, "invalid-request")
    assert [error["name"] for error in document["errors"]] == [query.partition("=")[0]]  # type: ignore[attr-defined]


@pytest.mark.parametrize("runtime", ["onnxruntime-cuda", "onnxruntime-tensorrt"])
def test_a_runtime_that_the_server_cannot_use_is_refused_with_why(client: httpx.Client, runtime: str) -> None:
    why = why_not(runtime)
    if not why:
        pytest.skip(f"{runtime} can be used here")
    document = refused(client.post(f"{OPTIMIZE}?runtime={runtime}", content=b"model"), 422, "invalid-request")
    assert document["detail"] == why


def test_an_empty_body_is_refused(client: httpx.Client) -> None:
    refused(client.post(OPTIMIZE, content=b""), 422, "invalid-model")


def test_a_body_declared_too_large_is_refused_and_the_client_gets_to_know(client: httpx.Client) -> None:
    refused(client.post(OPTIMIZE, content=bytes(32 << 20)), 413, "too-large")


def test_a_body_of_unknown_length_is_refused_once_it_is_too_large(client: httpx.Client) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(64):
            yield bytes(1 << 16)

    refused(client.post(OPTIMIZE, content=pieces()), 413, "too-large")


def test_a_form_is_refused(client: httpx.Client) -> None:
    refused(client.post(OPTIMIZE, files={"model": b"model"}), 415, "wrong-media-type")


def test_a_compressed_body_is_refused(client: httpx.Client) -> None:
    refused(client.post(OPTIMIZE, content=b"x", headers={"Content-Encoding": "gzip"}), 415, "wrong-media-type")


def test_an_answer_in_another_form_is_refused(client: httpx.Client) -> None:
    refused(client.post(OPTIMIZE, content=b"x", headers={"Accept": "application/json"}), 406, "not-acceptable")


def test_an_upload_that_takes_too_long_is_ended(server: Server) -> None:
    url = httpx.URL(server.url)
    with socket.create_connection((url.host, url.port)) as slow:
        slow.sendall(b"POST /v1/optimize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\npart")
        started = time.monotonic()
        assert slow.recv(1 << 16).startswith(b"HTTP/1.1 408")
    assert time.monotonic() - started < 10


def test_an_unknown_report_is_a_problem(client: httpx.Client) -> None:
    refused(client.get("/v1/reports/unknown"), 404, "no-report")


def test_an_unknown_path_is_a_problem(client: httpx.Client) -> None:
    response = client.get("/nowhere")
    assert (response.status_code, response.headers["content-type"]) == (404, PROBLEM)


def test_another_method_is_a_problem_that_names_the_right_one(client: httpx.Client) -> None:
    response = client.get(OPTIMIZE)
    assert (response.status_code, response.headers["content-type"]) == (405, PROBLEM)
    assert response.headers["allow"] == "POST"


def test_the_type_of_a_problem_can_be_fetched(client: httpx.Client) -> None:
    kind = client.get("/v1/reports/unknown").json()["type"]
    assert "No such report" in client.get(kind).text


def test_refused_requests_leave_no_files(client: httpx.Client, server: Server) -> None:
    client.post(OPTIMIZE, content=bytes(32 << 20))
    assert list(server.temporary.iterdir()) == []
