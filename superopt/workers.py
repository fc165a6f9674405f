"""Processes that share long work, and end quietly when it is interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

from superopt.interrupts import interrupts_held
from superopt.operators.files import DECLARED_IN, declare_files


@contextmanager
def processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    """So many processes, which know the user's operators too; what waits for them is dropped where the block raises."""
    given = (tuple(DECLARED_IN),)  # a new process knows superopt's own operators only
    with ProcessPoolExecutor(workers, get_context("spawn"), declare_files, given) as pool:
        with interrupts_held():
            list(pool.map(abs, range(workers)))  # they start now; Ctrl-C, which reaches all, is for the first alone
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
