"""Each proof has a context of its own, whoever asks."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import pytest

from superopt.verify.contexts import CONTEXTS, Contexts
from superopt.verify.function_symbols import Z3


def test_no_context_is_given_twice_also_to_threads() -> None:
    contexts = Contexts()
    with ThreadPoolExecutor(4) as pool:
        given = list(pool.map(lambda _: contexts.fresh(), range(40)))
    assert len({context.ref().value for context in given}) == len(given) == 40


def _proved() -> bool:
    solver = Z3.SimpleSolver(ctx=CONTEXTS.fresh())
    solver.from_string("(assert false)")
    return bool(solver.check() == Z3.unsat)


def _tell(pipe: object) -> None:
    pipe.send(_proved())  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore:This process")  # has threads, says Python; that is what is tested
def test_a_forked_process_makes_contexts_of_its_own() -> None:
    assert _proved()
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_tell, args=(theirs,))
    process.start()
    assert ours.poll(60)
    assert ours.recv()
    process.join()
