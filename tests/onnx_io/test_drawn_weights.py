"""Random weights of models that are timed: where they stand in files, what they are, and when they go."""

from __future__ import annotations

import gc
import math
import weakref
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from superopt.arithmetic.carrier import Array
from superopt.onnx_io import DrawnWeights, drawn_weights, standalone_apart
from superopt.onnx_io.drawn_weights import ALIGNED, APART, Spread
from superopt.operators.matmul import MatMul
from superopt.term import Graph, Term, make, variable

WIDE, HIGH = (
    variable(name, shape, "float32", constant=True) for name, shape in (("wide", (128, 400)), ("high", (400, 128)))
)


def place(drawn: DrawnWeights, v: Term) -> tuple[Path, int, int]:
    """The file in which a weight is, where it begins there, and how many bytes it takes."""
    tensor = drawn.tensor(v)
    assert isinstance(tensor, ir.ExternalTensor)
    assert tensor.offset is not None
    return Path(tensor.path), tensor.offset, tensor.nbytes


def test_weights_of_what_is_timed_together_have_places_of_their_own() -> None:
    drawn = DrawnWeights()
    places = [place(drawn, WIDE) for _ in range(5)]
    assert len({file for file, _, _ in places}) == 1
    assert all(start % ALIGNED == 0 for _, start, _ in places)
    assert all(start + count <= after for (_, start, count), (_, after, _) in pairwise(places))


def test_what_is_timed_next_reads_what_was_written_for_the_last() -> None:
    drawn = DrawnWeights()
    before = place(drawn, WIDE)
    data, written = before[0].read_bytes(), before[0].stat().st_mtime_ns
    drawn.begin()
    assert place(drawn, WIDE) == before
    assert (before[0].read_bytes(), before[0].stat().st_mtime_ns) == (data, written)


def test_small_weights_are_in_no_file() -> None:
    drawn = DrawnWeights()
    tensor = drawn.tensor(variable("bias", (APART // 4,), "float32", constant=True))
    assert isinstance(tensor, ir.Tensor)
    assert tensor.nbytes == APART


def test_small_weights_of_what_is_timed_together_differ_and_are_the_same_the_next_time() -> None:
    drawn, bias = DrawnWeights(), variable("bias", (16,), "float32", constant=True)
    first, second = (drawn.tensor(bias).numpy() for _ in range(2))
    drawn.begin()
    assert (first != second).any()
    assert (drawn.tensor(bias).numpy() == first).all()


@pytest.mark.parametrize(
    ("dtype", "shape"), [("float32", (256, 500)), ("float16", (64, 40, 5, 5)), ("bfloat16", (9000, 8))]
)
def test_numbers_in_a_file_keep_the_scale_of_what_passes_through_them(dtype: str, shape: tuple[int, ...]) -> None:
    drawn = DrawnWeights()
    numbers = drawn.tensor(variable("w", shape, dtype, constant=True)).numpy()
    assert numbers.shape == shape
    assert numbers.dtype == dtype
    fan_in = shape[-2] if len(shape) < 4 else math.prod(shape[1:])
    assert numbers.astype(np.float64).std() == pytest.approx(math.sqrt(2 / fan_in), rel=0.02)


def test_integers_in_a_file_are_zeros() -> None:
    drawn = DrawnWeights()
    assert not drawn.tensor(variable("w", (100, 300), "int64", constant=True)).numpy().any()


def test_a_file_that_grew_holds_what_it_held() -> None:
    drawn = DrawnWeights()
    first = drawn.tensor(WIDE).numpy().copy()
    second = drawn.tensor(WIDE).numpy()
    drawn.begin()
    assert (drawn.tensor(WIDE).numpy() == first).all()
    assert 0 < second.std() < 1


def test_files_that_are_not_in_use_go_where_all_are_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn_weights, "MOST_KEPT", 300_000)
    drawn = DrawnWeights()
    wide, high = place(drawn, WIDE)[0], place(drawn, HIGH)[0]
    assert wide.exists(), "both are in use"
    drawn.begin()
    assert not wide.exists(), "neither is"
    assert high.exists()
    place(drawn, WIDE)
    place(drawn, HIGH)
    place(drawn, HIGH)
    assert wide.exists()
    drawn.begin()
    assert (drawn.tensor(WIDE).numpy() != 0).any(), "it is drawn again"


def test_after_a_write_that_failed_numbers_are_what_they_should_be(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, numbers = DrawnWeights(), Spread.numbers
    first = place(drawn, WIDE)

    def some(kind: Spread, count: int, rng: np.random.Generator) -> Array:
        with first[0].open("ab") as file:
            file.write(b"\xff" * 4001)
        raise OSError("No space left on device")

    monkeypatch.setattr(Spread, "numbers", some)
    with pytest.raises(OSError, match="No space"):
        drawn.tensor(WIDE)
    monkeypatch.setattr(Spread, "numbers", numbers)
    drawn.begin()
    again = [drawn.tensor(WIDE).numpy() for _ in range(2)]
    assert [np.isfinite(a).all() for a in again] == [True, True]


def test_the_folder_is_gone_with_what_draws() -> None:
    drawn = DrawnWeights()
    file = place(drawn, WIDE)[0]
    gc.disable()
    try:
        del drawn
        assert not file.parent.exists()
    finally:
        gc.enable()


def test_weights_of_a_model_that_was_written_are_freed_without_a_search_for_cycles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn, seen = DrawnWeights(), list[weakref.ref[ir.TensorProtocol]]()
    tensor = drawn.tensor

    def noted(v: Term, like: Term | None) -> ir.TensorProtocol:
        made = tensor(v, like)
        seen.append(weakref.ref(made))
        return made

    monkeypatch.setattr(drawn, "tensor", noted)
    x, w = variable("x", (2, 8), "float32"), variable("w", (8, 4), "float32", constant=True)
    gc.disable()
    try:
        standalone_apart(Graph((x,), (make(MatMul(), (x, w)),)), 17, drawn)
        assert [ref() for ref in seen] == [None]
    finally:
        gc.enable()
