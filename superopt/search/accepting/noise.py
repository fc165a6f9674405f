"""How far rounding alone takes a model on a sample: bounds for ill conditioned ones are told by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.cost.child import Ask
from superopt.cost.inputs import Feeds
from superopt.cost.runtime import Runtime
from superopt.errors import OutOfTime, SuperoptError
from superopt.onnx_io import LOGISTIC_ERROR, load, logistic_outputs, neighbours, save_nudged
from superopt.search.accepting.bounds import MOST_NOISE, NOISE_FACTOR
from superopt.search.accepting.distance import relative_error, same_special
from superopt.search.accepting.laid import Value, taken
from superopt.search.accepting.outputs import Sample
from superopt.search.accepting.runs import Interface, ran

JOLTS = 4
"""Runs with inputs moved by as much as counts for noise. What rounding may turn over, one such run turns over in every
second case where it is near enough: as of a tanh of large numbers the sign of one that happens to be small.
"""


@dataclass(frozen=True)
class Noise:
    """Runs a model on samples once more, otherwise, and notes in these what it gives then.

    Others are asked to run it, on its `runtime` or the standard of that; large outputs are laid in the `folder`.
    """

    model: Path
    runtime: Runtime
    interface: Interface
    seed: int
    ask: Ask
    folder: Path

    def of_rounding(self, samples: Sequence[Sample]) -> None:
        """With inputs changed in their last bit, and with the runtime's optimizations."""
        if not samples:
            return
        as_given = [s.feeds for s in samples]
        changed = self._moved(samples, self.seed, 1)
        for where, optimize, feeds in ((self.runtime.standard, False, changed), (self.runtime, True, as_given)):
            for sample, noisy in zip(samples, self._outputs(where, optimize, feeds), strict=True):
                sample.noisy.append(noisy)

    def of_jolts(self, samples: Sequence[Sample]) -> None:
        """With inputs moved by as many last bits as noise counts times: what changes by much then, rounding decides."""
        for turn in range(JOLTS if samples else 0):
            moved = self._moved(samples, self.seed + (1 + turn) * len(samples), int(NOISE_FACTOR))
            for sample, jolted in zip(samples, self._outputs(self.runtime.standard, False, moved), strict=True):
                sample.jolted.append(jolted)

    def _moved(self, samples: Sequence[Sample], seed: int, steps: int) -> list[Feeds]:
        rngs = [np.random.default_rng(seed + i) for i in range(len(samples))]
        return [{k: neighbours(v, r, steps) for k, v in s.feeds.items()} for s, r in zip(samples, rngs, strict=True)]

    def _outputs(self, where: Runtime, optimize: bool, feeds: Sequence[Feeds]) -> list[list[Value]]:
        return self.ask(ran, where, self.model, optimize, self.interface, feeds, self.folder)[1]

    def of_logistic(self, samples: Sequence[Sample]) -> None:
        """With what logistic functions give in 32 bits moved, by so much that what counts for noise is that two models
        are off in opposite directions: near 0 that is much.
        """
        names = logistic_outputs(load(self.model)) if samples else set()
        moved = [a.name in names for a in self.interface[1]]
        for sample in samples if any(moved) else ():
            sample.noisy.append([_off(e) if m else e for e, m in zip(sample.expected, moved, strict=True)])

    def of_weights(self, samples: Sequence[Sample]) -> None:
        """With weights changed in their last bit, where inputs have none: a norm of tokens that are nearly all alike
        may differ by a thousandth. What changes by more, or does not run then, decides by a weight what it computes:
        that is no noise.
        """
        if not samples or any(np.issubdtype(v.dtype, np.floating) for s in samples for v in s.feeds.values()):
            return
        changed, feeds = self.folder / "nudged.onnx", [s.feeds for s in samples]
        try:
            save_nudged(self.model, changed, self.seed)
            _, outputs = self.ask(ran, self.runtime.standard, changed, False, self.interface, feeds, self.folder)
        except OutOfTime:
            raise
        except SuperoptError:
            return
        for sample, noisy in zip(samples, outputs, strict=False):  # none, where the interface is another
            if all(_is_near(taken(n), taken(e)) for n, e in zip(noisy, sample.expected, strict=True)):
                sample.noisy.append(noisy)


def _off(value: Value) -> Value:
    """What a logistic function gave, as far off as it may be."""
    off = np.float32(2 * LOGISTIC_ERROR / NOISE_FACTOR)
    return taken(value) + off if value.dtype == np.float32 else value


def _is_near(changed: Array, expected: Array) -> bool:
    """Whether an output differs by what may be noise: floating-point numbers by little, others by nothing."""
    if not np.issubdtype(expected.dtype, np.floating):
        return np.array_equal(changed, expected)
    return same_special(changed, expected) and relative_error(changed, expected) <= MOST_NOISE
