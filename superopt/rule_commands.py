"""`superopt rules`: rules generated, listed and shown; the file of each other command says what it does."""

from __future__ import annotations

import json as json_format
import math
import os
import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from superopt.bars import stage_bar
from superopt.enumerate.applicable import demand_applicable
from superopt.enumerate.checkpoint import Checkpoint
from superopt.enumerate.family import Family
from superopt.enumerate.family_text import DEEPEST, load_family, shipped_families, with_operators
from superopt.enumerate.generate import Generated
from superopt.enumerate.generate import generate as generate_rules
from superopt.enumerate.prune import STEPS
from superopt.errors import SuperoptError, UsageError
from superopt.operators.declare import CATALOGUE, is_shipped
from superopt.operators.files import declare_files
from superopt.options import OperatorFiles, RuleFiles
from superopt.outputs import demand_writable, write_text
from superopt.rules.digests import laws_hash
from superopt.rules.format import load_rules, print_file, print_rule
from superopt.rules.picture import flowchart
from superopt.shipped import shipped_rules
from superopt.verify.prove import solver_version
from superopt.verify.trusted import sealed

MOST_WORKERS = 256
CORES = os.cpu_count() or 1


FamilyName = Annotated[
    str,
    typer.Option(metavar="NAME|FILE", help=f"What to enumerate: a file, or one of {', '.join(shipped_families())}."),
]
MostOperators = Annotated[
    int | None, typer.Option(help="Operators a side, at most [default: what the family says].", min=1, max=DEEPEST)
]
Only = Annotated[str, typer.Option(metavar="NAMES", help="Operators of the family to enumerate, with commas between.")]
Workers = Annotated[
    int, typer.Option(help="Processes that prove rules; the result does not depend on it.", min=1, max=MOST_WORKERS)
]
Memory = Annotated[
    float,
    typer.Option(
        metavar="GB",
        help="Leave out the levels of terms for which the process would take more than this, itself included.",
    ),
]
Beside = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Leave out what the rules of this file replay; may be given again."),
]
Steps = Annotated[
    int,
    typer.Option(
        help="Leave out what other rules replay in so many directed steps: with fewer, more is written; with 0, "
        "every two terms that are equal, but for instances of other rules.",
        min=0,
        max=STEPS,
    ),
]
Undecided = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Where to list what is neither proved nor refuted, with the reason.")
]


def generate(
    out: Annotated[Path, typer.Option(help="Where to write the rule file.")],
    family: FamilyName = "core",
    max_ops: MostOperators = None,
    operators: OperatorFiles = None,
    only: Only = "",
    seed: Annotated[int, typer.Option(help="Seed of the values that terms are evaluated on.", min=0)] = 0,
    workers: Workers = CORES,
    memory: Memory = 8.0,
    beside: Beside = None,
    steps: Steps = STEPS,
    undecided: Undecided = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run for the same file that stopped.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON, with seconds and memory.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")] = False,
) -> None:
    """Enumerate all graphs of a few operators, pair equal ones, prove them for all shapes, and write the proved rules.

    What is not proved is counted, and never written. A run that is stopped keeps its proofs in OUT.proofs; with
    --resume, another goes on with them and writes the same bytes.
    """
    if not 0 < memory < math.inf:
        raise UsageError(f"--memory {memory:g}: give GB, more than 0")
    for path in filter(None, (out, undecided)):
        demand_writable(path, overwrite, [*(operators or ()), *(beside or ())])
    proofs = out.with_name(f"{out.name}.proofs")
    if not resume:
        demand_writable(proofs, overwrite)  # those of a run that was stopped are not lost silently
    declare_files(operators or ())
    known = [rule for path in beside or () for rule in load_rules(path).rules]
    whole = load_family(family)
    demand_applicable(whole)
    chosen = with_operators(whole, _names(only), _own())
    depth = max_ops or chosen.depth
    settings = _settings(chosen, only, depth, seed, beside or (), steps)
    checkpoint = Checkpoint(proofs, f"{settings} laws={laws_hash()}", resume)
    with _resumable(checkpoint, proofs, resume), stage_bar() as told:
        found = generate_rules(chosen, depth, seed, workers, told, checkpoint, memory, known, steps)
    _write(found, out, undecided, settings, depth)
    if (complete := found.counts["complete to operators"]) == depth:
        checkpoint.done()
    else:
        again = "--resume --overwrite and more --memory go on"
        typer.echo(f"superopt: terms of {complete + 1} operators would take more than {memory:g} GB; {again}", err=True)
    if json:
        facts = {"family": chosen.name, **found.counts, "seconds": round(found.seconds, 1), "GB": round(_peak(), 2)}
        typer.echo(json_format.dumps(facts))
    Console(stderr=True).print(_counted(found), f"{found.seconds:.1f} s; written to {out}")


def _settings(chosen: Family, only: str, depth: int, seed: int, beside: Sequence[Path], steps: int) -> str:
    """What rules depend on, as the header of their file says it."""
    settings = f"family={chosen.name} operators={only or 'all'} max-ops={depth} seed={seed}"
    settings += f" beside={','.join(p.name for p in beside)}" if beside else ""
    return settings + (f" steps={steps}" if steps < STEPS else "")


def _write(found: Generated, out: Path, undecided: Path | None, settings: str, depth: int) -> None:
    """Write what is proved, sealed, and where asked what is undecided."""
    complete = found.counts["complete to operators"]
    settings += f" complete-to={complete}" if complete < depth else ""
    write_text(out, print_file(sealed(found.rules, {"solver": solver_version(), "settings": settings})))
    if undecided is not None:
        write_text(undecided, "".join(f"{line}\n" for line in found.unknown))


@contextmanager
def _resumable(checkpoint: Checkpoint, proofs: Path, resumed: bool) -> Iterator[None]:
    """Where a run within is refused it leaves no proofs; who interrupts it is told what it leaves."""
    try:
        yield
    except SuperoptError:
        if not resumed:
            checkpoint.done()  # there is nothing to go on with
        raise
    except KeyboardInterrupt:
        if proofs.exists():
            typer.echo(f"superopt: {proofs} keeps what was proved; --resume goes on with it", err=True)
        raise


def _peak() -> float:
    """The most memory that this process took, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",") if name.strip()]


def _own() -> list[str]:
    """The operators that files of the user's declare."""
    return [n for n, cls in CATALOGUE.items() if not is_shipped(cls) and cls.enumerated and not cls.free]


def _counted(found: Generated) -> Table:
    table = Table("stage", "count", show_edge=False)
    table.columns[1].justify = "right"
    for stage, count in found.counts.items():
        if count or not stage.startswith("forms tried"):
            table.add_row(stage, f"{count:,}")
    return table


def list_rules(
    files: RuleFiles = None,
    operators: OperatorFiles = None,
) -> None:
    """List rules by name, with the laws that prove them."""
    declare_files(operators or ())
    for path in files or shipped_rules():
        for rule in load_rules(path).rules:
            typer.echo(f"{rule.name}\t{', '.join(rule.by)}")


def show_rule(
    name: Annotated[str, typer.Argument(help="The name of a rule.", show_default=False)],
    files: Annotated[
        list[Path] | None, typer.Option("--file", help="Rule files [default: those that come with superopt].")
    ] = None,
    operators: OperatorFiles = None,
    picture: Annotated[
        bool, typer.Option("--picture", help="Print both sides as a Mermaid flowchart, which Markdown viewers draw.")
    ] = False,
) -> None:
    """Print one rule, or draw it."""
    declare_files(operators or ())
    for path in files or shipped_rules():
        for rule in load_rules(path).rules:
            if rule.name == name:
                typer.echo(flowchart(rule) if picture else print_rule(rule), nl=not picture)
                return
    raise UsageError(f"no rule is called {name}; see: superopt rules list")
