"""Convolutions along one axis and three are those of pictures: exactly, in the field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.arithmetic.field import FIELD
from superopt.demands import assuming
from superopt.dim import Shape, symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.conv import Conv
from superopt.operators.definitions.frames import all_frames_at_once, as_row, by_frames, frame_by_frame, of_one_row
from superopt.operators.layout import Concat, Expand, reshaped
from superopt.operators.symbolic import resize
from superopt.term import Term, subterms, variable
from tests.models import assert_same, model, weight

ROWS = [
    (Conv((2,), (1, 2), (2,), 1), (2, 4, 9), (6, 4, 3)),
    (Conv((1,), (1, 1), (1,), 4), (2, 4, 9), (4, 1, 3)),
]
GROUPS = [
    (Conv((2, 1, 2), (1, 0, 1, 2, 1, 0), (1, 2, 1), 4), (2, 4, 7, 8, 9), (4, 1, 3, 2, 3)),
    (Conv((1, 2, 2), (1, 1, 1, 1, 1, 1), (1, 1, 1), 2), (1, 4, 4, 5, 6), (6, 2, 3, 3, 3)),
    (Conv((1, 1, 1), (0, 0, 0, 0, 0, 0), (2, 1, 1), 3), (1, 3, 6, 4, 4), (6, 1, 2, 1, 1)),
]
FRAMES = [
    (Conv((2, 1, 2), (1, 0, 1, 2, 1, 0), (1, 2, 1), 1), (2, 3, 7, 8, 9), (5, 3, 3, 2, 3)),
    (Conv((1, 1, 1), (0, 1, 1, 0, 1, 1), (1, 1, 1), 1), (1, 3, 4, 5, 6), (5, 3, 1, 3, 3)),
    (Conv((1, 1, 1), (1, 0, 0, 1, 0, 0), (2, 1, 1), 1), (1, 2, 6, 4, 4), (3, 2, 2, 1, 1)),
]


def given(conv: Conv, x: Shape, k: Shape) -> tuple[Term, Term, Term]:
    picture, kernel = variable("x", x, "float32"), variable("k", k, "float32", constant=True)
    return conv(picture, kernel), picture, kernel


NARROWED = [
    (Conv((1, 1, 2), (1, 0, 1, 2, 1, 0), (1, 2, 1), 1), (2, 5, 7, 8, 9), (3, 5, 3, 2, 3)),
    (Conv((1, 2, 1), (3, 1, 1, 1, 1, 1), (2, 1, 1), 1), (1, 3, 4, 5, 6), (3, 3, 3, 3, 3)),
    (Conv((1, 1, 1), (0, 0, 0, 0, 0, 0), (1, 1, 1), 1), (1, 3, 6, 4, 4), (2, 3, 2, 1, 1)),
]
Definition = Callable[..., Term | None]
CASES: list[tuple[Definition, Conv, Shape, Shape]] = [
    *((of_one_row, *case) for case in ROWS),
    *((frame_by_frame, *case) for case in [*GROUPS, *FRAMES, *NARROWED]),
    *((by_frames, *case) for case in [*FRAMES, *NARROWED]),
    *((all_frames_at_once, *case) for case in NARROWED),
]


@pytest.mark.parametrize(("meaning", "conv", "x", "k"), CASES)
def test_the_picture_has_the_same_convolution(meaning: Definition, conv: Conv, x: Shape, k: Shape) -> None:
    direct, *inputs = given(conv, x, k)
    found = meaning(conv, *inputs)
    assert found is not None
    assert found.type == direct.type
    values = sample((direct,), FIELD, 0)
    assert (evaluate(found, FIELD, values) == evaluate(direct, FIELD, values)).all()


@pytest.mark.parametrize(("meaning", "conv", "x", "k"), [case for case in CASES if len(case[2]) == 5])
def test_how_many_images_there_are_may_be_a_symbol(meaning: Definition, conv: Conv, x: Shape, k: Shape) -> None:
    kernel, (images, any_number) = variable("k", k), (variable("x", (n, *x[1:])) for n in (3, symbol("n")))
    with assuming():
        found = meaning(conv, any_number, kernel)
    assert found is not None
    assert resize((found,), {"n": 3}) == (meaning(conv, images, kernel),)


@pytest.mark.parametrize(
    ("conv", "x", "k"),
    [
        (Conv((1, 1, 1), (0,) * 6, (1, 1, 1), 2), (1, 4, 3, 3, 3), (2, 2, 2, 1, 1)),
        (Conv((2, 1, 1), (0,) * 6, (1, 1, 1), 1), (1, 4, 3, 3, 3), (2, 4, 2, 1, 1)),
        (Conv((1, 1, 1), (0,) * 6, (1, 1, 1), 1), (1, 4, 3, 3, 3), (5, 4, 2, 1, 1)),
        (Conv((1, 1, 1), (0,) * 6, (1, 1, 1), 1), (1, 4, 3, 3, 3), (2, 4, 1, 1, 1)),
        (Conv((1, 1, 1), (6, 0, 0, 6, 0, 0), (5, 1, 1), 1), (1, 4, 2, 3, 3), (2, 4, 3, 1, 1)),
    ],
    ids=["groups", "strides", "more channels", "one frame", "a frame of the kernel that meets only zeros"],
)
def test_all_frames_are_computed_at_once_where_none_is_in_vain(conv: Conv, x: Shape, k: Shape) -> None:
    _, *inputs = given(conv, x, k)
    assert all_frames_at_once(conv, *inputs) is None


def test_of_groups_nothing_is_joined() -> None:
    _, *inputs = given(conv := Conv((1, 1, 1), (0,) * 6, (1, 1, 1), 2), (1, 4, 3, 3, 3), (2, 2, 1, 1, 1))
    assert by_frames(conv, *inputs) is None


POINTS, CLOUD = variable("points", (2, 3, 7)), variable("cloud", (2, 4))
PARTS = {
    "of channels": Concat(1)(POINTS, Expand((0, 1), (2, 4, 7))(CLOUD)),
    "of places": Concat(2)(POINTS, Expand((0, 1), (2, 3, 2))(variable("one", (2, 3)))),
    "repeated places": Expand((1, 2), (2, 3, 7))(variable("each", (3, 7))),
}


@pytest.mark.parametrize("x", PARTS.values(), ids=PARTS)
def test_what_is_joined_or_repeated_stays_so_in_a_picture_of_one_row(x: Term) -> None:
    found = as_row(x)
    assert found.shape == (*x.shape[:2], 1, x.shape[2])
    assert [type(t.operator) for t in subterms(found)].count(Expand) == 1
    values = sample((x,), FIELD, 0)
    assert (evaluate(found, FIELD, values) == evaluate(reshaped(x, found.shape), FIELD, values)).all()


def test_a_feature_of_a_whole_cloud_beside_each_of_its_points_is_convolved_once(options: Options) -> None:
    points, cloud, width = 1024, 512, 64
    nodes = [
        helper.make_node("Expand", ["cloud", "to"], ["each"]),
        helper.make_node("Concat", ["each", "points"], ["both"], axis=1),
        helper.make_node("Conv", ["both", "k"], ["y"]),
    ]
    weights = {"to": np.array([1, cloud, points]), "k": weight(128, cloud + width, 1)}
    ends = [("cloud", TensorProto.FLOAT, [1, cloud, 1]), ("points", TensorProto.FLOAT, [1, width, points])]
    source = model(nodes, ends, [("y", TensorProto.FLOAT, [1, 128, points])], weights)
    result = superopt.optimize(source, replace(options, rules=None))  # the shipped ones
    assert result.report.outcome == "faster"
    assert_same(result.proto(), source)
    assert "Concat" not in {node.op_type for node in result.proto().graph.node}
