"""The report of an optimization: a value that prints as JSON and reads back, with every claim and how it is known."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from superopt.onnx_io import ModelFacts
from superopt.versioned import read_versioned

Way = Literal["rows", "floored", "apart", "whole"]
"""How a model is written: with rows of its batch one after the other, with a floor below what is masked, with what can
be computed apart from the turns of its loops, or as it stands.
"""


class Part(BaseModel):
    """Base of the parts of a report: immutable, and nothing in it that is not declared."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")  # null would not read back


class Seconds(Part):
    """A measured time, with its 95 % interval."""

    seconds: float
    low: float
    high: float


class Measured(Part):
    """The original and the optimized model, run in turns in fresh sessions; `speedup` is original over optimized.

    `shapes` are the sizes of the inputs, where some were asked for. `remembered` says that the same two files were
    measured by an earlier run, at `measured_at` (ISO 8601, UTC), and not again.
    """

    original: Seconds
    optimized: Seconds | None
    speedup: float
    low: float
    high: float
    sessions: int
    runs: int
    shapes: str
    measured_at: str
    remembered: bool


class Taken(Part):
    """What was to be lessened, in bytes, of both models: all weights, or the most memory that the runtime was measured
    to take while it runs them.

    The other two are the most that activations take by liveness, where that is what was measured and sizes are known.
    """

    original: int
    optimized: int
    original_counted: int | None
    optimized_counted: int | None


class MeasuredAt(Part):
    """Both models at other sizes of the inputs, given as text such as `x:8,128`."""

    shapes: str
    speedup: float
    low: float
    high: float


class Rewritten(Part):
    """A rewrite that the optimized model contains: at `value` (the nearest named value), `times` times, in the `piece`
    of a solution.

    `known` is *proved* (by z3, from the laws in `by`, for all sizes) or *definition* (what the operator means).
    """

    name: str
    known: Literal["proved", "definition"]
    by: tuple[str, ...]
    before: str
    after: str
    value: str
    times: int
    piece: str
    gain: float | None = None
    """How many times less the piece takes that it stands in, by all of its rewrites together."""


class Solution(Part):
    """A piece and what replaces it, as text, at so many places; `gain` is how many times less that takes, of time as it
    was measured, there or in pieces that are alike, or of what else was the objective, and `saved` how many seconds or
    bytes less at each place.

    `superopt replay` puts it in place again, wherever a piece has the same fingerprint (`piece`); where two overlap,
    those that save most together. `text` is None where it has none.
    """

    text: str | None
    piece: str
    places: int
    gain: float
    saved: float


class OutputError(Part):
    """How far one output is from the original's, relative to its largest magnitude, and how far that was allowed.

    The other two errors are against a 64-bit evaluation of the original, where there was one.
    """

    name: str
    error: float
    bound: float
    original_error: float | None
    optimized_error: float | None


class Compared(Part):
    """The floating-point comparison with the original: on how many inputs, and the errors found.

    `earlier` counts other inputs, on which an earlier run found that the same two files agree. Where the `outputs` of
    the model show little they are `inner` values instead, all of those that were rewritten.
    """

    agrees: bool
    examined: bool
    reason: str
    inner: bool = False
    samples: int
    earlier: int
    reference: bool
    outputs: tuple[OutputError, ...]


class Searched(Part):
    """What the search did, in the `distinct` ones of all pieces and in those that were `joined` of several; of both, so
    many were `remembered` from earlier searches.
    """

    pieces: int
    distinct: int
    joined: int
    remembered: int
    graphs: int
    kernels_measured: int
    seconds: float
    stopped: tuple[str, ...]


class Predicted(Part):
    """What the pieces of the model come to, in seconds: as they stand by sums of measured kernel times, and each of
    those that were replaced by how many times faster it is taken to be: as it was measured, whole, or where it was not,
    by what sums promise.
    """

    original: float
    optimized: float


class Settings(Part):
    """With what the optimization was asked for; `assumed` are the sizes of inputs that nobody said, where some are
    symbolic.
    """

    objective: str
    time: float
    threads: int
    strategy: str
    alpha: float
    seed: int
    definitions: bool
    runtime: str
    shapes: dict[str, str]
    assumed: dict[str, str] = {}
    rules: tuple[str, ...]


class Versions(Part):
    """With what it was done."""

    superopt: str
    runtime: str
    device: str
    onnx: str


FORMAT = 7
"""Of the report; 1 had no solutions and no strategy, 2 did not say which pieces were remembered, 3 not when models were
measured, 4 had no objective but latency, 5 no pieces that overlap, 6 did not say in which piece a rewrite is.
"""


class Report(Part):
    """Everything about one optimization. `outcome` is *smaller* where bytes were to be lessened, and *original* where
    nothing better was found, for `reason`. `predicted` is there where time was. `constants` counts the values that the
    original makes anew in each run, though they are constant, and the optimized model has as weights; `way` is how
    the model was written that it was found of, where that is known.
    """

    format: int = FORMAT
    outcome: Literal["faster", "smaller", "original"]
    reason: str
    original: ModelFacts
    optimized: ModelFacts | None
    understood: int
    opaque: dict[str, dict[str, int]]
    rewrites: tuple[Rewritten, ...]
    solutions: tuple[Solution, ...]
    constants: int = 0
    way: Way | None = None
    predicted: Predicted | None
    taken: Taken | None
    measured: Measured | None
    elsewhere: tuple[MeasuredAt, ...]
    compared: Compared | None
    searched: Searched
    settings: Settings
    versions: Versions

    @property
    def better(self) -> str:
        """What was looked for: something faster, or smaller."""
        return "faster" if self.settings.objective == "latency" else "smaller"


def read_report(path: Path, text: bytes) -> Report:
    """The report in a file. Raises `UsageError` for what is none, or one of another format."""
    return read_versioned(path, text, Report, FORMAT, "report", "superopt optimize --report")
