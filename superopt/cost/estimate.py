"""What kernels that were never measured may take: the analytic cost, corrected by what was measured of their kind.

Searches look at thousands of graphs, and most are not worth a measurement. Kernels that are alike (convolutions of one
point, depthwise ones, transposes, …) miss their analytic cost by about the same factor, the more so the nearer they
are in what they compute and move: so what is known of a few tells where to look. Weighted so, estimates miss by 7 % in
the median and 18 % in the mean where the median of a kind misses by 12 and 23 (3,666 kernels of 33 models). The less of
both counts: what is thought too cheap is measured, and what is thought too dear is never looked at. For the same reason
a kind of which none was measured is taken to miss it as the others do, the analytic cost itself among them: where one
kernel is all that was measured, and slow, its parts would not be looked at. Kinds that stream memory,
point-wise ones and re-layouts, are taken to miss it as other such do. And convolutions compute channels in whole
blocks: of one of few channels it is not to be learned that others, which use them, take as long for a product.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple, TypeAlias

from superopt.cost.analytic import AnalyticCost, own_flops
from superopt.cost.blocks import is_repeated
from superopt.cost.kernels import Kernel
from superopt.cost.rates import CORE, Rates
from superopt.dim import Shape
from superopt.operators import Declared
from superopt.operators.conv import Conv
from superopt.operators.definitions.blocks import LAID_OUT, is_of_whole_blocks
from superopt.operators.definitions.pictures import brings_channels_first
from superopt.operators.layout import Expand, Reshape
from superopt.term import Term, subterms

Lesson: TypeAlias = "tuple[tuple[float, ...], float]"
"""How large a kernel is, and the logarithm of what it misses its analytic cost by."""


class Kind(NamedTuple):
    """What kernels are alike in."""

    words: str
    streams: bool


NEAREST = 0.01
"""The weight of a kernel is one over the square of its distance, in natural logarithms of operations and of bytes, and
this: one that has a tenth more of either counts half as much as one of the same size.
"""

SHORT = 4
"""The elements of a short row."""

LEAST_S = 1e-9
"""What a kernel is taken to take at least: a few are told to take nothing, as what they cost is a difference."""


class Estimates:
    """Learns from kernels that were measured, and estimates others. The same order of lessons gives the same."""

    def __init__(self, rates: Rates = CORE) -> None:
        self._analytic = AnalyticCost(rates)
        self._seen: dict[Kind, list[Lesson]] = defaultdict(list)
        self._factors: dict[Kind, float] = {}
        self._usual = self._usual_stream = 1.0
        self._kinds: dict[tuple[Term, ...], Kind] = {}
        self._costs: dict[tuple[Term, ...], float] = {}
        self._near: dict[tuple[Term, ...], tuple[int, float]] = {}

    def forget_terms(self) -> None:
        """Forget the graphs that were asked about, and keep what was learned of them."""
        self._kinds.clear()
        self._costs.clear()
        self._near.clear()
        self._analytic.forget_terms()

    def learn(self, kernel: Kernel, seconds: float) -> None:
        """Note what a kernel was measured to take."""
        kind, factor = self._kind(kernel), max(seconds, LEAST_S) / self._in_blocks(kernel)
        self._seen[kind].append((self._size(kernel), math.log(factor)))
        self._factors[kind] = math.exp(statistics.median(logarithm for _, logarithm in self._seen[kind]))
        self._usual = statistics.median_low([1.0, *self._factors.values()])
        if kind.streams:
            self._usual_stream = statistics.median_low(f for k, f in self._factors.items() if k.streams)

    def seconds(self, kernel: Kernel) -> float:
        """The seconds that a kernel may take; as other kinds do, where nothing of its kind was measured."""
        return self._in_blocks(kernel) * self._factor(kernel)

    def _in_blocks(self, kernel: Kernel) -> float:
        """The analytic cost, or of a convolution of less than a block of channels that of the block."""
        key = kernel.graph.outputs
        if key not in self._costs:
            self._costs[key] = self._analytic.seconds(kernel) * _unused(_main(kernel))
        return self._costs[key]

    def _factor(self, kernel: Kernel) -> float:
        """That by which a kernel misses its analytic cost, as those of its kind do that are near it, or all of them."""
        kind, key = self._kind(kernel), kernel.graph.outputs
        lessons = self._seen.get(kind, ())
        if not lessons:
            return self._usual_stream if kind.streams else self._usual
        count, factor = self._near.get(key, (0, 1.0))
        if count != len(lessons):
            size = self._size(kernel)
            weights = [1.0 / (NEAREST + math.dist(size, other) ** 2) for other, _ in lessons]
            mean = math.fsum(w * logarithm for w, (_, logarithm) in zip(weights, lessons, strict=True))
            factor = min(math.exp(mean / math.fsum(weights)), self._factors[kind])
            self._near[key] = len(lessons), factor
        return factor

    def _size(self, kernel: Kernel) -> tuple[float, ...]:
        return tuple(math.log1p(count) for count in self._analytic.counted(kernel))

    def _kind(self, kernel: Kernel) -> Kind:
        key = kernel.graph.outputs
        if key not in self._kinds:
            self._kinds[key] = kind_of(kernel)
        return self._kinds[key]


def kind_of(kernel: Kernel) -> Kind:
    """What a kernel is like: the operator that computes most, its rank, whether it repeats something in short rows, and
    of convolutions the groups, the size, and whether channels come in whole blocks, and whether they are brought to the
    front.
    """
    main = _main(kernel)
    words = [main.operator.name, str(main.type.rank)]
    if isinstance(main.operator, Conv):
        image, weight = (i.shape for i in main.inputs)
        grouped = main.operator.group > 1
        words.append("depthwise" if grouped and image[1] == main.operator.group else "grouped" if grouped else "dense")
        words.append("points" if all(d == 1 for d in weight[2:]) else "windows")
        words.append("whole blocks" if is_of_whole_blocks(image[1]) else "other channels")
        words.append("rows" if any(map(brings_channels_first, subterms(*kernel.graph.outputs))) else "images")
    op = main.operator
    if _repeats_in_short_rows(main):
        words.append("short rows")
    return Kind(" ".join(words), isinstance(op, Declared) and (op.pointwise or op.moves))


def _repeats_in_short_rows(main: Term) -> bool:
    """Whether a point-wise operator reads something that is repeated, or not, for few elements at a time, or something
    is written out so: onnxruntime goes from one such row to the next then, which takes ten times as long an element.
    """
    op = main.operator
    if isinstance(op, Reshape):  # what it merges is repeated so, unless it is an image that is resized
        repeat, wide = main.inputs[0].operator, main.inputs[0].shape
        several = [axis for axis, d in enumerate(wide) if d != 1]
        if not isinstance(repeat, Expand) or is_repeated(main):
            return False
        axes = [place for place, axis in enumerate(several) if axis in repeat.axes]
        return _row(axes, tuple(wide[axis] for axis in several)) <= SHORT
    if not (isinstance(op, Declared) and op.pointwise):
        return False
    return any(_row(i.operator.axes, main.shape) <= SHORT for i in main.inputs if isinstance(i.operator, Expand))


def _row(axes: Sequence[int], shape: Shape) -> int:
    """How many elements in a row read what is repeated along all axes but these in one way: as one, or one by one."""
    if not shape or shape[-1] == 1:
        return 1
    last = len(shape) - 1
    alike = takewhile(lambda axis: (axis in axes) == (last in axes), range(last, -1, -1))
    return math.prod(d for axis in alike if isinstance(d := shape[axis], int))


def _main(kernel: Kernel) -> Term:
    """The operator that computes most."""
    (root,) = kernel.graph.outputs
    running = [t for t in subterms(root) if not t.is_variable and not isinstance(t.operator, Expand)]
    return max(running, key=_flops, default=root)


def _unused(main: Term) -> float:
    """How many times more channels a convolution computes than there are."""
    count = main.shape[1] if isinstance(main.operator, Conv) and main.operator.group == 1 else LAID_OUT
    return max(LAID_OUT / count, 1.0) if isinstance(count, int) else 1.0


def _flops(term: Term) -> int:
    count = own_flops(term)
    assert isinstance(count, int), f"{count} is still symbolic"
    return count
