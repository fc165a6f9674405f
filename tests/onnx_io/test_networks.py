"""The nine real networks go in and come out."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import onnx
import onnx_ir as ir
import pytest

from superopt.onnx_io import Program, check, facts, load, rewritten, understand
from superopt.term import Term
from tests.onnx_io.networks import LIGHT, RANDOM, assert_close, name, randomized, run

light = pytest.mark.parametrize("path", LIGHT, ids=name)


@cache
def understood(path: Path) -> Program:
    """A network's program; no test changes it, which the tests below say."""
    return understand(load(path))


def every_term(program: Program) -> dict[str, Term]:
    """The term of each understood value."""
    return {n: t for s in program.steps for n, t in zip(s.outputs, s.terms, strict=bool(s.terms))}


def interface(model: ir.Model) -> list[tuple[str, str]]:
    """The names and types of what is given and what comes out, in order."""
    table = facts(model)
    return [*table.inputs.items(), *table.outputs.items()]


def serialized(model: ir.Model) -> bytes:
    return bytes(ir.to_proto(model).SerializeToString(deterministic=True))


def test_there_are_nine_networks() -> None:
    assert len(LIGHT) == 9


@light
def test_every_node_of_a_network_is_understood(path: Path) -> None:
    summary = understood(path).summary
    assert summary.nodes > 20
    assert summary.opaque == {}
    assert summary.understood == summary.nodes


@light
def test_a_network_with_nothing_rewritten_is_the_same(path: Path) -> None:
    program = understood(path)
    written, original = ir.to_proto(rewritten(program, {}, {})), onnx.load(path)
    for part in ("node", "initializer", "input", "output"):
        before, after = getattr(original.graph, part), getattr(written.graph, part)
        assert [p.SerializeToString() for p in after] == [p.SerializeToString() for p in before], part
    assert written.ir_version == original.ir_version
    assert [o.version for o in written.opset_import] == [o.version for o in original.opset_import]


@light
def test_values_that_are_replaced_by_themselves_change_nothing(path: Path) -> None:
    program = understood(path)
    terms = every_term(program)
    written = rewritten(program, terms, {t: n for n, t in terms.items()})
    assert serialized(written) == serialized(program.model)


@light
def test_writing_every_value_anew_changes_neither_the_original_nor_the_interface(path: Path) -> None:
    program = understood(path)
    before = serialized(program.model)
    written = rewritten(program, every_term(program), {})
    check(written)
    assert serialized(program.model) == before
    assert interface(written) == interface(program.model)


@pytest.mark.parametrize("path", RANDOM, ids=name)
def test_every_value_written_anew_computes_the_same(path: Path) -> None:
    model = randomized(path)
    program = understand(load(model))
    assert program.summary.understood == program.summary.nodes
    written = rewritten(program, every_term(program), {})
    assert_close(run(ir.to_proto(written)), run(model))


def test_fills_are_computed_without_memory_for_them() -> None:
    program = understand(load(next(p for p in LIGHT if name(p) == "vgg19")))
    weights = [n for n, t in program.values.items() if t.constant]
    assert sum(program.data(n).nbytes for n in weights) > 5e8
    in_memory = [n for n in weights if max(program.data(n).strides, default=0) > 0]
    assert sum(program.data(n).nbytes for n in in_memory) < 1e4
