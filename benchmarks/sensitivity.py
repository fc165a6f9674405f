"""A mutation test of the checker: true rules and laws made wrong by one small change, of which it may prove none.

`python -m benchmarks.sensitivity` takes mutants of the shipped rules and of the laws in turns. Each is either shown to
differ, by a witness in plain integers, or it may be no mutant at all: some changes change nothing. Of those with a
witness none may be proved. Writes `docs/sensitivity.md`.
"""

from __future__ import annotations

import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from benchmarks.mutants import mutants
from superopt.errors import RuleError
from superopt.rules.format import load_rules, parse_file, print_rule
from superopt.rules.rule import Rule
from superopt.shipped import shipped_rules
from superopt.verify.law_scope import families
from superopt.verify.prove import Proved, prove
from superopt.verify.witness import find_witness

PAGE = Path(__file__).parents[1] / "docs" / "sensitivity.md"
RESOURCES = 300_000
"""z3 resource units for each: a hundred times what a proof takes in the median."""
SIZES = 60
"""How many sizes are tried for a witness."""


def originals() -> list[Rule]:
    """The shipped rules, and each instance of a law as a rule in both directions."""
    found = [rule for path in shipped_rules() for rule in load_rules(path).rules]
    for laws in families().values():
        for law in laws:
            for left, right in ((law.left, law.right), (law.right, law.left)):
                try:
                    found.append(Rule(f"law-{law.name}", (left,), (right,), law.conditions, facts=law.facts))
                except RuleError:
                    continue  # this direction binds too little
    return found


def drawn(count: int, seed: int) -> Iterator[tuple[str, Rule]]:
    """Mutants of rules and laws, of each original a few of each kind; the same for the same seed."""
    rng, given = random.Random(seed), originals()
    rng.shuffle(given)
    for few in (1, 3, 10, 100):
        for rule in given:
            by_kind: dict[str, list[Rule]] = defaultdict(list)
            for kind, mutant in mutants(rule):
                by_kind[kind].append(mutant)
            for kind, some in by_kind.items():
                yield from ((kind, m) for m in rng.sample(some, min(few, len(some))))


def examined(kind: str, text: str) -> tuple[str, str, str]:
    """The kind of a mutant; `wrong`, `equal`, `open` or `PROVED WRONG`; and its text."""
    (rule,) = parse_file(text).rules
    witness = find_witness(rule, most=SIZES)
    proved = isinstance(prove(rule.source, rule.target, rule.conditions, rule.facts, RESOURCES), Proved)
    if witness is None:
        return kind, "equal" if proved else "open", text
    return kind, "PROVED WRONG" if proved else "wrong", text


def _examined(item: tuple[str, str]) -> tuple[str, str, str]:
    return examined(*item)


def main(
    count: Annotated[int, typer.Option(help="How many mutants with a witness to look at, at least.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Which mutants.")] = 0,
    workers: Annotated[int, typer.Option(help="Processes.")] = 2,
) -> None:
    """Count mutants by kind and outcome; exit code 1 where one with a witness is proved, or there are too few."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    texts = dict.fromkeys(
        (kind, f"(rules :format 1)\n{print_rule(m)}") for kind, m in islice(drawn(count, seed), 3 * count)
    )
    wrong: list[str] = []
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        outcomes = pool.map(_examined, texts, chunksize=16)
        for kind, outcome, text in track(outcomes, "mutants", len(texts)):
            counts[kind][outcome] += 1
            if outcome == "PROVED WRONG":
                wrong.append(text)
            if sum(c["wrong"] for c in counts.values()) >= count:
                pool.shutdown(wait=False, cancel_futures=True)
                break
    PAGE.write_text(page(counts), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"), *wrong, sep="\n")
    if wrong or sum(c["wrong"] for c in counts.values()) < count:
        sys.exit(1)


def page(counts: dict[str, Counter[str]]) -> str:
    """The table."""
    columns = ("wrong", "PROVED WRONG", "equal", "open")
    lines = [
        "# Sensitivity of the checker",
        "",
        "Mutants of the shipped rules and of the laws: one small change each. *Differ*: shown by a witness, and not",
        "proved. *Proved though they differ*: must be none. *Equal*: the change changes nothing, which is proved.",
        "*Open*: neither. Written by `python -m benchmarks.sensitivity`.",
        "",
        "| change | differ | proved though they differ | equal | open |",
        "| --- | --- | --- | --- | --- |",
        *(f"| {kind} | {' | '.join(f'{c[k]:,}' for k in columns)} |" for kind, c in sorted(counts.items())),
    ]
    total = sum(counts.values(), Counter[str]())
    return "\n".join([*lines, f"| **all** | {' | '.join(f'{total[k]:,}' for k in columns)} |", ""])


if __name__ == "__main__":
    typer.run(main)
