"""Reports, inspections and rules as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from superopt.inspection import Inspection
from superopt.onnx_io import ModelFacts
from superopt.search.report import Report, Seconds
from superopt.search.strategies.found import INTERRUPTED, OUT_OF_TIME

_MOST_OPERATORS = 12
_MOST_INPUTS = 3
_MOST_REASONS = 3
_TAKEN = {"memory": "memory while it runs", "size": "bytes of weights"}


def optimization(report: Report, source: Path, written: Sequence[Path], left: Sequence[Path] = ()) -> RenderableType:
    """Before and after, what was rewritten, and how the result is known to be right and fast."""
    parts: list[RenderableType] = [_before_and_after(report, source)]
    if report.rewrites:
        parts.append(_rewrites(report))
    # A line stays a line, also in a file or a pipe; a terminal wraps it by itself.
    parts += [Text(line, no_wrap=True, overflow="ignore") for line in _verdict(report, written, left)]
    return Group(*parts)


def inspection(found: Inspection, source: Path) -> RenderableType:
    """What is understood and what is opaque, by operator, and in total."""
    parts: list[RenderableType] = [_shares(found, source)]
    if found.whole.opaque:
        parts.append(_reasons(found))
    parts += [Text(line, no_wrap=True, overflow="ignore") for line in _totals(found)]
    return Group(*parts)


def _shares(found: Inspection, source: Path) -> Table:
    table = Table(title=f"{source.name}", title_justify="left", show_edge=False, pad_edge=False)
    for name in ("operator", "nodes", "understood", "opaque", "flops", "time"):
        table.add_column(name, justify="left" if name == "operator" else "right")
    for g in found.groups:
        shares = (_share(g.flops_share), _share(g.time_share))
        table.add_row(Text(g.operator), *map(str, (g.nodes, g.understood, g.opaque)), *shares)
    return table


def _reasons(found: Inspection) -> Table:
    """The most frequent reasons of each operator; the others are counted."""
    table = Table(title="why opaque", title_justify="left", show_edge=False, pad_edge=False)
    for name in ("nodes", "operator", "reason"):
        table.add_column(name, justify="right" if name == "nodes" else "left", overflow="fold")
    for g in found.groups:
        reasons = list(g.reasons.items())
        for reason, count in reasons[:_MOST_REASONS]:
            table.add_row(str(count), Text(g.operator), Text(reason))
        rest = reasons[_MOST_REASONS:]
        if rest:
            table.add_row(
                str(sum(c for _, c in rest)), Text(g.operator), f"{len(rest)} other reasons, which --json tells"
            )
    return table


def _totals(found: Inspection) -> Iterable[str]:
    whole, known = found.whole, found.known
    of_nodes = f" ({_share(known.nodes / whole.nodes)})" if whole.nodes else ""
    parts = [f"{known.nodes} of {whole.nodes} nodes understood{of_nodes}"]
    if known.flops_share is not None:
        parts.append(f"{'at most ' if whole.opaque else ''}{_share(known.flops_share)} of flops")
    if known.time_share is not None:
        parts.append(f"{'at least ' if known.untimed else ''}{_share(known.time_share)} of time")
    yield ", ".join(parts)
    if found.in_32_bits:
        yield "16-bit floats are computed in 32 bits, as onnxruntime does here: casts stand around all that has 16"
    if found.assumed:
        yield f"symbolic sizes were taken as {' '.join(_first_few(found.assumed))}"
    if whole.seconds is not None and found.added_seconds is not None:
        total = whole.seconds + found.added_seconds
        yield f"time: {total * 1e3:.4g} ms a run, one thread, nothing optimized; medians of {found.runs} runs"
        if found.added_seconds and total:
            added = _share(found.added_seconds / total)
            instead = f", or runs in the place of {whole.untimed} of these" if whole.untimed else ""
            yield f"of it {added} in nodes that the runtime adds{instead}"
    if whole.opaque:
        yield "flops: an opaque node counts as one operation for each element of its results"
    if whole.unsized:
        yield f"flops: the sizes of {whole.unsized} nodes are not known, and they count as none"


def _share(part: float | None) -> str:
    return "?" if part is None else f"{part:.1%}".replace("%", " %")


def _before_and_after(report: Report, source: Path) -> Table:
    before, after = report.original, report.optimized or report.original
    table = Table(title=f"{source.name}", title_justify="left", show_edge=False, pad_edge=False)
    for name in ("", "before", "after"):
        table.add_column(name, justify="right" if name else "left")
    measured = report.measured
    if measured is not None:
        later = measured.optimized if report.optimized is not None else measured.original
        table.add_row("latency", _latency(measured.original), _latency(later) if later else "")
    if (t := report.taken) and report.settings.objective == "memory":
        later_bytes = t.optimized if report.optimized is not None else t.original
        table.add_row("memory of a run", _bytes(t.original), _bytes(later_bytes))
        if t.original_counted is not None and t.optimized_counted is not None:
            counted = t.optimized_counted if report.optimized is not None else t.original_counted
            table.add_row("  by liveness", _bytes(t.original_counted), _bytes(counted))
    table.add_row("weights", _bytes(before.bytes), _bytes(after.bytes))
    table.add_row("nodes", str(before.operators), str(after.operators))
    for name in _operators_of_interest(before, after):
        old, new = before.nodes.get(name, 0), after.nodes.get(name, 0)
        table.add_row(f"  {name}", str(old), str(new), style=None if old == new else "bold")
    for kind, old_types, new_types in (
        ("input", before.inputs, after.inputs),
        ("output", before.outputs, after.outputs),
    ):
        for name in old_types:
            table.add_row(f"{kind} {name}", old_types[name], new_types.get(name, "gone"))
    return table


def _operators_of_interest(before: ModelFacts, after: ModelFacts) -> list[str]:
    """Those whose number changed first, then the most frequent."""
    names = sorted({*before.nodes, *after.nodes}, key=lambda n: -max(before.nodes.get(n, 0), after.nodes.get(n, 0)))
    changed = [n for n in names if before.nodes.get(n, 0) != after.nodes.get(n, 0)]
    return [*changed, *(n for n in names if n not in changed)][:_MOST_OPERATORS]


def _rewrites(report: Report) -> Table:
    table = Table(title="rewrites", title_justify="left", show_edge=False, pad_edge=False)
    for name in ("times", "rewrite", "known", "at"):
        table.add_column(name, justify="right" if name == "times" else "left", overflow="fold")
    for r in report.rewrites:
        known = f"proved by {', '.join(r.by)}" if r.known == "proved" else "definition"
        table.add_row(str(r.times), r.name, known, r.value)
    return table


def _verdict(report: Report, written: Sequence[Path], left: Sequence[Path]) -> Iterable[str]:
    yield from _outcome(report)
    yield from _of_the_model(report)
    yield from _search(report)
    if written:
        target, *weights = written
        beside = f", its weights to {', '.join(file.name for file in weights)}" if weights else ""
        yield f"written to {target}{beside}"
    if left:
        yield f"the weights of the model that was there are left: {', '.join(file.name for file in left)}"


def _outcome(report: Report) -> Iterable[str]:
    """What was measured and compared."""
    m, c = report.measured, report.compared
    if report.outcome != "original" and m is not None and c is not None:
        if t := report.taken:
            yield f"{t.original / max(t.optimized, 1):.3f}x less {_TAKEN[report.settings.objective]}"
        interval = f"95 % interval {m.low:.3f} to {m.high:.3f}"
        at = f"; measured before, {m.measured_at}" if m.remembered else ""
        than = "faster" if report.outcome == "faster" else "as fast"
        where = f" at {m.shapes}" if m.shapes else ""
        pairs = f"{m.sessions} fresh pairs of sessions, {m.runs} runs each{at}"
        yield f"{m.speedup:.3f}x {than}{where} ({interval}; {pairs})"
        if report.way == "rows":
            yield "rows of the batch are computed one after the other"
        if report.way == "floored":
            yield "what is masked has a share next to nothing, and not one that is too small for a number"
        worst = max((o.error for o in c.outputs), default=0.0)
        before = f" and {c.earlier} others before" if c.earlier else ""
        beside = ", and with a 64-bit evaluation of it" if c.reference else ""
        inputs = "1 input" if c.samples == 1 else f"{c.samples} inputs"
        within = f", at {len(c.outputs)} values within it since its outputs show little there" if c.inner else ""
        yield f"compared with the original on {inputs}{before}{beside}{within}: largest relative error {worst:.1e}"
        if c.reason and not c.inner:
            yield f"of the comparison: {c.reason}"
    else:
        yield f"nothing {report.better} was found: {report.reason}; the original comes back unchanged"
        if m is not None and m.optimized is not None:
            yield f"the best candidate measured {m.speedup:.3f}x (95 % interval {m.low:.3f} to {m.high:.3f})"
    for there in report.elsewhere:
        yield f"{there.speedup:.3f}x at {there.shapes} (95 % interval {there.low:.3f} to {there.high:.3f})"


def _of_the_model(report: Report) -> Iterable[str]:
    """What was assumed of it, and what is said of its nodes and values."""
    if sizes := report.settings.assumed:
        taken = " ".join(_first_few(sizes, "--shape "))
        yield f"symbolic sizes were taken as by {taken}; say there what it is to be fast at"
    if report.constants:
        yield f"{report.constants} constants that it made anew in each run are weights now"
    if wrong := report.original.misdeclared:
        yield f"sizes declared of inner values that are not theirs were left out: {_names(wrong)}"
    if report.opaque:
        count = sum(sum(reasons.values()) for reasons in report.opaque.values())
        yield f"{count} nodes are opaque and were carried through: {', '.join(sorted(report.opaque))}"


def _search(report: Report) -> Iterable[str]:
    """How much was searched, and whether more may be found."""
    s = report.searched
    earlier = f" ({s.remembered} of them earlier)" if s.remembered else ""
    joined = f" and {s.joined} joined of them" if s.joined else ""
    yield (
        f"searched {s.graphs} graphs in {s.distinct} distinct of {s.pieces} pieces{joined}{earlier}, measured "
        f"{s.kernels_measured} new kernels, in {s.seconds:.1f} s"
    )
    if INTERRUPTED in s.stopped:
        yield "the search was interrupted, and this is what it had found"
    elif OUT_OF_TIME in s.stopped and report.outcome != "original":
        yield "not all of it was searched to the end; a longer --time may find more"


def _names(values: Sequence[str]) -> str:
    return ", ".join(values[:_MOST_INPUTS]) + (", …" if len(values) > _MOST_INPUTS else "")


def _first_few(sizes: Mapping[str, str], before: str = "") -> Iterable[str]:
    """Inputs and their sizes, and how many there are where these are too many."""
    yield from (f"{before}{name}:{shape}" for name, shape in list(sizes.items())[:_MOST_INPUTS])
    if len(sizes) > _MOST_INPUTS:
        yield f"and so on for {len(sizes)} inputs"


def _latency(time: Seconds) -> str:
    """With those digits that tell: small models take microseconds."""
    half, (unit, scale) = (time.high - time.low) / 2, ("ms", 1e3) if time.seconds >= 1e-3 else ("µs", 1e6)
    return f"{time.seconds * scale:.2f} ± {half * scale:.2f} {unit}"


def _bytes(count: int) -> str:
    return f"{count / 2**20:.2f} MB" if count >= 2**20 else f"{count / 2**10:.1f} kB"
