"""Transposed convolutions are convolutions of their phases: exactly."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.demands import assuming
from superopt.dim import Shape, symbol
from superopt.errors import ShapeError
from superopt.operators.definitions.transposed import (
    MOST,
    by_phases,
    phase_by_phase,
    sum_by_phases,
    sum_phase_by_phase,
)
from superopt.operators.layout import Expand
from superopt.operators.pointwise import Add
from superopt.operators.symbolic import resize
from superopt.operators.transposed import ConvTranspose
from superopt.term import Term, variable
from tests.models import assert_same, model, weight
from tests.operators.definitions.equality import assert_equal
from tests.usable import has_avx512

MEANINGS = {"at once": (by_phases, sum_by_phases), "one by one": (phase_by_phase, sum_phase_by_phase)}
each_way = pytest.mark.parametrize(("meaning", "summed"), MEANINGS.values(), ids=MEANINGS)
Meaning = Callable[[ConvTranspose, Term, Term], Term | None]


def given(op: ConvTranspose, x: Shape, k: Shape) -> tuple[Term, Term]:
    return variable("x", x, "float32"), variable("k", k, "float32", constant=True)


@each_way
@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("stride", [2, 3])
def test_the_phases_of_all_kernels_pads_and_groups_are_the_transposed_convolution(
    meaning: Meaning, summed: object, axes: int, stride: int
) -> None:
    """Wherever it is offered, and it is for most."""
    tried = found = 0
    for kernel, before, after, more, group in itertools.product(range(stride, 7), range(3), range(3), (0, 1), (1, 2)):
        pads = (before, after) if axes == 1 else (before, 1, after, 0)
        op = ConvTranspose((stride, 2)[:axes], pads, (1, 1)[:axes], group, (more, 0)[:axes])
        inputs = given(op, (2, 4, 5, 3)[: axes + 2], (4, 2, kernel, 3)[: axes + 2])
        try:
            direct = op(*inputs)
        except ShapeError:
            continue
        tried += group == 1 or meaning is phase_by_phase
        if (term := meaning(op, *inputs)) is not None:
            found += 1
            assert_equal(term, direct)
    assert 2 * found > tried > 0


@each_way
def test_how_large_images_are_may_be_a_symbol(meaning: Meaning, summed: object) -> None:
    op = ConvTranspose((2, 2), (1, 1, 1, 1))
    image, kernel = given(op, (1, 3, 4, 5), (3, 2, 4, 4))
    any_size = variable("x", (symbol("n"), 3, symbol("h"), 5), "float32")
    with assuming():
        found = meaning(op, any_size, kernel)
    assert found is not None
    (at,) = resize((found,), {"n": 1, "h": 4})
    assert_equal(at, op(image, kernel))


@each_way
@pytest.mark.parametrize("turned", [False, True], ids=["bias last", "bias first"])
def test_each_phase_has_the_bias(meaning: object, summed: Callable[..., Term | None], turned: bool) -> None:
    op = ConvTranspose((2, 2), (1, 1, 1, 1), (1, 1), 1, (1, 1))
    y = op(*given(op, (1, 3, 4, 5), (3, 2, 3, 3)))
    bias = Expand((1,), y.shape)(variable("b", (2,), "float32", constant=True))
    inputs = (bias, y) if turned else (y, bias)
    found = summed(Add(), *inputs)
    assert found is not None
    assert_equal(found, Add()(*inputs))


LEFT = {
    "steps of one": (ConvTranspose(), (1, 3, 4, 4), (3, 2, 3, 3)),
    "gaps": (ConvTranspose((2, 2), dilations=(2, 1)), (1, 3, 4, 4), (3, 2, 3, 3)),
    "phases without elements": (ConvTranspose((2, 2)), (1, 3, 4, 4), (3, 2, 1, 3)),
    "many phases": (ConvTranspose((1, MOST + 1)), (1, 3, 4, 4), (3, 2, 1, MOST + 1)),
    "three axes": (ConvTranspose((2, 2, 2), (0,) * 6, (1,) * 3, 1, (0,) * 3), (1, 3, 4, 4, 4), (3, 2, 2, 2, 2)),
}


@each_way
@pytest.mark.parametrize(("op", "x", "k"), LEFT.values(), ids=LEFT)
def test_else_it_is_left(meaning: Meaning, summed: object, op: ConvTranspose, x: Shape, k: Shape) -> None:
    assert meaning(op, *given(op, x, k)) is None


@each_way
def test_a_kernel_that_is_computed_is_left(meaning: Meaning, summed: object) -> None:
    assert meaning(ConvTranspose((2, 2)), variable("x", (1, 3, 4, 4)), variable("k", (3, 2, 2, 2))) is None


STEPS = {1: (16, 16, 16, 8), 2: (64, 32, 4, 2)}
"""Channels before and after, the kernel's side and the stride of a decoder's step of signals, and of one of images."""


@pytest.mark.parametrize("axes", STEPS)
def test_a_decoder_s_step_is_faster_by_phases_and_the_same(axes: int, options: Options) -> None:
    size, (given, made, kernel, stride) = [64, 64] if axes == 2 else [2048], STEPS[axes]
    pads = [(kernel - stride) // 2] * 2 * axes
    strided = {"kernel_shape": [kernel] * axes, "strides": [stride] * axes, "pads": pads}
    nodes = [helper.make_node("ConvTranspose", ["x", "k", "b"], ["y"], **strided)]
    weights = {"k": weight(given, made, *[kernel] * axes), "b": weight(made)}
    larger = [1, made, *(stride * s for s in size)]
    source = model(nodes, [("x", TensorProto.FLOAT, [1, given, *size])], [("y", TensorProto.FLOAT, larger)], weights)
    result = superopt.optimize(source, options)
    faster = result.report.outcome == "faster"
    assert faster or (axes == 1 and not has_avx512())  # what it gains then may not show
    assert_same(result.proto(), source)
    assert ("ConvTranspose" in {node.op_type for node in result.proto().graph.node}) != faster
