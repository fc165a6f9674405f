"""What graphs of a piece are expected to gain: what sums of kernels promise, corrected by what was timed whole.

Sums rank badly among the best: a kernel takes some per cent more or less in its place than alone, and was timed at a
moment of its own, so of graphs that promise 1.03 to 1.04 some gain 1.06 and others nothing. But it does so in every
graph that has it, and whole graphs are timed within half a per cent. With a correction for each kernel, normal and by
itself, the logarithms of gains are a Gaussian process, whose covariance is by the kernels that graphs share: so each
that is timed tells of the others, and what is timed next is what may gain most (Srinivas et al., ICML 2010).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from superopt.cost.kernels import Kernel
from superopt.cost.model import Cost
from superopt.search.found import Found
from superopt.term import Term

KERNEL_OFF = 0.05
"""The standard deviation of what a kernel takes in its place, as a share of what it takes alone."""

GRAPH_OFF, NOISE = 0.02, 0.007
"""Those of what a graph gains beyond what its kernels explain, and of timing it whole beside its start."""

LEAST_LEFT = 0.01
"""Of what the start takes, what is left at least: sums and whole times miss each other by a few per cent."""

LEAST_MORE = 0.003
"""Where none may gain this much more than the best, no more are timed."""


class Promises:
    """What graphs are expected to gain over the start. Each may be told of once it was timed whole."""

    def __init__(self, start: Found, graphs: Sequence[Found], cost: Cost) -> None:
        self._graphs, self._told = graphs, dict[int, float]()
        self._left = set(range(len(graphs)))
        self._promised = np.array([math.log(promise(start, found)) for found in graphs])
        self._covariance = _covariance(start, graphs, cost)

    def foremost(self, gain: float) -> Found | None:
        """Which of those that were not timed may gain most; none where no one may gain more than this by much."""
        if not self._left:
            return None
        left = sorted(self._left)
        expected, deviation = self._expected()
        most = (expected + deviation)[left]
        if most.max() < math.log(gain) + LEAST_MORE:
            return None
        number = left[int(most.argmax())]
        self._left.remove(number)
        return self._graphs[number]

    def tell(self, found: Found, gain: float) -> None:
        """Note what a graph gains as a whole."""
        self._told[next(i for i, known in enumerate(self._graphs) if known is found)] = math.log(gain)

    def _expected(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The logarithms of gains with their standard deviations, given what was told."""
        told, variance = list(self._told), self._covariance.diagonal()
        if not told:
            return self._promised, np.sqrt(variance)
        known = self._covariance[np.ix_(told, told)] + NOISE**2 * np.eye(len(told))
        weight = np.linalg.solve(known, self._covariance[told]).T
        missed = np.array(list(self._told.values())) - self._promised[told]
        variance = variance - (weight * self._covariance[told].T).sum(axis=1)
        return self._promised + weight @ missed, np.sqrt(variance.clip(0.0))


def promise(start: Found, found: Found) -> float:
    """How many times faster than the start a graph is by their sums."""
    return start.cost / _seconds(start, found)


def _seconds(start: Found, found: Found) -> float:
    """What a graph takes by its sum, and what is left of it at least."""
    return max(found.cost, LEAST_LEFT * start.cost)


def _covariance(start: Found, graphs: Sequence[Found], cost: Cost) -> NDArray[np.float64]:
    """That of the logarithms of gains over the start, before any is timed."""
    kernels: dict[tuple[Term, ...], float] = {}
    counts = [_counted(found, cost, kernels) for found in (start, *graphs)]
    keys = list(kernels)
    seconds = np.array([kernels[key] for key in keys])
    shares = np.array([[count[key] for key in keys] for count in counts]) * seconds
    own_s = np.array([_seconds(start, found) for found in (start, *graphs)])
    # By how much the logarithm of a gain grows with what each kernel takes more than alone, as a share of that.
    rows = (shares / own_s[:, None])[0] - (shares / own_s[:, None])[1:]
    return np.asarray(KERNEL_OFF**2 * rows @ rows.T + GRAPH_OFF**2 * np.eye(len(graphs)))


def _counted(found: Found, cost: Cost, kernels: dict[tuple[Term, ...], float]) -> Counter[tuple[Term, ...]]:
    """How often a graph has each kernel; the seconds of these are noted."""
    count = Counter[tuple[Term, ...]]()
    for kernel, seconds in cost.breakdown(found.graph):
        kernels[_key(kernel)] = seconds
        count[_key(kernel)] += 1
    return count


def _key(kernel: Kernel) -> tuple[Term, ...]:
    return kernel.graph.outputs
