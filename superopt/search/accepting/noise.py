"""How far rounding alone takes a model on a sample: bounds for ill conditioned ones are told by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from superopt.arithmetic import Array
from superopt.cost.child import Ask
from superopt.cost.runtime import Runtime
from superopt.errors import OutOfTime, SuperoptError
from superopt.onnx_io import neighbours, save_nudged
from superopt.search.accepting.agreement import MOST_NOISE, Sample
from superopt.search.accepting.distance import relative_error, same_special
from superopt.search.accepting.laid import taken
from superopt.search.accepting.runs import Interface, ran


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
        rngs = [np.random.default_rng(self.seed + i) for i in range(len(samples))]
        as_given = [s.feeds for s in samples]
        changed = [{k: neighbours(v, r) for k, v in feeds.items()} for feeds, r in zip(as_given, rngs, strict=True)]
        for where, optimize, feeds in ((self.runtime.standard, False, changed), (self.runtime, True, as_given)):
            _, outputs = self.ask(ran, where, self.model, optimize, self.interface, feeds, self.folder)
            for sample, noisy in zip(samples, outputs, strict=True):
                sample.noisy.append(noisy)

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


def _is_near(changed: Array, expected: Array) -> bool:
    """Whether an output differs by what may be noise: floating-point numbers by little, others by nothing."""
    if not np.issubdtype(expected.dtype, np.floating):
        return np.array_equal(changed, expected)
    return same_special(changed, expected) and relative_error(changed, expected) <= MOST_NOISE
