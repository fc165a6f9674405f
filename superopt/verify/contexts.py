"""A context of its own for each proof: in a shared one proofs, and at the limit verdicts, depend on earlier ones.

Making one takes a seventh of a proof, so the next is made in a thread while this one is in use.
"""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any

from superopt.memory import keep_freed
from superopt.verify.function_symbols import Z3

Z3.set_param("ctrl_c", False)
"""Else Ctrl-C ends a proof, which then counts as not found, and nothing else. Python has it as the proof ends."""


class Contexts:
    """Makes contexts, one ahead of what is asked for."""

    def __init__(self) -> None:
        self._forget()
        os.register_at_fork(after_in_child=self._forget)  # threads stay behind

    def _forget(self) -> None:
        self._lock = Lock()
        self._maker: ThreadPoolExecutor | None = None
        self._next: Future[Any] | None = None

    def fresh(self) -> Any:
        """A context that nothing was proved in."""
        with self._lock:
            if self._maker is None:
                keep_freed()
                self._maker = ThreadPoolExecutor(1, "contexts")
            context = Z3.Context() if self._next is None else self._next.result()
            self._next = self._maker.submit(Z3.Context)
            return context


CONTEXTS = Contexts()
