"""A real server for each test module, and clients of it."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from tests.service.serving import Server, StartServer, free_port, running, serving


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartServer]:
    """Starts servers with these settings; they end with the test module."""
    with ExitStack() as servers:

        def start_one(**settings: Any) -> Server:
            port = free_port()
            return servers.enter_context(running(serving(settings, port), port, tmp_path_factory.mktemp("server")))

        yield start_one


@pytest.fixture(scope="module")
def server(start: StartServer) -> Server:
    """The usual server of a test module."""
    return start(max_bytes=1 << 20, time_limit=30, upload_time=1)


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client
