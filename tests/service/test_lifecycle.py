"""Clients that come together, clients that leave, and servers that end."""

import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from tests.service import models
from tests.service.serving import Server, StartServer, free_port, running

LONG = "/v1/optimize?time=20"


def optimizers(server: Server) -> list[psutil.Process]:
    """The server's children that live."""
    return [child for child in psutil.Process(server.process.pid).children() if alive(child)]


def alive(process: psutil.Process) -> bool:
    """Whether it runs; one that ended may stay as a zombie until somebody asks for its exit code."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def eventually(true: Callable[[], bool], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def start_a_search(server: Server, pool: ThreadPoolExecutor, seconds: float = 120) -> None:
    """Send a model from another thread; returns once it is being optimized."""
    pool.submit(post, server, LONG, seconds)
    assert eventually(lambda: bool(optimizers(server))), "no optimizer started"


def post(server: Server, url: str, seconds: float = 120) -> httpx.Response | None:
    """The answer; None where the client's patience or the server ended first."""
    try:
        return httpx.post(server.url + url, content=models.conv_net(), timeout=seconds)
    except httpx.TransportError:
        return None


def test_the_command_serves(tmp_path: Path) -> None:
    port = free_port()
    with running([sys.executable, "-m", "superopt", "serve", "--port", str(port)], port, tmp_path) as server:
        assert httpx.get(f"{server.url}/health/live").json() == {"status": "live"}


def test_a_client_that_leaves_ends_its_search(start: StartServer) -> None:
    server = start()
    with ThreadPoolExecutor() as pool:
        start_a_search(server, pool, seconds=1)
    assert eventually(lambda: not optimizers(server))
    assert eventually(lambda: not list(server.temporary.iterdir())), list(server.temporary.rglob("*"))


def test_two_models_are_optimized_one_after_the_other(start: StartServer) -> None:
    server = start()
    most = 0
    with ThreadPoolExecutor() as pool:
        answers = [pool.submit(post, server, "/v1/optimize?time=20&threads=1") for _ in range(2)]
        while not all(answer.done() for answer in answers):
            most = max(most, len(optimizers(server)))
            time.sleep(0.01)
    assert most == 1
    assert [getattr(answer.result(), "status_code", None) for answer in answers] == [200, 200]


def test_a_client_too_many_is_told_when_to_come_back(start: StartServer) -> None:
    server = start(waiting=0)
    with ThreadPoolExecutor() as pool:
        start_a_search(server, pool, seconds=3)
        refused = post(server, LONG)
        ready = httpx.get(f"{server.url}/health/ready")
        live = httpx.get(f"{server.url}/health/live")
    assert refused is not None
    assert (refused.status_code, refused.json()["type"]) == (503, "/problems/busy")
    assert 0 < int(refused.headers["retry-after"]) <= 80
    assert (ready.status_code, live.status_code) == (503, 200)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_no_search_outlives_its_server(start: StartServer, how: signal.Signals) -> None:
    server = start(stop_after=0)
    with ThreadPoolExecutor() as pool:
        start_a_search(server, pool)
        (search,) = optimizers(server)
        server.process.send_signal(how)
        server.process.wait(timeout=30)
    assert eventually(lambda: not alive(search))


def test_who_waits_when_the_server_stops_is_told_so(start: StartServer) -> None:
    server = start(stop_after=0)
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(post, server, LONG)
        assert eventually(lambda: bool(optimizers(server))), "no optimizer started"
        server.process.terminate()
        server.process.wait(timeout=30)
        told = answer.result()
    assert told is not None
    assert (told.status_code, told.json()["type"]) == (503, "/problems/busy")
    assert told.json()["detail"].startswith("the server is stopping")
    assert int(told.headers["retry-after"]) > 0


def test_a_server_that_is_told_to_stop_leaves_no_files(start: StartServer) -> None:
    server = start(stop_after=0)
    with ThreadPoolExecutor() as pool:
        start_a_search(server, pool)
        server.process.terminate()
        server.process.wait(timeout=30)
    assert list(server.temporary.iterdir()) == []


def test_a_server_that_is_interrupted_twice_ends_at_once_without_a_traceback(
    start: StartServer, capfd: pytest.CaptureFixture[str]
) -> None:
    server, said = start(stop_after=20), list[str]()

    def says(text: str) -> bool:
        said.append(capfd.readouterr().err)
        return text in "".join(said)

    with ThreadPoolExecutor() as pool:
        start_a_search(server, pool)
        server.process.send_signal(signal.SIGINT)
        assert eventually(lambda: says("Waiting for connections"))
        server.process.send_signal(signal.SIGINT)
        server.process.wait(timeout=10)
    assert not says("Traceback")
