"""`superopt rules verify` and `superopt rules obligations`: rules proved afresh, and what the solver is asked."""

from __future__ import annotations

import json as json_format
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from superopt.bars import stage_bar
from superopt.errors import RuleError, SuperoptError, UsageError
from superopt.operators.files import declare_files
from superopt.options import OperatorFiles
from superopt.outputs import demand_writable, read_bytes, write_text
from superopt.rules.format import load_rules, print_file, print_rule
from superopt.rules.ranks import at_rank
from superopt.rules.rule import Rule
from superopt.verify.check import Refuted, Verdict, attempt, judged
from superopt.verify.conditions import Learned, learn
from superopt.verify.prove import Proved, Unknown, smtlib, solver_version
from superopt.verify.saved import demand_free, described, save_witness
from superopt.verify.trusted import describe, facts_of, seal, sealed


@dataclass(frozen=True)
class Told:
    """What is found of one rule: the verdict, under which condition it holds if asked and learned, and seconds."""

    rule: Rule
    verdict: Verdict
    learned: Learned | None
    seconds: float

    def __str__(self) -> str:
        under = f"; holds if {' '.join(map(str, self.learned.condition))}" if self.learned else ""
        return f"{self.rule.name}: {describe(self.verdict)}{under} ({self.seconds * 1e3:.0f} ms)"

    def facts(self) -> dict[str, object]:
        """The same for machines."""
        found: dict[str, object] = {
            "rule": self.rule.name,
            "verdict": type(self.verdict).__name__.lower(),
            "why": describe(self.verdict),
            "seconds": self.seconds,
        }
        if isinstance(self.verdict, Refuted):
            found["witness"] = described(self.verdict.witness)
        if self.learned:
            found["condition"] = [str(c) for c in self.learned.condition]
        return found


def tell(rule: Rule, conditions: bool) -> Told:
    """Verify a rule, and look for a condition under which it holds where it does not as it stands."""
    start = time.perf_counter()
    attempted = attempt(rule)
    learned = learn(rule) if conditions and not isinstance(attempted, Proved) else None
    if learned is not None and learned.demanded and isinstance(attempted, Unknown):
        verdict: Verdict = Unknown("its target is ill formed for some sizes of its source")
    else:
        verdict = judged(rule, attempted)
    return Told(rule, verdict, learned, time.perf_counter() - start)


def verify_file(
    file: Annotated[Path, typer.Argument(help="The rule file to prove afresh.", show_default=False)],
    operators: OperatorFiles = None,
    conditions: Annotated[
        bool, typer.Option("--conditions", help="Say under which condition a rule holds that does not as it stands.")
    ] = False,
    witnesses: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Save the witness against each wrong rule as two ONNX models and their inputs."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only what does not prove, and the total.")] = False,
    sealing: Annotated[
        bool,
        typer.Option(
            "--seal",
            help="Where all prove, print the file anew, and say so in its header, which spares proofs.",
        ),
    ] = False,
) -> None:
    """Prove every rule of a file from nothing but its text; exit code 2 where one does not prove.

    A rule is proved for all sizes by laws of `superopt laws list`, whichever it names, refuted by the smallest sizes
    and integers for which its sides differ, or unknown. The solver's limit is counted in its steps, so verdicts do not
    depend on the machine.
    A file that was edited by hand, or is of another version, is proved whenever it is used, until --seal seals it.
    """
    if sealing:
        demand_writable(file, overwrite=True)
    as_read = read_bytes(file)
    declare_files(operators or ())
    given = load_rules(file)
    if given.header.get("seal", expected := seal(given.rules)) != expected:
        what = "the file, the operators or the laws are not what was sealed; --seal seals it anew where all prove"
        typer.echo(f"{file}:1:1: {what}", err=True)
    if witnesses is not None:
        demand_free([r.name for r in given.rules], witnesses)
    found = _told(given.rules, file.name, conditions)
    failed = [f for f in found if not isinstance(f.verdict, Proved)]
    shown = failed if quiet else found
    if json:
        typer.echo(json_format.dumps([f.facts() for f in shown], indent=2))
    else:
        for f in shown:
            typer.echo(str(f))
    save_witnesses(found, witnesses)
    typer.echo(total(found), err=True)
    if failed:
        raise RuleError(f"{file}: rule {failed[0].rule.name} does not prove: {describe(failed[0].verdict)}")
    if sealing:
        if read_bytes(file) != as_read:
            raise UsageError(f"{file}: was changed while it was proved; nothing was written")
        kept = [replace(f.rule, by=f.verdict.laws) for f in found if isinstance(f.verdict, Proved)]
        write_text(file, print_file(sealed(kept, {**facts_of(given), "solver": solver_version()})))


def _told(rules: Sequence[Rule], name: str, conditions: bool) -> list[Told]:
    """What is found of each rule of a file of this name."""
    found = list[Told]()
    with stage_bar() as told:
        for i, rule in enumerate(rules):
            told(f"prove {name}", i, len(rules))
            found.append(tell(rule, conditions))
    return found


def save_witnesses(found: Sequence[Told], folder: Path | None) -> None:
    """Save the witness against each wrong rule, where a folder is given. Raises `UsageError`."""
    for f in found if folder is not None else ():
        if isinstance(f.verdict, Refuted) and folder is not None:
            try:
                save_witness(f.verdict.witness, f.rule.name, folder)
            except UsageError:
                raise
            except SuperoptError as error:
                typer.echo(f"the witness against {f.rule.name} has no form in ONNX: {error}", err=True)


def total(found: Sequence[Told]) -> str:
    """How many are proved, refuted, unknown, and in which time."""
    seconds = [f.seconds for f in found]
    kinds = {kind: sum(type(f.verdict).__name__ == kind for f in found) for kind in ("Refuted", "Unknown")}
    others = "".join(f", {count} {kind.lower()}" for kind, count in kinds.items() if count)
    proved = len(found) - sum(kinds.values())
    median = f", {statistics.median(seconds) * 1e3:.1f} ms in the median" if seconds else ""
    return f"{proved} of {len(found)} rules proved{others} in {sum(seconds):.1f} s{median}"


def obligations(
    file: Annotated[Path, typer.Argument(help="The rule file.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The folder to write an .smt2 file a rule into; made where it is missing.")],
    operators: OperatorFiles = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")] = False,
) -> None:
    """Write what the solver is asked about each rule as SMT-LIB 2: `z3 RULE.smt2` says unsat where it is proved."""
    declare_files(operators or ())
    rules = load_rules(file).rules
    texts = {out / f"{rule.name}.smt2": _obligation(rule) for rule in rules}
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{out}: cannot be made: {error.strerror or error}") from None
    for path in texts:
        demand_writable(path, overwrite, [file])
    for path, text in texts.items():
        write_text(path, text)
    typer.echo(f"{len(rules)} files written to {out}", err=True)


def _obligation(rule: Rule) -> str:
    rule = at_rank(rule, 1)
    comment = "".join(f"; {line}\n" for line in print_rule(rule).splitlines())
    return comment + smtlib(rule.source, rule.target, rule.conditions, rule.facts, rule.by)
