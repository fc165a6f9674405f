"""`superopt rules import` and `superopt rules export`: rules from and for other tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from superopt.bars import stage_bar
from superopt.errors import RuleError
from superopt.operators.files import declare_files
from superopt.options import OperatorFiles
from superopt.outputs import demand_writable, read_bytes, write_bytes
from superopt.proof_commands import Told, save_witnesses, tell, total
from superopt.rules.exchange.egg import egg_refusals, to_egg
from superopt.rules.exchange.json_form import parse_json, print_json
from superopt.rules.exchange.onnxscript_source import onnxscript_refusals, to_onnxscript
from superopt.rules.exchange.taso import rules_of
from superopt.rules.exchange.taso_messages import decode
from superopt.rules.exchange.taso_writer import taso_refusals, to_taso
from superopt.rules.format import RuleFile, load_rules, parse_file, print_file
from superopt.rules.ranks import at_ranks
from superopt.rules.rule import Rule
from superopt.verify.prove import Proved, solver_version
from superopt.verify.saved import demand_free
from superopt.verify.trusted import sealed


@dataclass(frozen=True)
class Form:
    """A format: what it cannot say of rules, and its bytes for those that it can."""

    refused: Callable[[Sequence[Rule]], list[tuple[str, str]]]
    written: Callable[[RuleFile], bytes]


class Source(StrEnum):
    """A format that is read."""

    JSON = "json"
    TASO = "taso"


class Target(StrEnum):
    """A format that is written."""

    JSON = "json"
    TASO = "taso"
    EGG = "egg"
    ONNXSCRIPT = "onnxscript"


FORMS = {
    Target.JSON: Form(lambda rules: [], lambda file: print_json(file).encode()),
    Target.TASO: Form(taso_refusals, lambda file: to_taso(file.rules)),
    Target.EGG: Form(egg_refusals, lambda file: to_egg(file.rules).encode()),
    Target.ONNXSCRIPT: Form(onnxscript_refusals, lambda file: to_onnxscript(file.rules).encode()),
}


def export(
    file: Annotated[Path, typer.Argument(help="The rule file.", show_default=False)],
    to: Annotated[Target, typer.Option(help="The format to write.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Where to write it.")],
    skip: Annotated[
        bool, typer.Option("--skip", help="Leave out rules that the format cannot say, naming each.")
    ] = False,
    operators: OperatorFiles = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")] = False,
) -> None:
    """Write rules for another tool: JSON with a schema, TASO's protobuf, egg's S-expressions, onnxscript's rewriter.

    JSON says all of a rule file. The others get rules about any rank at ranks 1 to 4, and cannot say every rule: what
    one cannot say is an error that names the rule and the reason, or is left out with --skip, each by name on stderr.
    """
    demand_writable(out, overwrite, [file])
    declare_files(operators or ())
    given, form = load_rules(file), FORMS[to]
    if to is not Target.JSON:
        given = replace(given, rules=tuple(at_ranks(given.rules)))
    refused = dict(form.refused(given.rules))
    for name, why in refused.items() if skip else ():
        typer.echo(f"left out: {name}: {why}", err=True)
    if refused and not skip:
        name, why = next(iter(refused.items()))
        raise RuleError(
            f"{file}: {to} cannot say {len(refused)} of {len(given.rules)} rules; --skip leaves them out. "
            f"The first: {name}: {why}"
        )
    said = replace(given, rules=tuple(r for r in given.rules if r.name not in refused))
    if not said.rules and given.rules:
        raise RuleError(f"{file}: {to} can say none of its rules, so nothing was written")
    write_bytes(out, form.written(said))
    typer.echo(f"{len(said.rules)} of {len(given.rules)} rules written to {out}", err=True)


def import_(
    file: Annotated[Path, typer.Argument(help="The file of another tool.", show_default=False)],
    source: Annotated[Source, typer.Option("--from", help="Its format.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The rule file to write.")],
    witnesses: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Save the witness against each wrong rule as two ONNX models and their inputs."
        ),
    ] = None,
    operators: OperatorFiles = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")] = False,
) -> None:
    """Prove the rules of another tool and write those that hold, each under its condition.

    A rule that does not hold as it stands is tried under conditions, weakest first: equal sizes, divisibility, values
    of attributes, signs of elements. What is wrong gets a witness, and is not written unless a condition mends it.
    """
    demand_writable(out, overwrite, [file])
    declare_files(operators or ())
    rules, unread = _read(file, source)
    if witnesses is not None:
        demand_free([r.name for r in rules], witnesses)
    found: list[Told] = []
    with stage_bar() as told:
        for i, rule in enumerate(rules):
            told(f"prove {file.name}", i, len(rules))
            found.append(tell(rule, conditions=True))
    for f in found:
        typer.echo(str(f))
    for why in unread:
        typer.echo(f"not read: {why}")
    kept = [held for f in found if (held := _holding(f)) is not None]
    if not kept:
        why = f"none of its {len(rules)} rules holds" if rules else f"none of its {len(unread)} rules could be read"
        raise RuleError(f"{file}: {why}, so nothing was written")
    facts = {"solver": solver_version(), "settings": f"from={source} file={ascii(file.name)[1:-1]}"}
    text = print_file(sealed(kept, facts))
    if parse_file(text, str(out)).rules != tuple(kept):
        raise RuleError(f"{file}: its rules have no text that gives them back, so nothing was written")
    write_bytes(out, text.encode())
    save_witnesses(found, witnesses)
    under = sum(not isinstance(f.verdict, Proved) for f in found if f.learned)
    typer.echo(f"{total(found)}; {under} hold under a condition; {len(kept)} written to {out}", err=True)


def _holding(found: Told) -> Rule | None:
    """The rule as it holds, with the laws that prove it."""
    if isinstance(found.verdict, Proved):
        return replace(found.rule, by=found.verdict.laws)
    return found.learned.rule if found.learned else None


def _read(file: Path, source: Source) -> tuple[list[Rule], list[str]]:
    """The rules of a file, and why others of it cannot be read. Raises `RuleError`."""
    data = read_bytes(file)
    if source is Source.JSON:
        return list(parse_json(_text(data, file), str(file)).rules), []
    # What is no letter, digit or sign of a name may not stand in one; what starts with a digit could be a number.
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", file.stem)[:100]
    stem = stem if stem[:1].isalpha() else f"taso-{stem}"
    rules: list[Rule] = []
    unread: list[str] = []
    for i, published in enumerate(decode(data, str(file))):
        try:
            rules += rules_of(published, f"{stem}-{i}")
        except RuleError as error:
            unread.append(str(error))
    return rules, unread


def _text(data: bytes, file: Path) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RuleError(f"{file}: not a rule file: no text in UTF-8 at byte {error.start}") from None
