"""What kernels that were never measured may take: the analytic cost, corrected by what was measured of their kind.

Searches look at thousands of graphs, and most are not worth a measurement. Kernels that are alike (convolutions of one
point, depthwise ones, transposes, …) miss their analytic cost by about the same factor, so what is known of a few tells
where to look. A kind of which none was measured is taken to miss it as the others do, the analytic cost itself among
them: where one kernel is all that was measured, and slow, its parts would not be looked at. What is found is measured.
"""

from __future__ import annotations

import statistics
from collections import defaultdict

from superopt.cost.analytic import AnalyticCost, own_flops
from superopt.cost.kernels import Kernel
from superopt.operators.blocks import is_of_whole_blocks
from superopt.operators.layout import Expand
from superopt.operators.linear import Conv
from superopt.operators.pictures import brings_channels_first
from superopt.term import Term, subterms


class Estimates:
    """Learns from kernels that were measured, and estimates others. The same order of lessons gives the same."""

    def __init__(self) -> None:
        self._analytic = AnalyticCost()
        self._seen: dict[str, list[float]] = defaultdict(list)
        self._factors: dict[str, float] = {}
        self._usual = 1.0
        self._kinds: dict[tuple[Term, ...], str] = {}

    def learn(self, kernel: Kernel, seconds: float) -> None:
        """Note what a kernel was measured to take."""
        kind = self._kind(kernel)
        self._seen[kind].append(seconds / self._analytic.seconds(kernel))
        self._factors[kind] = statistics.median(self._seen[kind])
        self._usual = statistics.median_low([1.0, *self._factors.values()])

    def seconds(self, kernel: Kernel) -> float:
        """The seconds that a kernel may take; as other kinds do, where nothing of its kind was measured."""
        return self._analytic.seconds(kernel) * self._factors.get(self._kind(kernel), self._usual)

    def _kind(self, kernel: Kernel) -> str:
        key = kernel.graph.outputs
        if key not in self._kinds:
            self._kinds[key] = kind(kernel)
        return self._kinds[key]


def kind(kernel: Kernel) -> str:
    """What a kernel is like: the operator that computes most, its rank, and of convolutions the groups, the size, and
    whether channels come in whole blocks, and whether they are brought to the front.
    """
    (root,) = kernel.graph.outputs
    running = [t for t in subterms(root) if not t.is_variable and not isinstance(t.operator, Expand)]
    main = max(running, key=_flops, default=root)
    words = [main.operator.name, str(main.type.rank)]
    if isinstance(main.operator, Conv):
        image, weight = (i.shape for i in main.inputs)
        grouped = main.operator.group > 1
        words.append("depthwise" if grouped and image[1] == main.operator.group else "grouped" if grouped else "dense")
        words.append("points" if all(d == 1 for d in weight[2:]) else "windows")
        words.append("whole blocks" if is_of_whole_blocks(image[1]) else "other channels")
        words.append("rows" if any(map(brings_channels_first, running)) else "images")
    return " ".join(words)


def _flops(term: Term) -> int:
    count = own_flops(term)
    assert isinstance(count, int), f"{count} is still symbolic"
    return count
