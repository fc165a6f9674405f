"""What is optimized, and what that came to."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from superopt.cost.bench import Bench
from superopt.cost.inputs import PHOTOGRAPH, Draw, Feeds
from superopt.cost.measured import MeasuredCost
from superopt.cost.whole import around
from superopt.errors import RuntimeFailed
from superopt.onnx_io import Program, opset_of
from superopt.search.accepting.agreement import Agreement
from superopt.search.accepting.judgement import Judgement
from superopt.search.accepting.runs import Once, time_once
from superopt.search.cutting.pieces import Piece
from superopt.search.likely import compared_at
from superopt.search.objectives.objective import Objective, Weighed
from superopt.search.paired import Paired, Timed
from superopt.search.report import Way
from superopt.search.rounds import Harness
from superopt.search.settings import Setting
from superopt.search.strategies.found import Progress, Solved, expected_gain

LATEST = 0.07
"""How much later than the limit what is still measured or compared may end, of the limit: an answer comes within a
tenth of it, and telling, writing and closing take time as well.
"""

LEAST_LONGEST_S = 5.0
"""For so long a model may run, however little time is left."""

ONCE_SHARE = 0.2
"""A model that takes longer than that share of the time that is left to be loaded and run once cannot be compared in
it; it may never end, which is told of where it is compared.
"""


@dataclass
class Attempt:
    """What an optimization came to. `accepted` says whether `candidate` is the answer, `reason` why or why not.

    `solved` are the distinct `pieces`, `joined` what was found for some as one, and `cover` those places of both that
    were chosen; `interrupted` says whether somebody stopped that. `weighed` is what both take in bytes, where that is
    the objective. `pairs` are what both were measured to take, in one setting after the other until it is no gain: by
    an earlier run, where that is known, and otherwise now. `candidates` is how many were measured, this among them.
    `branches` are what those came to that are other branches in the candidate.
    """

    pieces: list[Piece]
    solved: list[Solved] = field(default_factory=list)
    joined: list[Solved] = field(default_factory=list)
    cover: list[Solved] = field(default_factory=list)
    candidate: Path | None = None
    agreement: Agreement | None = None
    earlier: Judgement | None = None
    weighed: Weighed | None = None
    pairs: list[tuple[Setting, Paired]] = field(default_factory=list)
    alone: Timed | None = None
    accepted: bool = False
    reason: str = ""
    search_seconds: float = 0.0
    candidates: int = 1
    interrupted: bool = False
    branches: list[tuple[Program, Attempt]] = field(default_factory=list)

    def expected_gain(self, total: Callable[[Iterable[float]], float]) -> float:
        """How many times less the whole should take, by what its pieces gain."""
        return expected_gain(self.cover, total)

    def again(self, cover: list[Solved]) -> Attempt:
        """The same search before anything was judged, with other places."""
        return Attempt(
            self.pieces,
            self.solved,
            self.joined,
            cover,
            search_seconds=self.search_seconds,
            candidates=self.candidates + 1,
            interrupted=self.interrupted,
        )


@dataclass(frozen=True)
class Trial:
    """What is optimized, and within which bounds: a program whose model lies at `original`.

    Candidates are written into `folder`, and measured beside `working`: the same model, its weights in a file that
    sessions map into memory, as the candidate's are. It is to be better by the `objective` in the first of the
    `settings`, and in none of the others slower; these are those `asked` for, with likely sizes where they leave some
    open. The model takes so many `bytes`; where its values take much, it and candidates are measured `one_by_one`, and
    run while nothing else holds as much. `limit` is in seconds from the `start`, a time of `time.monotonic`. Where it
    is `branched`, the program has other branches than the original, and the settings say for each choice of these
    which run. What `is_branch` is one of another model's, and nobody asks what it takes as it stands. Of the time
    that is left so many seconds are kept for measuring (`kept_s`), as far as that is known; writing and checking a
    candidate takes about `writing_s`, as reading the model did. What the model takes `once` is `timed` for all ways in
    which it is written. Where the program computes in 32 bits what the original does in 16, the model that it is of
    lies at `wide`. In which `way` the model is written is told where a report says so, and known of what was found;
    None where all are to be tried.
    """

    program: Program
    original: Path
    working: Path
    folder: Path
    objective: Objective
    limit: float
    seed: int
    inputs: Sequence[Feeds]
    progress: Progress
    settings: Sequence[Setting] = (Setting(),)
    asked: Sequence[Setting] = (Setting(),)
    one_by_one: bool = False
    bytes: int = 0
    start: float = field(default_factory=time.monotonic)
    branched: bool = False
    is_branch: bool = False
    kept_s: float = 0.0
    writing_s: float = 0.0
    timed: dict[tuple[Path, bool], Once] = field(default_factory=dict)
    wide: Path | None = None
    way: Way | None = None

    def of(self, program: Program, sizes: Mapping[str, int], weights: int, values: int | None, highest: int) -> Trial:
        """The same of another program, of so many bytes of weights and of values, which may be written in an opset as
        high as that: it is measured on the same runtime by the same process.
        """
        bench = replace(
            self.bench,
            opset=opset_of(program.model),
            sizes=sizes,
            highest=highest,
            loses_sizes=program.loses_sizes,
            deadline=math.inf,
        )
        own = MeasuredCost(bench, around(weights, values))
        return replace(self, program=program, objective=type(self.objective)(own))

    @property
    def cost(self) -> MeasuredCost:
        """What measures seconds."""
        return self.objective.machine

    @property
    def bench(self) -> Bench:
        """Where they are measured."""
        return self.cost.bench

    @property
    def compared(self) -> tuple[Setting, ...]:
        """The settings in which a candidate is compared with the original, in turns."""
        return compared_at(self.program, self.settings, self.asked)

    @property
    def choices(self) -> tuple[Trial, ...]:
        """The same, once for each choice of the branches that run: each with its own settings and samples."""
        ways = list(dict.fromkeys(tuple(sorted(setting.deciding.items())) for setting in self.settings))
        if len(ways) == 1:
            return (self,)
        own = [tuple(s for s in self.settings if tuple(sorted(s.deciding.items())) == one) for one in ways]
        return tuple(replace(self, settings=s, inputs=[i for i in self.inputs if s[0].decides_as(i)]) for s in own)

    @property
    def once(self) -> Once:
        """What the model takes as it is given, to be loaded and, where nodes of it are written otherwise, so that its
        pieces do not tell that, for an inference: if it runs, and within its share.
        """
        asked = self.working, self.program.otherwise
        if asked not in self.timed:
            self.timed[asked] = self._once()
        return self.timed[asked]

    def _once(self) -> Once:
        call, runtime = self.bench.child.call, self.bench.runtime
        if self.program.otherwise:
            with suppress(RuntimeFailed):  # that is told where it is compared
                return call(ONCE_SHARE * self.left, time_once, runtime, self.working, self.measured_on(0))
        try:
            return call(self.longest, time_once, runtime, self.working, None)
        except RuntimeFailed:  # what crashes it, or never ends, is told of where kernels are timed
            return Once()

    @property
    def sample(self) -> str:
        """What tells the user's own first sample, which models are measured on, from others; empty without one."""
        if not self.inputs:
            return ""
        total = hashlib.sha256()
        for name, array in sorted(self.inputs[0].items()):
            total.update(f"{name} {array.dtype} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes())
        return total.hexdigest()

    def harness(self, number: int) -> Harness:
        """Where models are measured in a setting, and on what."""
        bench, draw = self.bench, self.measured_on(number)
        return Harness(bench.runtime, self.seed, draw, bench.child, one_by_one=self.one_by_one)

    def measured_on(self, number: int) -> Draw:
        """The inputs that models are measured on in a setting: the user's own first sample, where that is of its sizes;
        else random ones, of which images are smooth as photographs are.
        """
        setting = self.settings[number]
        own = next((sample for sample in self.inputs[:1] if setting.decides_as(sample)), {})
        draw = setting.draw(PHOTOGRAPH)
        shapes = {name: draw.shapes.get(name, array.shape) for name, array in own.items()}
        fits = all(
            len(shape) == own[name].ndim and all(s in (None, d) for s, d in zip(shape, own[name].shape, strict=True))
            for name, shape in shapes.items()
        )
        return replace(draw, given=own) if fits else draw

    @property
    def longest(self) -> float:
        """The seconds after which a model that was to be run a few times now counts as one that never ends."""
        return max(self.left + LATEST * self.limit, LEAST_LONGEST_S)

    @property
    def end(self) -> float:
        """The time of `time.monotonic` at which it is over."""
        return self.start + self.limit

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return max(self.limit - (time.monotonic() - self.start), 0.0)
