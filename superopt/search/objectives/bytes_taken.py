"""The bytes that a model takes, as the objective of a search: those of its weights, or of its activations."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from superopt.cost.child import Child
from superopt.cost.layouts import Place
from superopt.cost.liveness import PeakCost, activations
from superopt.cost.model import Cost
from superopt.cost.peak import peak_of_runs
from superopt.cost.weights import WeightsCost
from superopt.errors import SuperoptError
from superopt.onnx_io import Program, bodies, facts, load, understand
from superopt.search.objectives.objective import LEAST_LESS, Objective, Weighed
from superopt.search.objectives.promises import promise
from superopt.search.settings import Setting
from superopt.search.strategies.found import Found, Outcome

NOT_SLOWER = 1.02
"""How many times the seconds of its start a graph may be predicted to take where bytes are lessened: within this sums
tell nothing, and the whole model decides.
"""


class _Bytes(Objective):
    """Base of the objectives that are counted in bytes."""

    def choose(self, outcome: Outcome, place: Place, until: float = math.inf) -> tuple[Found, float, int]:
        """The least of those that are not predicted to be slower."""
        start, untried = outcome.start, 0
        for found in outcome.best:
            if found.cost * LEAST_LESS >= start.cost:
                continue
            try:
                before, after = (self.machine.cost(f.graph, place=place) for f in (start, found))
            except SuperoptError:  # it cannot be written or run, or no time is left
                untried += 1
                continue
            if after <= NOT_SLOWER * before:
                return found, promise(start, found), untried
        return start, 1.0, untried


class Size(_Bytes):
    """The bytes of a model's weights."""

    by_rows = False

    def cost(self, place: Place) -> Cost:
        """Bytes of weights, wherever the graph stands."""
        return WeightsCost(self.machine.bench.sizes)

    def weigh(self, program: Program, original: Path, candidate: Path, setting: Setting, longest_s: float) -> Weighed:
        """The bytes of the weights of both."""
        before, after = (facts(load(model)).bytes for model in (original, candidate))
        return Weighed(before, after)


class Peak(_Bytes):
    """The bytes of a model's activations, at their most: counted in the search, and measured of whole models."""

    def cost(self, place: Place) -> Cost:
        """Bytes at the peak, wherever the graph stands."""
        return PeakCost(self.machine.bench.sizes)

    def total(self, costs: Iterable[float]) -> float:
        """The most that any piece takes: what others take is free again by then."""
        return max(costs, default=0.0)

    def weigh(self, program: Program, original: Path, candidate: Path, setting: Setting, longest_s: float) -> Weighed:
        """What the runtime takes for both, at most, and of the candidate what its weights take beyond the original's:
        what is held instead of being made in each run takes no less. Raises `RuntimeFailed`.
        """
        first, second = load(original), load(candidate)
        more, changed = max(facts(second).bytes - facts(first).bytes, 0), understand(second)
        expected = activations(program, setting.sizes), activations(changed, setting.sizes)
        within = any(bodies(p) for p in (program, changed))  # what turns take is not counted
        counted = None if within or expected[0] is None or expected[1] is None else (expected[0], expected[1])
        before, after = (self._peak(model, setting, longest_s / 2) for model in (original, candidate))
        return Weighed(before, after + more, counted)

    def _peak(self, model: Path, setting: Setting, longest_s: float) -> int:
        with closing(Child()) as child:  # of its own: what others left behind there would be taken first
            return child.call(longest_s, peak_of_runs, self.machine.bench.runtime, model, setting.draw())
