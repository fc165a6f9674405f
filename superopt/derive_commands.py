"""`superopt rules derive|covers|stats`: what rules derive, what they have of other rules, and what is in a file."""

from __future__ import annotations

import json as json_format
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from superopt.bars import stage_bar
from superopt.demands import assuming
from superopt.errors import ParseError, UsageError
from superopt.operators.files import declare_files
from superopt.operators.reader import read_dim, read_term, term_text
from superopt.operators.symbolic import conditions
from superopt.options import OperatorFiles, RuleFiles
from superopt.rules.derive import Rules
from superopt.rules.format import load_all_rules, load_rules
from superopt.rules.rule import Rule
from superopt.rules.steps import Step
from superopt.rules.work import operators as operators_of
from superopt.shipped import shipped_rules
from superopt.term import Term, variable
from superopt.text import Form, Sexp, read

MostSteps = Annotated[int, typer.Option("--steps", help="Directed steps, at most.", min=1, max=8)]


def derive(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="RULES", help="The rules to derive with: a file, or a folder of files.", show_default=False
        ),
    ],
    source: Annotated[str, typer.Argument(metavar="SRC", help="A term.", show_default=False)],
    target: Annotated[str, typer.Argument(metavar="DST", help="What it is to become.", show_default=False)],
    given: Annotated[str, typer.Option(help="The tensors of both with their sizes: '(?x n m) (?y n m)'.")],
    operators: OperatorFiles = None,
    most: MostSteps = 3,
) -> None:
    """Say whether rules derive an equation, and by which steps; exit code 1 where they do not.

    Steps are directed: each rewrites a source of a rule into its target. None goes through a term of more than one
    operator more than the larger side.
    """
    declare_files(operators or ())
    names = dict(_given(sexp) for sexp in read(given, "--given"))
    sides = [_term(text, what, names) for text, what in ((source, "SRC"), (target, "DST"))]
    if str(sides[0].type) != str(sides[1].type):  # sizes are symbols, and may be equal or not
        raise UsageError(f"the sides differ in type: {sides[0].type} and {sides[1].type}")
    steps = Rules(load_all_rules(file)).steps((sides[0],), (sides[1],), most)
    if steps is None:
        typer.echo(f"not derived in {most} steps")
        raise typer.Exit(1)
    typer.echo(term_text(sides[0]))
    for step in steps:
        typer.echo(f"= {term_text(step.result[0])}    by {step.rule.name}")
    last = steps[-1].result[0] if steps else sides[0]
    if term_text(last) != term_text(sides[1]):
        typer.echo(f"= {term_text(sides[1])}    by inputs that commute")


def _given(sexp: Sexp) -> tuple[str, Term]:
    if not isinstance(sexp, Form) or not sexp.head.startswith("?"):
        raise ParseError(f"{sexp.place}: expected a tensor with its sizes, (?x n m)")
    return sexp.head[1:], variable(sexp.head[1:], map(read_dim, sexp.items[1:]))


def _term(text: str, what: str, names: dict[str, Term]) -> Term:
    forms = read(text, what)
    if len(forms) != 1:
        raise UsageError(f"{what}: expected one term, found {len(forms)}")
    with assuming():  # that windows fit, and the like; that sizes are equal is said by their names
        term = read_term(forms[0], names)
    equal = [c for c in conditions(term) if c.relation == "="]
    if equal:
        raise UsageError(f"{what}: ill typed unless {equal[0]}; give equal sizes one name")
    return term


def covers(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="RULES", help="The rules that may cover: a file, or a folder of files.", show_default=False
        ),
    ],
    other: Annotated[
        Path, typer.Argument(metavar="OTHER", help="The rules to be covered, likewise.", show_default=False)
    ],
    operators: OperatorFiles = None,
    most: MostSteps = 3,
    json: Annotated[bool, typer.Option("--json", help="Print what covers each as JSON.")] = False,
) -> None:
    """Say how much of another rule file is matched by one rule, by a few directed steps, or not; each is listed.

    One rule matches another that is an instance of it, or that it makes within a larger term.
    """
    declare_files(operators or ())
    known, wanted = Rules(load_all_rules(file)), load_all_rules(other)
    found: list[tuple[Rule, list[Step] | None, str | None]] = []
    with stage_bar() as told:
        for i, rule in enumerate(wanted):
            told(f"cover {other.name}", i, len(wanted))
            general = known.covering(rule)
            steps = None if general else known.steps(rule.source, rule.target, most, facts=rule.facts)
            alone = general or (steps[0].rule if steps and len(steps) == 1 else None)
            found.append((rule, steps, alone.name if alone else None))
    if json:
        facts = [{"rule": r.name, "one": one, "steps": _named(s)} for r, s, one in found]
        typer.echo(json_format.dumps(facts, indent=2))
    else:
        for rule, steps, one in found:
            by = one or ", ".join(_named(steps) or ["nothing"])
            typer.echo(f"{rule.name}\t{_how(steps, one)}\t{by}")
    how = Counter(_how(steps, one) for _, steps, one in found)
    same = f"{how['no step']} with one graph on both sides, " if how["no step"] else ""
    typer.echo(
        f"{len(found)} rules: {how['one rule']} by one rule, {same}{how['steps']} by up to {most} steps, "
        f"{how['not covered']} not",
        err=True,
    )


def _how(steps: list[Step] | None, one: str | None) -> str:
    if one:
        return "one rule"
    if steps is None:
        return "not covered"
    return "steps" if steps else "no step"


def _named(steps: list[Step] | None) -> list[str] | None:
    return None if steps is None else [step.rule.name for step in steps]


def stats(
    files: RuleFiles = None,
    operators: OperatorFiles = None,
) -> None:
    """Show how many rules a file has, by the number of operators of both sides, and which laws prove most."""
    declare_files(operators or ())
    table = Table("file", "rules", "fewer operators", "as many", "more", "conditions", "laws", show_edge=False)
    laws: Counter[str] = Counter()
    for path in files or shipped_rules():
        rules = load_rules(path).rules
        change = Counter(_sign(operators_of(r.target) - operators_of(r.source)) for r in rules)
        laws.update(law for rule in rules for law in rule.by)
        used = {law for rule in rules for law in rule.by}
        conditions = sum(bool(r.conditions or r.facts) for r in rules)
        table.add_row(
            path.name, *(f"{n:,}" for n in (len(rules), *(change[i] for i in (-1, 0, 1)), conditions, len(used)))
        )
    console = Console()
    console.print(table)
    console.print(
        "most used laws: " + ", ".join(f"{law} ({count})" for law, count in laws.most_common(12)), soft_wrap=True
    )


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)
