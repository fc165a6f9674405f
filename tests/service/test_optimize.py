"""Models through the real optimizer."""

import json
from email import message_from_bytes
from email.message import Message
from email.policy import HTTP
from pathlib import Path

import httpx
import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

from tests.service import models
from tests.service.serving import Server, StartServer

OPTIMIZE = "/v1/optimize?time=20&threads=1"
GIB = 1 << 30


@pytest.fixture(scope="module")
def server(start: StartServer) -> Server:
    return start(time_limit=30, memory=4 * GIB, grace=100)


@pytest.fixture(scope="module")
def answer(server: Server) -> httpx.Response:
    """The answer to a small net of convolutions."""
    with server.client() as client:
        return client.post(OPTIMIZE, content=models.conv_net()).raise_for_status()


def run(model: bytes) -> NDArray[np.float32]:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (result,) = session.run(None, {"image": models.image()})
    return np.asarray(result)


def test_the_answer_is_a_model_that_agrees_with_the_original(answer: httpx.Response) -> None:
    assert answer.headers["content-type"] == "application/octet-stream"
    np.testing.assert_allclose(run(answer.content), run(models.conv_net()), rtol=1e-3, atol=1e-5)


def test_the_answer_links_to_its_report(client: httpx.Client, answer: httpx.Response) -> None:
    report = client.get(answer.links["describedby"]["url"])
    assert report.headers["content-type"] == "application/json"
    assert report.json()


def test_sizes_that_are_asked_for_are_those_tried(client: httpx.Client) -> None:
    response = client.post(OPTIMIZE, params={"shape": "image:1..4,3,16,16"}, content=models.any_batch())
    report = client.get(response.raise_for_status().links["describedby"]["url"]).json()
    assert report["settings"]["shapes"] == {"image": "1..4,3,16,16"}
    assert report["measured"]["shapes"] == "image:2,3,16,16"


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ("picture:1,3,16,16", "the model has no input 'picture'"),
        ("image:1,3,16", "has 4 sizes, not 3"),
        ("--overwrite", "cannot be read; write an input and its sizes"),
    ],
)
def test_sizes_that_the_model_cannot_have_are_refused_by_name(client: httpx.Client, shape: str, told: str) -> None:
    response = client.post(OPTIMIZE, params={"shape": shape}, content=models.any_batch())
    assert (response.status_code, response.json()["type"]) == (422, "/problems/invalid-request")
    assert told in response.json()["detail"]


def test_the_report_names_no_temporary_file(client: httpx.Client, answer: httpx.Response, server: Server) -> None:
    report = client.get(answer.links["describedby"]["url"]).text
    assert str(server.temporary) not in report


def test_model_and_report_come_as_two_parts_to_who_accepts_that(client: httpx.Client) -> None:
    response = client.post(OPTIMIZE, content=models.conv_net(), headers={"Accept": "multipart/mixed"})
    model, report = parts(response)
    onnx.checker.check_model(onnx.load_model_from_string(model))
    assert json.loads(report) == client.get(response.links["describedby"]["url"]).json()


def parts(response: httpx.Response) -> list[bytes]:
    head = f"Content-Type: {response.headers['content-type']}\r\n\r\n".encode()
    message = message_from_bytes(head + response.content, policy=HTTP)
    assert message.get_content_type() == "multipart/mixed"
    return [payload(part) for part in message.iter_parts()]


def payload(part: Message) -> bytes:
    content = part.get_payload(decode=True)
    assert isinstance(content, bytes)
    return content


def test_where_nothing_is_faster_the_very_bytes_come_back(client: httpx.Client) -> None:
    assert client.post(OPTIMIZE, content=models.one_relu()).content == models.one_relu()


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(b"no model", id="other bytes"),
        pytest.param(models.conv_net()[:-100], id="cut short"),
        pytest.param(models.broken(), id="breaks ONNX's rules"),
        pytest.param(models.with_weight_in("weights.bin"), id="weights elsewhere"),
        pytest.param(models.with_weight_in("/proc/self/environ"), id="weights at an absolute path"),
        pytest.param(models.with_weight_in("../../../../../../proc/self/environ"), id="weights above the model"),
        pytest.param(models.with_constant_in("/proc/self/environ"), id="a constant at an absolute path"),
    ],
)
def test_an_invalid_model_is_the_senders_problem(client: httpx.Client, server: Server, model: bytes) -> None:
    response = client.post(OPTIMIZE, content=model)
    assert (response.status_code, response.json()["type"]) == (422, "/problems/invalid-model")
    assert "the model" in response.json()["detail"]
    assert str(server.temporary) not in response.text


def test_a_model_that_needs_too_much_memory_is_told_so(client: httpx.Client) -> None:
    response = client.post(OPTIMIZE, content=models.vast(8 * GIB))
    assert (response.status_code, response.json()["type"]) == (507, "/problems/out-of-memory")


def test_a_search_that_never_ends_is_ended(start: StartServer) -> None:
    hasty = start(grace=0.1, memory=4 * GIB)
    response = httpx.post(f"{hasty.url}/v1/optimize?time=0.1", content=models.conv_net(), timeout=60)
    assert (response.status_code, response.json()["type"]) == (504, "/problems/out-of-time")


def test_a_real_model_comes_back_whole(client: httpx.Client) -> None:
    model = Path(onnx.__file__).parent / "backend/test/data/light/light_squeezenet.onnx"
    response = client.post(OPTIMIZE, content=model.read_bytes())
    onnx.checker.check_model(onnx.load_model_from_string(response.content), full_check=True)


def test_nothing_is_left_on_disk(client: httpx.Client, answer: httpx.Response, server: Server) -> None:
    assert answer.is_success
    client.post(OPTIMIZE, content=models.broken())
    assert list(server.temporary.iterdir()) == []
