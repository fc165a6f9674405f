"""Ctrl-C and SIGTERM, of which none is lost."""

from __future__ import annotations

import signal
import sys
from threading import Timer, main_thread
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

AGAIN_AFTER = 0.01
"""Seconds after which a signal that came where it would be lost comes again."""

INTERRUPTED = 128 + signal.SIGINT
"""The exit code after Ctrl-C, as shells have it, and typer."""

_RAISED = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: SystemExit}


def heed_signals() -> None:
    """From here on Ctrl-C raises `KeyboardInterrupt` and SIGTERM `SystemExit`, where neither is lost.

    Python runs what handles a signal between any two steps. What is raised in a finalizer is printed and forgotten;
    what is raised while ctypes converts an argument becomes an `ArgumentError`. z3's terms do both at every step. Such
    signals come again, until they meet other code.
    """
    for number in _RAISED:
        signal.signal(number, _raise)
    sys.unraisablehook = _come_again_if_lost


def _raise(number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_globals.get("__package__") == "z3":
            return _come_again(number)
        frame = frame.f_back
    raise SystemExit(128 + number) if number == signal.SIGTERM else KeyboardInterrupt


def _come_again_if_lost(unraisable: UnraisableHookArgs) -> None:
    for number, raised in _RAISED.items():
        if unraisable.exc_type is raised:
            return _come_again(number)
    sys.__unraisablehook__(unraisable)
    return None


def _come_again(number: int) -> None:
    again = Timer(AGAIN_AFTER, signal.pthread_kill, (main_thread().ident, number))
    again.daemon = True
    again.start()
