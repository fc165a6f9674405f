"""The report of an attempt: what was tried, found, compared and measured, with how each is known."""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from collections.abc import Sequence

from superopt.cost.measured import MeasuredCost
from superopt.demands import assuming
from superopt.onnx_io import ModelFacts, Program, hidden_constants
from superopt.search import report as parts
from superopt.search.accepting.agreement import Agreement
from superopt.search.accepting.judgement import Judgement, now
from superopt.search.accepting.trial import Attempt
from superopt.search.brief import brief_text
from superopt.search.cutting.pieces import Piece
from superopt.search.objectives.objective import Weighed
from superopt.search.paired import Timed
from superopt.search.rewriting.rewrites import Known
from superopt.search.solving.solution import solution_text
from superopt.search.strategies.found import Solved, taken_as_they_stand
from superopt.term import Term, replace

VERSION = importlib.metadata.version("superopt")


def report_of(
    tried: Attempt,
    before: ModelFacts,
    after: ModelFacts | None,
    program: Program,
    cost: MeasuredCost,
    settings: parts.Settings,
    shapes: str,
    way: parts.Way | None = None,
) -> parts.Report:
    """What was tried and found; `after` is None where the original comes back, `shapes` at which sizes
    it was measured, and in which `way` it was written.
    """
    attempts = [tried, *(branch for _, branch in tried.branches)]
    programs = [program, *(branch for branch, _ in tried.branches)]
    searched = [solved for one in attempts for solved in (*one.solved, *one.joined)]
    key = cost.bench.runtime.key
    return parts.Report(
        outcome="original" if after is None else "smaller" if tried.weighed else "faster",
        reason=tried.reason,
        original=before,
        optimized=after,
        understood=sum(one.summary.understood for one in programs),
        opaque=_opaque(programs),
        rewrites=tuple(_rewritten([s for one in attempts for s in one.cover])) if after is not None else (),
        solutions=_solutions(attempts) if after is not None else (),
        constants=sum(len(hidden_constants(one)) for one in programs) if after is not None else 0,
        way=way,
        predicted=_predicted(tried) if settings.objective == "latency" else None,
        taken=None if tried.weighed is None else _taken(tried.weighed),
        measured=_measured(tried, shapes),
        elsewhere=tuple(
            parts.MeasuredAt(shapes=str(setting), speedup=p.ratio, low=p.low, high=p.high)
            for setting, p in tried.pairs[1:]
        ),
        compared=None if tried.agreement is None else _compared(tried.agreement, tried.earlier),
        searched=parts.Searched(
            pieces=sum(len(one.pieces) for one in attempts),
            distinct=sum(len(one.solved) for one in attempts),
            joined=sum(len(one.joined) for one in attempts),
            remembered=sum(s.remembered for s in searched),
            graphs=sum(s.outcome.seen for s in searched),
            kernels_measured=cost.alone.measured,
            seconds=sum(one.search_seconds for one in attempts),
            stopped=tuple(s.outcome.reason for s in searched),
        ),
        settings=settings,
        versions=parts.Versions(
            superopt=VERSION,
            runtime=f"{key.runtime} {key.version}",
            device=key.device,
            onnx=importlib.metadata.version("onnx"),
        ),
    )


def _opaque(programs: Sequence[Program]) -> dict[str, dict[str, int]]:
    """Why nodes are opaque, those of branches too."""
    found: dict[str, dict[str, int]] = {}
    for program in programs:
        for operator, reasons in program.summary.opaque.items():
            for reason, count in reasons.items():
                own = found.setdefault(operator, {})
                own[reason] = own.get(reason, 0) + count
    return found


def _solutions(attempts: Sequence[Attempt]) -> tuple[parts.Solution, ...]:
    """What replaces pieces; a piece that stands in several branches is told once."""
    found: dict[str, parts.Solution] = {}
    for s in (s for one in attempts for s in one.cover if s.gain > 1.0):
        piece, places = s.places[0].fingerprint, len(s.places)
        places += found[piece].places if piece in found else 0
        found[piece] = parts.Solution(text=_text(s), piece=piece, places=places, gain=s.gain, saved=s.saved)
    return tuple(found.values())


def _text(solved: Solved) -> str | None:
    piece = solved.places[0].canonical
    return solution_text(piece.outputs, solved.winner.graph.outputs, piece.inputs)


def _predicted(tried: Attempt) -> parts.Predicted | None:
    if not tried.cover:
        return None
    before = taken_as_they_stand(tried.cover)
    return parts.Predicted(original=before, optimized=before / tried.expected_gain(sum))


def _taken(weighed: Weighed) -> parts.Taken:
    counted = weighed.counted or (None, None)
    return parts.Taken(
        original=weighed.original,
        optimized=weighed.candidate,
        original_counted=counted[0],
        optimized_counted=counted[1],
    )


def _measured(tried: Attempt, shapes: str) -> parts.Measured | None:
    alone, earlier = tried.alone, tried.earlier
    if tried.pairs:
        paired = tried.pairs[0][1]
        return parts.Measured(
            original=_seconds(paired.original),
            optimized=_seconds(paired.candidate),
            speedup=paired.ratio,
            low=paired.low,
            high=paired.high,
            sessions=paired.sessions,
            runs=paired.runs,
            shapes=shapes,
            measured_at=earlier.measured_at if earlier else now(),
            remembered=earlier is not None,
        )
    if alone is None:
        return None
    return parts.Measured(
        original=_seconds(alone),
        optimized=None,
        speedup=1.0,
        low=1.0,
        high=1.0,
        sessions=alone.sessions,
        runs=alone.runs,
        shapes=shapes,
        measured_at=now(),
        remembered=False,
    )


def _seconds(latency: Timed) -> parts.Seconds:
    return parts.Seconds(seconds=latency.seconds, low=latency.low, high=latency.high)


def _compared(agreement: Agreement, earlier: Judgement | None) -> parts.Compared:
    outputs = tuple(
        parts.OutputError(
            name=o.name,
            error=o.error,
            bound=o.bound,
            original_error=o.original_error,
            optimized_error=o.candidate_error,
        )
        for o in agreement.outputs
    )
    return parts.Compared(
        agrees=agreement.agrees,
        examined=agreement.examined,
        reason=agreement.reason,
        inner=agreement.inner,
        samples=agreement.samples,
        earlier=earlier.samples if earlier else 0,
        reference=any(o.original_error is not None for o in outputs),
        outputs=outputs,
    )


def _rewritten(solved: Sequence[Solved]) -> list[parts.Rewritten]:
    """The rewrites that winning pieces contain, equal ones counted together."""
    counted: Counter[tuple[str, Known, tuple[str, ...], str, str, str, str, float]] = Counter()
    for s in solved:
        if s.gain > 1.0:
            back, piece = {v: k for k, v in s.places[0].renaming.items()}, s.places[0].fingerprint
            for step in s.winner.steps:
                value = _nearest(s.places[0], step.before, back)
                texts = brief_text(step.before), brief_text(step.after)
                key = (step.name, step.known, step.by, *texts, value, piece, s.gain)
                counted[key] += len(s.places)
    return [
        parts.Rewritten(name=n, known=k, by=by, before=b, after=a, value=v, times=c, piece=p, gain=g)
        for (n, k, by, b, a, v, p, g), c in counted.items()
    ]


def _nearest(piece: Piece, before: Term, back: dict[Term, Term]) -> str:
    """The name of the value that a term is in the original; that of the piece's first output where it is none."""
    with assuming():  # what was assumed of symbolic sizes when the piece was read
        (value,) = piece.hidden((replace(before, back),))
        return piece.origins.get(value, piece.names[0])
