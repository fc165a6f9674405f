"""`superopt laws`: list the axioms of all proofs, and check them."""

from __future__ import annotations

import json as json_format
import os
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from superopt.bars import stage_bar
from superopt.errors import RuleError, UsageError
from superopt.operators.declare import CATALOGUE
from superopt.operators.files import declare_files
from superopt.operators.laws.collected import Law, declared_laws
from superopt.options import OperatorFiles
from superopt.term import subterms
from superopt.text import show
from superopt.verify.law_check import Checked, Settings, check_laws
from superopt.verify.law_scope import families
from superopt.verify.law_sizes import LIMIT
from superopt.verify.prove import Proved

Names = Annotated[
    list[str] | None,
    typer.Argument(help="Names of laws; * stands for any part of one [default: all].", show_default=False),
]


def list_laws(
    names: Names = None,
    operators: OperatorFiles = None,
    json: Annotated[bool, typer.Option("--json", help="Print the laws as JSON.")] = False,
) -> None:
    """List laws: name, operator, what they come from, and their text.

    A law is written in the declaration of its operator, or derived from what that declares: that it is point-wise or
    linear, its named axes, how it moves elements. A derived law has an instance for each rank and axis, of which one is
    shown. A lemma follows from the other laws.
    """
    declare_files(operators or ())
    rows = [_described(name, laws) for name, laws in _wanted(names).items()]
    if json:
        typer.echo(json_format.dumps(rows, indent=2))
        return
    for row in rows:
        origin = f"{row['origin']}, a lemma" if row["lemma"] else row["origin"]
        typer.echo("\t".join([row["law"], row["operator"], origin, row["text"]]))


def check(
    names: Names = None,
    operators: OperatorFiles = None,
    limit: Annotated[
        int, typer.Option(help="Up to how many shapes all are tried; of more, a sample of a quarter as many.", min=1)
    ] = LIMIT,
    seed: Annotated[int, typer.Option(help="Seed of the values, and of samples of shapes.", min=0)] = 0,
    redundancy: Annotated[
        bool, typer.Option("--redundancy/--no-redundancy", help="Look for laws that follow from the others.")
    ] = True,
    workers: Annotated[
        int, typer.Option(help="Processes that check laws; the result does not depend on it.", min=1)
    ] = os.cpu_count() or 1,
    json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON instead of a table.")] = False,
) -> None:
    """Test each law at all small shapes that it fits, and look whether it follows from the others.

    Sizes go up to 4, in all combinations that are well formed, or in a sample where these are more than the limit. A
    law is tested exactly in each carrier that has all it needs. Where none has, both sides are compared in 64-bit
    floating point, and tested with a keyed hash in place of the functions: then it holds for any function.

    That a law follows from the others is proved; that it does not is not claimed, only that no proof was found. Exit
    code 2 where a law is wrong, fits no shape, or follows from the others and is not marked as a lemma.
    """
    declare_files(operators or ())
    with stage_bar() as told:
        found = check_laws(list(_wanted(names)), Settings(limit, seed, redundancy), workers, told)
    if json:
        typer.echo(json_format.dumps([_as_json(c) for c in found], indent=2))
    else:
        _print(_table(found))
    typer.echo(_summary(found), err=True)
    wrong = [c for c in found if c.fault is not None]
    if wrong:
        more = f" (and {len(wrong) - 1} other laws)" if len(wrong) > 1 else ""
        raise RuleError(f"law {wrong[0].name}: {wrong[0].fault}{more}")


def _wanted(patterns: Sequence[str] | None) -> dict[str, list[Law]]:
    """The laws with these names. Raises `UsageError` for one that there is not."""
    known = families()
    for pattern in patterns or ():
        if not any(fnmatchcase(name, pattern) for name in known):
            raise UsageError(f"no law is called {pattern}; see: superopt laws list")
    return {n: laws for n, laws in known.items() if not patterns or any(fnmatchcase(n, p) for p in patterns)}


def _described(name: str, laws: Sequence[Law]) -> dict[str, Any]:
    written = {n: (cls.name, show(sexp)) for cls, n, sexp in declared_laws()}
    operator, text = written.get(name) or (_operator(name), str(_typical(laws)))
    return {
        "law": name,
        "operator": operator,
        "origin": laws[0].origin,
        "derived": name not in written,
        "lemma": laws[0].lemma,
        "instances": len(laws),
        "text": text,
    }


def _operator(name: str) -> str:
    """The operator that a derived law is about: its name begins with it."""
    return max((n for n in CATALOGUE if name.startswith(f"{n}-")), key=len, default="")


def _typical(laws: Sequence[Law]) -> Law:
    """The last instance whose tensors have one or two axes, which says more than those of none; else the first."""
    small = [law for law in laws if all(1 <= t.type.rank <= 2 for t in subterms(law.left, law.right))]
    return small[-1] if small else laws[0]


def _as_json(c: Checked) -> dict[str, Any]:
    return {
        "law": c.name,
        "lemma": c.lemma,
        "instances": c.instances,
        "exhaustive": c.complete,
        "shapes": c.shapes,
        "carriers": {kind: dict(carriers) for kind, carriers in c.carriers.items()},
        "follows": None if c.follows is None else "proved" if isinstance(c.follows, Proved) else "not shown",
        "by": list(c.follows.laws) if isinstance(c.follows, Proved) else [],
        "seconds": c.seconds,
        "fault": c.fault,
    }


def _table(found: Iterable[Checked]) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    for name in ("law", "instances", "shapes", "tried", "holds", "follows from others", "seconds"):
        right = name in ("instances", "shapes", "seconds")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for c in found:
        row = (c.name, f"{c.instances}", f"{c.shapes:,}", _how(c), _carriers(c), _follows(c), f"{c.seconds:.2f}")
        table.add_row(*map(Text, row), style=None if c.fault is None else "bold red")
    return table


def _print(table: Table) -> None:
    """A terminal wraps cells; elsewhere a row is a line, however long."""
    wide = None if Console().is_terminal else 10_000
    Console(highlight=False, width=wide).print(table, crop=False)


def _how(c: Checked) -> str:
    """Of how many instances all shapes were tried."""
    return "all" if c.complete == c.instances else f"all for {c.complete}" if c.complete else "a sample"


def _carriers(c: Checked) -> str:
    """Each kind of claim with its carriers, and in how many instances where that is not in all of them."""
    return "; ".join(f"{kind}: {_counted(carriers, c.instances)}" for kind, carriers in c.carriers.items())


def _counted(carriers: Mapping[str, int], instances: int) -> str:
    return ", ".join(n if count == instances else f"{n} ({count})" for n, count in carriers.items())


def _follows(c: Checked) -> str:
    if c.follows is None:
        return "lemma" if c.lemma else ""
    proved = "proved" if isinstance(c.follows, Proved) else "not shown"
    return f"lemma, {proved}" if c.lemma else proved


def _summary(found: Sequence[Checked]) -> str:
    instances, whole = sum(c.instances for c in found), sum(c.complete for c in found)
    parts = [
        f"{sum(c.fault is None for c in found)} of {len(found)} laws are in order",
        f"{instances:,} instances on {sum(c.shapes for c in found):,} shapes",
        f"{whole:,} of them on all that fit",
        f"{sum(c.seconds for c in found):.1f} s of work",
    ]
    return ", ".join(parts)
