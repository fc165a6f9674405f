"""`python -m benchmarks.rules_page FOLDER` writes `docs/rules.md`: how the shipped rules were found, from what
`superopt rules generate --json` said of each family, and the rules used most, from what `benchmarks.uses` counted.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from superopt.enumerate.family_text import load_family, shipped_families
from superopt.rules.format import load_rules, print_rule
from superopt.rules.picture import flowchart

PAGE = Path(__file__).parents[1] / "docs" / "rules.md"
USES = PAGE.with_name("rule-uses.json")
SHOWN = 20
"""How many of the rules used most are drawn."""

COLUMNS = {
    "family": "family",
    "operators": "complete to operators",
    "graphs": "graphs represented",
    "evaluated": "evaluated",
    "equal to another": "candidates",
    "up to names": "up to names",
    "follow from no smaller": "that follow from no smaller ones",
    "from no others: the basis": "that follow from no others",
    "at all ranks": "at all ranks",
    "directed": "directed, shared parts abstracted",
    "proved": "proved",
    "under a condition": "proved under a condition",
    "refuted": "refuted",
    "unknown": "unknown",
    "decided, %": "decided",
    "of two outputs": "of two outputs, proved",
    "no instance of another": "instances of no other rule",
    "take more than three steps": "not replayed, of all equations",
    "of two, uphill": "of two rules, uphill, proved",
    "macros": "rules",
    "seconds": "seconds",
    "GB": "GB",
}

TEXT = """# How the rules were found

`make rules` enumerates every family, proves what is found, and writes this page.
A family says what terms are made of, as text: `superopt/enumerate/families/`. What a column counts:

- **graphs**: expression trees of so many operators, each of which has the value of a term that was evaluated.
  Graphs in which a result has several users come on top.
- **evaluated**: applications of operators to terms that stand for their values; of the last level one of all
  renamings.
- **equal to another**: those whose value another had before, and of these **up to names**.
- **follow from no smaller**: equations that connect what those kept before do not, in the classes of equal terms;
  **the basis** is those that follow from none at all, special cases of larger ones left out.
- **directed**: the basis as rewrites, at each combination of ranks; **proved** in their most general form by Z3, or
  **under a condition** that was learned (–: not tried then), **refuted** by an example or a witness, or **unknown**;
  **decided** is the share of the directed that is not unknown.
- **take more than three steps**: of all equations but point-wise ones, and of terms with themselves renamed,
  directed, those that three steps of the rules proved so far do not replay; they are proved too.
- **of two, uphill**: what two rewrites are together where the first leads to much more work than the second leaves, so
  that no search would take it (`superopt/enumerate/overlaps.py`); proved as well.
- **macros**: the rules that are written: of all that are proved, those that no three directed steps of the others (and
  of the families above) replay. A rule about tensors of any rank is one.

How far TASO's own operators are enumerated, and how fast: [level by level](enumeration.md).

"""


def main(folder: Path) -> None:
    """Write the page."""
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
    for counts in found.values():
        counts["decided"] = round(100 * (1 - counts["unknown"] / counts["directed, shared parts abstracted"]), 1)
    order = sorted(found, key=lambda name: (folder / f"{name}.json").stat().st_mtime)
    lines = [f"| {' | '.join(COLUMNS)} |", f"| {' | '.join(['---'] + ['---:'] * (len(COLUMNS) - 1))} |"]
    for name in order:
        cells = [found[name].get(key, "–") for key in COLUMNS.values()]
        lines.append(f"| {' | '.join(f'{c:,}' if isinstance(c, int) else str(c) for c in cells)} |")
    rules = sum(len(load_rules(path).rules) for path in folder.glob("*.rules"))
    seconds = sum(f["seconds"] for f in found.values())
    total = f"\n{rules:,} rules of {len(found)} families, in {seconds / 60:.1f} minutes on 2 cores.\n\n"
    PAGE.write_text(TEXT + "\n".join(lines) + "\n" + total + _families(order) + _used(folder), encoding="utf-8")


def _used(folder: Path) -> str:
    """The rules used most, drawn; those that are no longer among the rules are left out."""
    if not USES.exists():
        return ""
    uses = json.loads(USES.read_text(encoding="utf-8"))
    rules = {rule.name: rule for path in folder.glob("*.rules") for rule in load_rules(path).rules}
    shown = [name for name in uses["rules"] if name in rules][:SHOWN]
    lines = [
        "\n## The rules used most\n",
        f"By the optimizer, in {', '.join(uses['models'])} (`python -m benchmarks.uses`).",
    ]
    for name in shown:
        lines += [f"\n### {name}\n", f"Used {uses['rules'][name]} times.\n"]
        lines += [f"```\n{print_rule(rules[name])}```\n", f"```mermaid\n{flowchart(rules[name])}```"]
    return "\n".join(lines) + "\n"


def _families(order: list[str]) -> str:
    lines = ["## The families\n"]
    for name in [*order, *(n for n in shipped_families() if n not in order)]:
        family = load_family(name)
        given = ", ".join(f"{v.label} ({', '.join(map(str, v.shape))})" for v in family.given)
        shown = "" if name in order else " (not among the shipped rules)"
        lines.append(f"- **{name}**{shown}: {len(family.operators)} operators over {given}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
