"""Where graphs are timed: on one runtime, by one process at a time, until a deadline, as parts of one model."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from superopt.cost.child import Child, Unending
from superopt.cost.domains import unfolded
from superopt.cost.lane import measuring
from superopt.cost.runtime import Runtime
from superopt.cost.sizes import concretize
from superopt.cost.table import Table
from superopt.cost.timing import Key, Timing
from superopt.cost.whole import Undeclared, Unwritable, written
from superopt.errors import OutOfTime
from superopt.onnx_io import DrawnWeights, needed_opset
from superopt.operators.nodes import concrete
from superopt.term import Graph, Term

T = TypeVar("T")

LONGEST_S = 30.0
"""What has not been timed by then is taken as never ending."""

UNDECLARED = " of sizes that are not declared"
"""How the table tells what was timed so."""


@dataclass
class Bench:
    """What a graph's times depend on, and where they are kept.

    `opset` is the model's, `highest` the one that a graph may have where it needs a newer one; `sizes` gives symbolic
    dimensions. `loses_sizes` says that the runtime does not know in the model the sizes that are symbolic, and fuses
    less. `deadline` is a time of `time.monotonic`, past which nothing more is measured. Graphs run in a process of
    their own, the `child`, over `weights`. `unwritable` says why nothing could be written to be timed, if that was so,
    and `waited_s` in how many seconds others measured.
    """

    runtime: Runtime
    table: Table
    opset: int
    sizes: Mapping[str, int] = field(default_factory=dict)
    highest: int = 0
    loses_sizes: bool = False
    deadline: float = math.inf
    lock_directory: Path | None = None
    child: Child = field(default_factory=Child)
    weights: DrawnWeights = field(default_factory=DrawnWeights)
    unwritable: str = field(default="", init=False)
    waited_s: float = field(default=0.0, init=False)
    _key: Key = field(init=False)

    def __post_init__(self) -> None:
        """The runtime's key takes a while to be found."""
        self._key = self.runtime.key

    def known(self, signature: str) -> Timing | None:
        """What the table has."""
        return self.table.get(self._key, signature)

    def keep(self, signature: str, timing: Timing) -> None:
        """Put a timing into the table."""
        self.table.put(self._key, signature, timing)

    def sized(self, graph: Graph, plain: set[Term] | None = None) -> Graph:
        """A graph as it is timed: of the model's sizes; `plain` are terms that are known to need nothing else."""
        return unfolded(concretize(graph, self.sizes), plain)

    def held_back(self, *graphs: Graph) -> str:
        """What tells graphs that need a newer opset than the model may have: there they run otherwise, or not."""
        most = max(self.opset, self.highest)
        needed = max(needed_opset(graph.outputs, (), self.opset) for graph in graphs)
        return f" in opset {most}" if needed > most else ""

    @contextmanager
    def lane(self, what: str) -> Iterator[None]:
        """Within it nobody else measures; another process may have measured the same while this one waited.

        Raises `OutOfTime` where the deadline passes before.
        """
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime(f"no time is left to measure {what}")
        start = time.monotonic()
        with ExitStack() as held:
            try:
                held.enter_context(measuring(self.lock_directory, left))
            finally:
                self.waited_s += time.monotonic() - start
            yield

    @contextmanager
    def written(self, graphs: Sequence[Graph], undeclared: Undeclared | None = None) -> Iterator[list[Path]]:
        """Graphs as models of their own, in files that are there within the block. Raises as `whole.written` does."""
        try:
            with written(graphs, self.opset, self.weights, self.highest, undeclared) as models:
                yield models
        except Unwritable as error:
            self.unwritable = str(error)
            raise

    def apart(self, what: str, function: Callable[..., T], *arguments: object) -> T:
        """What a function of a runtime, and of more, gives in the process for measuring.

        Raises what it does, and `OutOfTime` at the deadline.
        """
        left = self.deadline - time.monotonic()
        try:
            return self.child.call(min(LONGEST_S, max(left, 0.0)), function, self.runtime, *arguments)
        except Unending:
            if left > LONGEST_S:
                raise
            raise OutOfTime(f"no time is left to measure {what}") from None


def told(graph: Graph, axes: Undeclared) -> dict[str, tuple[int, ...]]:
    """The shapes of inputs whose model does not tell all of them."""
    return {v.label: concrete(v.shape, "input") for v in graph.inputs if v.label in axes}
