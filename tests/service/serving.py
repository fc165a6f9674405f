"""Servers in processes of their own, on free loopback ports."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

_SERVE = "import json, sys; from service.app import Settings, serve; serve(Settings(**json.loads(sys.argv[1])))"
_STARTS_WITHIN = 60


@dataclass(frozen=True)
class Server:
    """A running server; `temporary` is where it keeps its temporary files."""

    url: str
    process: subprocess.Popen[bytes]
    temporary: Path

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=120)

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + _STARTS_WITHIN
        while time.monotonic() < deadline:
            assert self.process.poll() is None, "the server ended"
            try:
                if httpx.get(f"{self.url}/health/ready").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.05)
        raise AssertionError("the server did not get ready")


StartServer = Callable[..., Server]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(command: list[str], port: int, temporary: Path) -> Iterator[Server]:
    # What ONNX Runtime would tell its maker, it would write down among the temporary files first.
    environment = {**os.environ, "TMPDIR": str(temporary), "ORT_DISABLE_TELEMETRY": "1"}
    process = subprocess.Popen(command, env=environment)
    server = Server(f"http://127.0.0.1:{port}", process, temporary)
    try:
        server.wait_until_ready()
        yield server
    finally:
        process.send_signal(signal.SIGTERM)  # does nothing where it has ended
        process.wait(timeout=30)


def serving(settings: dict[str, object], port: int) -> list[str]:
    """The command that serves with settings which `superopt serve` has no options for."""
    return [sys.executable, "-c", _SERVE, json.dumps({"port": port, **settings})]
