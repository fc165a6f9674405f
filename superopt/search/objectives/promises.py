"""What graphs of a piece are expected to gain: what sums of kernels promise, corrected by what was timed whole.

Sums rank badly among the best: a kernel takes some per cent more or less in its place than alone, and was timed at a
moment of its own, so of graphs that promise 1.03 to 1.04 some gain 1.06 and others nothing. But it does so in every
graph that has it, and whole graphs are timed within a per cent or so. With a correction for each kernel, normal and by
itself, the logarithms of gains are a Gaussian process, whose covariance is by the kernels that graphs share: so each
that is timed tells of the others, and what is timed next is what may gain most (Srinivas et al., ICML 2010).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from superopt.cost.model import Cost
from superopt.search.strategies.found import Found
from superopt.term import Term

KERNEL_OFF = 0.05
"""The standard deviation of what a kernel takes in its place, as a share of what it takes alone. This and the next two
are those by which most was gained in fewest timings on the graphs of decision 198.
"""

GRAPH_OFF, NOISE = 0.02, 0.007
"""Those of what a graph gains beyond what its kernels explain, and of timing it whole beside its start."""

LEAST_MORE = 0.003
"""Where none may gain this much more than the best, no more are timed."""

LEAST_LEFT = 0.01
"""Of what the start takes, what is left at least: sums and whole times miss each other by a few per cent."""


class Promises:
    """What graphs are expected to gain over the start. Each is told of once it was timed whole."""

    def __init__(self, start: Found, graphs: Sequence[Found], cost: Cost) -> None:
        self._graphs, self._told = graphs, dict[int, float]()
        self._left = set(range(len(graphs)))
        self._promised = np.array([math.log(promise(start, found)) for found in graphs])
        self._covariance = _covariance(start, graphs, cost)

    def foremost(self, gain: float) -> Found | None:
        """Which of those that nothing was told of may gain most; none where no one may gain more than this by much."""
        if not self._left:
            return None
        left = sorted(self._left)
        expected, deviation = self._expected()
        most = (expected + deviation)[left]
        return None if most.max() < math.log(gain) + LEAST_MORE else self._graphs[left[int(most.argmax())]]

    def tell(self, found: Found, gain: float | None) -> None:
        """Note what a graph gains as a whole; None where it could not be timed."""
        number = next(i for i in self._left if self._graphs[i] is found)
        self._left.remove(number)
        if gain is not None:
            self._told[number] = math.log(gain)

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
    """How many times faster than the start a graph is by their sums; as fast where the start takes nothing."""
    return start.cost / _seconds(start, found) if start.cost else 1.0


def _seconds(start: Found, found: Found) -> float:
    """What a graph takes by its sum, and what is left of it at least."""
    return max(found.cost, LEAST_LEFT * start.cost)


def _covariance(start: Found, graphs: Sequence[Found], cost: Cost) -> NDArray[np.float64]:
    """That of the logarithms of gains over the start, before any is timed."""
    shares = [_shares(start, found, cost) for found in (start, *graphs)]
    keys = list(dict.fromkeys(key for own in shares for key in own))
    before, *after = np.array([[own.get(key, 0.0) for key in keys] for own in shares])
    # By how much the logarithm of a gain grows where each kernel takes twice as long in its place.
    grows = before - np.array(after).reshape(len(graphs), len(keys))
    return np.asarray(KERNEL_OFF**2 * grows @ grows.T + GRAPH_OFF**2 * np.eye(len(graphs)))


def _shares(start: Found, found: Found, cost: Cost) -> dict[tuple[Term, ...], float]:
    """What share of a graph's seconds each of its kernels takes, those that are alike together."""
    shares, whole_s = defaultdict[tuple[Term, ...], float](float), _seconds(start, found)
    for kernel, seconds in cost.breakdown(found.graph):
        shares[kernel.graph.outputs] += seconds / whole_s if whole_s else 0.0
    return shares
