"""What is taken to stand in blocks of channels is what onnxruntime leaves so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from superopt.cost.blocks import FEW, how_taken, in_blocks
from superopt.operators import CATALOGUE
from superopt.operators.activations import HardSigmoid, Relu, Sigmoid
from superopt.operators.casts import Cast
from superopt.operators.clip import Clip
from superopt.operators.comparisons import Comparison, IsNan
from superopt.operators.constant import Scalar
from superopt.operators.conv import Conv
from superopt.operators.definitions.spread import as_a_resize
from superopt.operators.interpolate import Interpolate
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.logic import Logical
from superopt.operators.nearest import Nearest
from superopt.operators.normalize import BatchNorm, Lrn
from superopt.operators.padding import Pad
from superopt.operators.picks import Slice
from superopt.operators.places import PLACES
from superopt.operators.pointwise import Add, Mul
from superopt.operators.rearrange import repeated
from superopt.operators.reduce import AvgPool, GlobalAvgPool, MaxPool
from superopt.term import Term
from tests.cost.graphs import BLOCKED, graph, left_by_onnxruntime, per_channel, tensor, weight

OPSET, HIGHEST = 17, 24


def conv(image: Term, given: int = 32, name: str = "k", groups: int = 1) -> Term:
    return Conv(group=groups)(image, weight(name, given, image.shape[1] // groups, 1, 1))


IMAGE = tensor("x", 1, 32, 8, 8)
MADE = conv(IMAGE)
ACTIVE = Relu()(MADE)
SUM = Add()(MADE, conv(IMAGE, name="m"))


def channels(like: Term = MADE) -> Term:
    return per_channel(weight("c", 32), like)


NUMBER = Expand((), MADE.shape)(weight("s"))


def pointwise() -> Iterator[Term]:
    """Each function of one image, and of an image and something else."""
    for cls in CATALOGUE.values():
        if not cls.pointwise or cls.arity > 2 or issubclass(cls, Logical | Comparison | IsNan | Cast):
            continue
        for image in (MADE, ACTIVE, SUM):
            others = [conv(IMAGE, name="l"), channels(), NUMBER, weight("w", *MADE.shape), IMAGE]
            yield from (cls()(image, *more) for more in ([[]] if cls.arity == 1 else [[o] for o in others]))


def of_channels(op: type[Add | Mul], image: Term) -> Term:
    return op()(image, channels())


def normalized(image: Term) -> Term:
    return BatchNorm()(image, *(weight(n, image.shape[1]) for n in "smbv"))


def spread_out(image: Term) -> Term:
    """An image of one place, resized."""
    spread = Expand((1,), (1, 32, 8, 8))
    resized = as_a_resize(spread, Reshape((32,))(image))
    assert resized is not None
    return resized


SQUEEZED = HardSigmoid(0.2, 0.5)(conv(GlobalAvgPool()(ACTIVE), name="e"))
OTHERS = [
    *[conv(tensor("x", 1, taken, 8, 8), given) for taken in (3, 6, 32, 40, 58) for given in (6, 16, 58)],
    *[conv(tensor("x", 1, wide, 8, 8), wide, groups=groups) for wide in (58, 60, 64) for groups in (2, wide)],
    conv(tensor("x", 1, 64, 8, 8), 64, groups=4),
    conv(tensor("x", 1, 64, 8, 8), 64, groups=16),
    conv(tensor("x", 1, 32, 8, 8), 64, groups=32),
    Conv()(IMAGE, tensor("dynamic", 32, 32, 1, 1)),
    *[made for c in (20, 32) for made in (MaxPool((2, 2))(conv(IMAGE, c)), AvgPool((2, 2))(Relu()(conv(IMAGE, c))))],
    *[GlobalAvgPool()(conv(IMAGE, c)) for c in (20, 32)],
    *[Concat(1)(conv(IMAGE, c), conv(IMAGE, 32, "l")) for c in (20, 32)],
    Concat(1)(MADE, weight("w", 1, 32, 8, 8)),
    Concat(2)(MADE, conv(IMAGE, name="l")),
    *[Add()(Relu()(conv(IMAGE, c)), Relu()(conv(IMAGE, c, "l"))) for c in (20, 58)],
    *[normalized(Relu()(conv(IMAGE, c))) for c in (20, 58)],
    normalized(MADE),
    Mul()(MADE, Sigmoid()(MADE)),
    Mul()(ACTIVE, Expand((0, 1), ACTIVE.shape)(Reshape((1, 32))(SQUEEZED))),
    Mul()(ACTIVE, spread_out(SQUEEZED)),
    *[repeated(conv(IMAGE, c), (1, 1, 2, 3), within=True) for c in (20, 32, 58)],
    repeated(conv(IMAGE), (1, 2, 2, 2), within=True),
    repeated(conv(IMAGE), (1, 1, 2, 2), within=False),
    *[Interpolate(to, by)(MADE) for to in ((16, 16), (8, 24), (12, 20), (4, 4)) for by in PLACES],
    *[Nearest(to)(MADE) for to in ((16, 16), (12, 20), (4, 4))],
    Clip()(ACTIVE, Scalar(0.0)(), Scalar(6.0)()),
    *[of_channels(a, of_channels(b, i)) for a in (Add, Mul) for b in (Add, Mul) for i in (MADE, ACTIVE)],
    *[of_channels(a, Mul()(i, NUMBER)) for a in (Add, Mul) for i in (MADE, ACTIVE)],
    *[of_channels(a, Add()(MADE, conv(IMAGE, name="l"))) for a in (Add, Mul)],
    of_channels(Add, normalized(MADE)),
    of_channels(Add, normalized(ACTIVE)),
    Lrn(5)(MADE),
    Slice(1, 0, 16)(MADE),
    Transpose((0, 1, 3, 2))(MADE),
]


def before_the_last(term: Term, folder: Path) -> str:
    """What gives the image that the last convolution computes from, when onnxruntime has laid out all: its operator, or
    the same in blocks.
    """
    left = left_by_onnxruntime(graph(term), folder, OPSET, HIGHEST)
    last = [n for n in left if n.op_type in ("Conv", "FusedConv")][-1]
    (producer,) = (n.op_type for n in left if last.input[0] in n.output)
    few = term.inputs[0].shape[1] in range(FEW)  # these it takes as they are
    in_order = few or producer in ("ReorderOutput", "ReorderInput") or last.domain != BLOCKED
    return producer if in_order else f"{producer} in blocks"


@pytest.fixture(scope="module", autouse=True)
def has_blocks(tmp_path_factory: pytest.TempPathFactory) -> None:
    if not any(n.domain == BLOCKED for n in left_by_onnxruntime(graph(MADE), tmp_path_factory.mktemp("alone"))):
        pytest.skip("this processor has no layout in blocks")


@pytest.mark.parametrize("term", [*pointwise(), *OTHERS], ids=str)
def test_a_value_is_in_blocks_where_onnxruntime_leaves_it_so(term: Term, tmp_path: Path) -> None:
    """A convolution behind it tells: it takes the value so, or what the value is laid out as before."""
    before = before_the_last(conv(term, 16, "last"), tmp_path)
    assert in_blocks(term, {}) == (before == "ReorderOutput" or "in blocks" in before), before


@pytest.mark.parametrize(
    ("image", "groups"),
    [(Relu()(conv(IMAGE, 6)), 1), (ACTIVE, 1), (ACTIVE, 32), (Pad((0, 0, 1, 1, 0, 0, 1, 1))(ACTIVE), 1)],
    ids=["few", "many", "single", "padded"],
)
def test_convolutions_take_images_of_many_channels_in_blocks(image: Term, groups: int, tmp_path: Path) -> None:
    term = conv(image, 32, "last", groups)
    found = how_taken(term)
    how = next(found[i] for i in (image, *image.inputs) if i in found)
    assert (how == "in blocks") == ("in blocks" in before_the_last(term, tmp_path))


def test_how_a_kernel_takes_what_it_reads_is_told_by_its_convolution() -> None:
    rows = tensor("r", 1, 8, 8, 32)
    first = Transpose((0, 3, 1, 2))
    wide = Pad((0, 0, 0, 0, 0, 2, 0, 0))(tensor("n", 1, 30, 8, 8))
    for term, expected in (
        (Relu()(Add()(conv(IMAGE), tensor("z", 1, 32, 8, 8))), {"x": "in blocks"}),
        (conv(first(rows)), {"r": "as it is"}),
        (conv(wide), {"n": "as it is"}),
        (Conv()(IMAGE, tensor("dynamic", 32, 32, 1, 1)), {"x": "as it is"}),
        (Relu()(IMAGE), {}),
    ):
        assert {image.label: how for image, how in how_taken(term).items()} == expected
