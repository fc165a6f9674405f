"""What gates images is spread over them as a resize or a convolution: to the same values, and within their blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from superopt.demands import assuming
from superopt.dim import Dim, Shape, symbol
from superopt.operators.activations import HardSigmoid, Relu, Sigmoid
from superopt.operators.conv import Conv
from superopt.operators.definitions.spread import as_a_convolution, as_a_resize
from superopt.operators.layout import Expand, Reshape
from superopt.operators.pointwise import Mul
from superopt.operators.reduce import GlobalAvgPool
from superopt.operators.symbolic import resize
from superopt.term import Term, variable
from tests.cost.graphs import BLOCKED, graph, left_by_onnxruntime, tensor, weight
from tests.operators.definitions.equality import assert_equal

N = symbol("n")


def spread(image: Term, axes: tuple[int, ...], to: Shape) -> Term:
    with assuming():
        return Expand(axes, to)(Reshape(tuple(to[a] for a in axes))(image))


def meaning_of(define: Callable[[Expand, Term], Term | None], term: Term) -> Term | None:
    assert isinstance(term.operator, Expand)
    with assuming():  # that sizes which are symbols are at least 1
        return define(term.operator, *term.inputs)


resized, convolved = partial(meaning_of, as_a_resize), partial(meaning_of, as_a_convolution)


@pytest.mark.parametrize(
    ("define", "axes", "to"),
    [
        *[(resized, a, to) for a, to in (((1,), (1, 4, 3, 5)), ((0, 1), (2, 8, 3, 1)), ((0, 1), (N, 4, 7, 7)))],
        *[
            (convolved, a, to)
            for a, to in (((2, 3), (1, 16, 3, 5)), ((0, 2, 3), (2, 20, 3, 1)), ((0, 2, 3), (N, 16, N, 7)))
        ],
    ],
    ids=lambda value: "resized" if value is resized else "convolved" if value is convolved else str(value),
)
def test_what_gates_images_is_spread_to_the_same_values(
    define: Callable[[Term], Term | None], axes: tuple[int, ...], to: Shape
) -> None:
    """A number for each channel as a resize, and one for each place as a convolution."""
    term = spread(variable("x", tuple(d if a == 0 or a in axes else 1 for a, d in enumerate(to)), "float32"), axes, to)
    meaning = define(term)
    assert meaning is not None
    assert isinstance(meaning.operator, Reshape if define is resized else Conv)
    assert_equal(*resize((meaning, term), {"n": 3}))


@pytest.mark.parametrize(
    ("image", "axes", "to"),
    [
        pytest.param((1, 6, 1, 1), (1,), (1, 6, 3, 3), id="no whole blocks"),
        pytest.param((1, 4, 1, 1), (1,), (2, 4, 3, 3), id="along samples as well"),
        pytest.param((1, 4, 1, 1), (1,), (1, 4, 1, 1), id="to one place"),
        pytest.param((1, 4, 1, 1), (1,), (1, 4, N, 3), id="to any size"),
        pytest.param((1, 2, 2, 1), (1,), (1, 4, 3, 3), id="of several places"),
        pytest.param((2, 2, 1, 1), (1,), (1, 4, 3, 3), id="of several samples"),
        pytest.param((1, 4, 1), (1,), (1, 4, 3, 3), id="of rows"),
    ],
)
def test_what_a_runtime_would_not_resize_in_blocks_is_broadcast(
    image: tuple[Dim, ...], axes: tuple[int, ...], to: Shape
) -> None:
    assert resized(spread(variable("x", image, "float32"), axes, to)) is None


@pytest.mark.parametrize(("dtype", "constant"), [("float32", True), ("float64", False)])
def test_what_is_constant_or_of_another_type_is_broadcast(dtype: str, constant: bool) -> None:
    for define, image, axes in ((resized, (1, 16, 1, 1), (1,)), (convolved, (1, 1, 3, 3), (2, 3))):
        assert define(spread(variable("x", image, dtype, constant), axes, (1, 16, 3, 3))) is None


@pytest.mark.parametrize(
    ("axes", "to"),
    [
        ((2, 3), (1, 18, 3, 3)),
        ((2, 3), (1, 12, 3, 3)),
        ((2, 3), (2, 16, 3, 3)),
        ((2, 3), (1, N, 3, 3)),
        ((1, 2), (1, 16, 3)),
    ],
    ids=["no whole blocks", "less than a block", "along samples as well", "any number", "rows"],
)
def test_numbers_for_places_of_other_images_are_broadcast(axes: tuple[int, ...], to: Shape) -> None:
    assert convolved(spread(variable("x", tuple(to[a] for a in axes), "float32"), axes, to)) is None


@pytest.mark.parametrize("kind", ["channels", "places"])
def test_onnxruntime_gates_an_image_so_without_laying_it_out_anew(kind: str, tmp_path: Path) -> None:
    """Broadcast, a gate takes the image out of its blocks."""

    def conv(image: Term, name: str, given: int = 32) -> Term:
        return Conv()(image, weight(name, given, 32, 1, 1))

    image = Relu()(conv(tensor("x", 1, 32, 8, 8), "k"))
    if kind == "channels":
        gate = spread(HardSigmoid(0.2, 0.5)(conv(GlobalAvgPool()(image), "g")), (1,), image.shape)
        spread_out = resized(gate)
    else:
        gate = spread(Sigmoid()(conv(image, "g", 1)), (2, 3), image.shape)
        spread_out = convolved(gate)
    assert spread_out is not None
    graphs = [graph(conv(Mul()(image, other), "l")) for other in (gate, spread_out)]
    nodes = [left_by_onnxruntime(made, tmp_path, 17, 24) for made in graphs]
    if not any(n.domain == BLOCKED for n in nodes[0]):
        pytest.skip("this processor has no layout in blocks")
    broadcast, kept = ([n.op_type for n in own if n.op_type.startswith("Reorder")] for own in nodes)
    assert len(kept) < len(broadcast)


def test_numbers_that_come_as_no_image_are_not_resized() -> None:
    assert as_a_resize(Expand((1,), (1, 4, 3, 3)), variable("x", (4,), "float32")) is None
