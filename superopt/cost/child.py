"""A process of its own for what may crash or never end: models run in it, and the command survives them."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Protocol, TypeVar

from superopt.cost.messages import receive, send
from superopt.errors import RuntimeFailed, SuperoptError, one_line
from superopt.interrupts import interrupts_held
from superopt.memory import trim_much

T = TypeVar("T")

CRASHED, UNENDING = "the runtime crashed", "it did not end"
"""How the messages of errors begin that say how a process ended."""

_MAIN = "from superopt.cost.child import serve; serve({}, {})"
"""What the process runs. Interrupts are blocked in it: the end of whoever asks ends it."""
_PR_SET_PDEATHSIG = 1


class Unending(RuntimeFailed):
    """What was run had not ended when its time was over."""


class Caller(Protocol):
    """Where functions are called that run models."""

    def call(self, limit_s: float, function: Callable[..., T], *arguments: Any) -> T:
        """What a function gives."""

    def rest(self) -> None:
        """Hold as little memory as may be until the next call."""


class Here:
    """This process; what never ends is waited for."""

    def call(self, limit_s: float, function: Callable[..., T], *arguments: Any) -> T:
        """What a function gives; raises what that does."""
        return function(*arguments)

    def rest(self) -> None:
        """Nothing: it is in use."""


class Ask(Protocol):
    """Calls functions that run models, with patience."""

    def __call__(self, function: Callable[..., T], *arguments: Any) -> T:
        """What a function gives. Raises `RuntimeFailed`."""


def within(caller: Caller, limit_s: float) -> Ask:
    """Asks of a caller, all together within a limit in seconds from now."""
    end = time.monotonic() + limit_s

    def ask(function: Callable[..., T], *arguments: Any) -> T:
        return caller.call(max(end - time.monotonic(), 0.0), function, *arguments)

    return ask


class Child:
    """Calls functions in another process, one at a time. It starts with the first call, and anew after each that it
    did not survive.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None

    def call(self, limit_s: float, function: Callable[..., T], *arguments: Any) -> T:
        """What a function gives; it and its arguments are pickled.

        Raises what it raises, if that is a `SuperoptError`; `Unending` past the limit in seconds, and `RuntimeFailed`
        for whatever else the process ended of, or could not do.
        """
        pipe = self.started()
        try:
            send(pipe, (function, arguments))
            answer = receive(pipe) if pipe.poll(limit_s) else None
        except (EOFError, OSError):
            raise RuntimeFailed(f"{CRASHED} ({self._end()})") from None
        except BaseException:
            self.close()  # its answer would be taken for that to the next call
            raise
        if answer is None:
            self.close()
            raise Unending(f"{UNENDING} within {limit_s:.0f} s")
        succeeded, value = answer
        if not succeeded:
            raise value
        return value  # type: ignore[no-any-return]

    def rest(self) -> None:
        """End the process; the next call starts another, which takes most of a second."""
        self.close()

    def close(self) -> None:
        """End the process, whatever it does."""
        if self._process is not None and self._pipe is not None:
            self._pipe.close()
            self._process.kill()
            self._process.wait()
            self._process = self._pipe = None

    def started(self) -> Connection:
        """The pipe to the process, which starts if there is none; it needs most of a second before it does anything.
        Raises `RuntimeFailed` where none can be started.
        """
        if self._process is None or self._pipe is None:
            self._pipe, theirs = Pipe()
            fd, nothing = theirs.fileno(), subprocess.DEVNULL
            command = [sys.executable, "-P", "-c", _MAIN.format(fd, os.getpid())]
            try:
                with theirs, interrupts_held():  # they are for whoever asks
                    self._process = subprocess.Popen(command, pass_fds=(fd,), stdin=nothing, stdout=nothing)  # noqa: S603
            except OSError as error:  # there are as many as may be, or no memory is left
                self._pipe.close()
                raise RuntimeFailed(f"no process can be started to run models in: {one_line(error)}") from None
        return self._pipe

    def _end(self) -> str:
        """How a process ended that closed its pipe."""
        assert self._process is not None
        code = self._process.wait()
        self.close()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def __del__(self) -> None:
        self.close()


def serve(fd: int, parent: int) -> None:
    """Do what is asked through a pipe, until that is closed."""
    if sys.platform == "linux":  # a run that never ends must not outlive who asked for it
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            return
    with Connection(fd) as pipe:
        while True:
            try:
                function, arguments = receive(pipe)
            except EOFError:
                return
            send(pipe, _done(function, arguments))
            del function, arguments
            trim_much()


def _done(function: Callable[..., object], arguments: tuple[Any, ...]) -> tuple[bool, object]:
    try:
        return True, function(*arguments)
    except SuperoptError as error:
        return False, error
    except MemoryError as error:
        return False, RuntimeFailed(f"no memory is left: {one_line(error)}")
