"""Ctrl-C, SIGTERM and SIGHUP, of which none is lost."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer, main_thread
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

AGAIN_AFTER = 0.01
"""Seconds after which a signal that came where it would be lost comes again."""

INTERRUPTED = 128 + signal.SIGINT
"""The exit code after Ctrl-C, as shells have it, and typer."""

_HEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def heed_signals() -> None:
    """From here on Ctrl-C raises `KeyboardInterrupt`, and SIGTERM and SIGHUP `SystemExit`, where none is lost. What is
    ignored, as SIGHUP under nohup, stays so.

    Python runs what handles a signal between any two steps. What is raised in a finalizer is printed and forgotten;
    what is raised while ctypes converts an argument becomes an `ArgumentError`. z3's terms do both at every step. Such
    signals come again, until they meet other code.
    """
    for number in _HEEDED:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _raise)
    sys.unraisablehook = _come_again_if_lost


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Ctrl-C waits, and never comes to processes that are started meanwhile."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _raise(number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_globals.get("__package__") == "z3":
            return _come_again(number)
        frame = frame.f_back
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


def _come_again_if_lost(unraisable: UnraisableHookArgs) -> None:
    lost = unraisable.exc_value
    if isinstance(lost, KeyboardInterrupt):
        return _come_again(signal.SIGINT)
    if isinstance(lost, SystemExit) and isinstance(lost.code, int) and lost.code - 128 in _HEEDED:
        return _come_again(lost.code - 128)
    sys.__unraisablehook__(unraisable)
    return None


def _come_again(number: int) -> None:
    again = Timer(AGAIN_AFTER, signal.pthread_kill, (main_thread().ident, number))
    again.daemon = True
    again.start()
