"""Places that move between channels and image are one node, written and timed, whoever wrote them out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from superopt.cost.kernels import cut
from superopt.onnx_io import standalone
from superopt.operators.layout import Reshape, Transpose
from superopt.operators.pointwise import Relu
from superopt.operators.shuffles import shuffle_of
from superopt.term import Graph, Term, variable

SPLITS = {
    "places first": ((1, 2, 2, 3, 4, 5), (0, 3, 4, 1, 5, 2), (1, 3, 8, 10), {"blocksize": 2}),
    "channels first": ((1, 3, 2, 2, 4, 5), (0, 1, 4, 2, 5, 3), (1, 3, 8, 10), {"blocksize": 2, "mode": "CRD"}),
}


def shuffled(x: Term, split: tuple[int, ...], perm: tuple[int, ...], to: tuple[int, ...]) -> Term:
    return Reshape(to)(Transpose(perm)(Reshape(split)(x)))


def back(x: Term) -> Term:
    return shuffled(x, (1, 3, 4, 2, 5, 2), (0, 3, 5, 1, 2, 4), (1, 12, 4, 5))


def computed(term: Term, opset: int, x: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The operators that a term is written in, and what ONNX's reference says that they compute."""
    given = variable("x", x.shape)
    model = standalone(Graph((given,), (term,)), opset)
    (value,) = ReferenceEvaluator(model).run(None, {"x": x})
    return [node.op_type for node in model.graph.node], np.asarray(value)


@pytest.mark.parametrize("opset", [9, 13])
@pytest.mark.parametrize("name", SPLITS)
def test_blocks_of_channels_become_places_in_one_node(name: str, opset: int) -> None:
    split, perm, to, attributes = SPLITS[name]
    x = np.random.default_rng(0).standard_normal((1, 12, 4, 5)).astype(np.float32)
    term = shuffled(variable("x", x.shape), split, perm, to)
    found = shuffle_of(term)
    assert found is not None
    assert (found.op_type, found.attributes) == ("DepthToSpace", attributes)
    kinds, value = computed(term, opset, x)
    has_modes = opset >= 11 or "mode" not in attributes
    assert kinds == (["DepthToSpace"] if has_modes else ["Reshape", "Transpose", "Reshape"])
    np.testing.assert_array_equal(value, x.reshape(split).transpose(perm).reshape(to))


def test_places_become_channels_in_one_node() -> None:
    x = np.random.default_rng(0).standard_normal((1, 3, 8, 10)).astype(np.float32)
    kinds, value = computed(back(variable("x", x.shape)), 13, x)
    assert kinds == ["SpaceToDepth"]
    np.testing.assert_array_equal(value, x.reshape(1, 3, 4, 2, 5, 2).transpose(0, 3, 5, 1, 2, 4).reshape(1, 12, 4, 5))


def test_other_orders_of_the_same_axes_are_no_shuffle() -> None:
    known = {perm for _, perm, _, _ in SPLITS.values()}
    others = [p for p in itertools.permutations(range(6)) if p[0] == 0 and p not in known]
    x = variable("x", (1, 16, 2, 2))
    assert len(others) == 118
    for perm in others:
        moved = Transpose(perm)(Reshape((1, 2, 2, 4, 2, 2))(x))
        assert shuffle_of(Reshape((1, 4, 4, 4))(moved)) is None, perm


def test_it_is_one_kernel_unless_something_else_reads_what_is_between() -> None:
    split, perm, to, _ = SPLITS["places first"]
    x = variable("x", (1, 12, 4, 5))
    moved = Transpose(perm)(Reshape(split)(x))
    assert len(cut(Graph((x,), (Reshape(to)(moved),)))) == 1
    assert len(cut(Graph((x,), (Reshape(to)(moved), Relu()(moved))))) > 2
