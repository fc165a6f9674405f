"""A report as a page of HTML: what was rewritten, before and after as pictures, by which rule, and what it gained.

The page needs nothing but a browser: pictures are SVG within it, styles too.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from superopt.search.report import Report, Rewritten, Solution
from superopt.text import Atom, Form, Sexp, read, show

DEPTH = 5
"""How many operators below each other are drawn; what lies deeper is not what was rewritten."""

_WIDE, _HIGH, _GAP, _CHARACTER = 30, 26, 46, 6.6
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse } td, th { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top }
section { border-top: 1px solid #ccc; margin-top: 1.5rem } .sides { display: flex; flex-wrap: wrap; gap: 2rem }
figure { margin: 0; overflow-x: auto; max-width: 100% } figcaption { color: #666 } svg text { font: 11px monospace }
rect { fill: #eef4ff; stroke: #88a } rect.leaf { fill: #f7f7f7; stroke: #bbb } line { stroke: #999 }
code { font-size: 13px }
"""


def explanation(report: Report, title: str) -> str:
    """The page."""
    rewrites = "\n".join(_rewrite(number, r) for number, r in enumerate(report.rewrites, start=1))
    pieces = "\n".join(_piece(s) for s in report.solutions)
    came_back = ": the original came back unchanged" if report.outcome == "original" else ""
    nothing = "" if report.rewrites else f"<p>No rewrite was applied{came_back}.</p>"
    gains = f"<h2>Pieces</h2><table><tr><th>places</th><th>gain of each</th></tr>{pieces}</table>" if pieces else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style></head>
<body><h1>{escape(title)}</h1>
<p>{escape(_verdict(report))}</p>
{_facts(report)}
{gains}
<h2>Rewrites</h2>{nothing}
{rewrites}
</body></html>
"""


def _verdict(report: Report) -> str:
    m = report.measured
    if report.outcome == "smaller" and m is not None and (t := report.taken):
        less = f"{t.original / max(t.optimized, 1):.3f} times less {report.settings.objective}"
        return f"{less}, and {m.speedup:.3f} times as fast ({m.low:.3f} to {m.high:.3f}); {report.reason}."
    if report.outcome == "faster" and m is not None:
        return f"{m.speedup:.3f} times faster (95 % interval {m.low:.3f} to {m.high:.3f}); {report.reason}."
    return f"Nothing {report.better} was found: {report.reason}."


def _facts(report: Report) -> str:
    rows = [("runtime", report.versions.runtime), ("device", report.versions.device)]
    if report.measured is not None and report.measured.shapes:
        rows.append(("at sizes", report.measured.shapes))
    if assumed := report.settings.assumed:
        rows.append(("symbolic sizes taken as", " ".join(f"{name}:{shape}" for name, shape in assumed.items())))
    if report.constants:
        rows.append(("made anew in each run before, and weights now", f"{report.constants} constants"))
    if report.compared is not None:
        worst = max((o.error for o in report.compared.outputs), default=0.0)
        at = f" at {len(report.compared.outputs)} values within the model" if report.compared.inner else ""
        rows.append(("compared", f"on {report.compared.samples} inputs{at}; largest relative error {worst:.2g}"))
    return f"<table>{''.join(f'<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>' for k, v in rows)}</table>"


def _piece(solution: Solution) -> str:
    return f"<tr><td>{solution.places}</td><td>{solution.gain:.3f}×</td></tr>"


def _rewrite(number: int, r: Rewritten) -> str:
    if r.known == "proved":
        known = f"proved by Z3 for all sizes, from {', '.join(r.by) or 'congruence alone'}"
    else:
        known = "a definition: what the operator means"
    if r.before == r.after:
        known = "nothing is rewritten, but it is written in other nodes than it was read from"
    gain = "" if r.gain is None else f" The piece that it stands in takes {r.gain:.3f} times less, by all its rewrites."
    sides = "".join(
        f"<figure><figcaption>{side}</figcaption>{_picture(text)}</figure>"
        for side, text in (("before", r.before), ("after", r.after))
    )
    return f"""<section><h3>{number}. {escape(r.name)}</h3>
<p>{r.times} time{"s" if r.times > 1 else ""}, at or before <code>{escape(r.value)}</code>; {escape(known)}.{gain}</p>
<div class="sides">{sides}</div></section>"""


@dataclass(frozen=True)
class _Box:
    """A node of a picture: what it says, what stands under it, and how wide all of that is."""

    label: str
    below: tuple[_Box, ...]

    @property
    def own(self) -> float:
        return _WIDE + _CHARACTER * len(self.label)

    @property
    def width(self) -> float:
        return max(self.own + 12, sum(b.width for b in self.below))


def _picture(text: str) -> str:
    (term,) = read(text)
    root = _box(term, DEPTH)
    lines: list[str] = []
    high = _draw(root, 0.0, 0, lines)
    return f'<svg width="{root.width:.0f}" height="{high:.0f}" role="img">{"".join(lines)}</svg>'


def _box(term: Sexp, depth: int) -> _Box:
    if not isinstance(term, Form):
        return _Box(show(term), ())
    said = [show(i) for i in term.items if not _is_input(i)]
    inputs = [i for i in term.items[1:] if _is_input(i)]
    if depth == 1 and inputs:
        return _Box(f"{term.head} …", ())
    return _Box(" ".join(said), tuple(_box(i, depth - 1) for i in inputs))


def _is_input(item: Sexp) -> bool:
    """Whether an item of a term is another term: a variable, or a form that begins with the name of an operator."""
    if isinstance(item, Form):
        first = item.items[0] if item.items else None
        return isinstance(first, Atom) and isinstance(first.value, str) and first.value[:1].isalpha()
    return isinstance(item.value, str) and item.value.startswith("?")


def _draw(box: _Box, left: float, level: int, lines: list[str]) -> float:
    """Add a box and all under it, from the left on; gives how high the picture is."""
    middle, top = left + box.width / 2, level * _GAP + 4
    high: float = top + _HIGH + 4
    start = left + (box.width - sum(b.width for b in box.below)) / 2
    for below in box.below:
        at = start + below.width / 2
        lines.append(f'<line x1="{middle:.0f}" y1="{top + _HIGH}" x2="{at:.0f}" y2="{top + _GAP}"/>')
        high = max(high, _draw(below, start, level + 1, lines))
        start += below.width
    kind = "" if box.below else ' class="leaf"'
    lines.append(
        f'<rect{kind} x="{middle - box.own / 2:.0f}" y="{top}" width="{box.own:.0f}" height="{_HIGH}" rx="4"/>'
        f'<text x="{middle:.0f}" y="{top + 17}" text-anchor="middle">{escape(box.label)}</text>'
    )
    return high
