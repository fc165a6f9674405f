"""`docs/operators.md`: every operator as its declaration states it.

`python -m benchmarks.operators_page` writes it; a test says that the committed page is what the declarations give now.
Given files that declare operators, it prints what the page would say of those.
"""

from __future__ import annotations

import inspect
import itertools
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING
from functools import cache
from pathlib import Path
from typing import Any

from superopt.demands import assuming
from superopt.errors import SuperoptError
from superopt.operators import CATALOGUE, READERS, Declared
from superopt.operators.attributes import Field
from superopt.operators.declare import is_shipped
from superopt.operators.files import declare_files
from superopt.operators.meanings import FURTHER_DEFINITIONS
from superopt.operators.reader import term_sexp
from superopt.term import Term, subterms, variable
from superopt.text import Form, Sexp, form, show

PAGE = Path(__file__).parents[1] / "docs" / "operators.md"
PACKAGE = "superopt.operators"

INTRODUCTION = """\
All {count} operators of the catalogue, as they are declared in `superopt/operators`: what each means, how it is written
in ONNX, and the facts from which its laws follow. Written by `python -m benchmarks.operators_page`."""

TERMS = """\
*Needs* is what a carrier must have, besides sums and products, to evaluate an operator exactly; in the others it is a
keyed hash of its arguments. *Linear* in an input: sums and factors move through it. *Pointwise*: each element depends
on the same elements of the inputs only. *Keeps zero*: of zeros it is zero. *Least* is the smallest legal size."""

SHAPES = (
    (2, 3),
    (3, 4),
    (2, 4),
    (2, 3, 4),
    (1, 4, 2, 2),
    (4,),
    (3,),
    (2,),
    (),
    (2, 2, 2, 2),
    (2, 2, 1, 1),
    (1, 1, 3, 3),
    (2, 2, 3, 3),
    (1, 5, 1),
    (1, 2, 1),
)
"""What inputs of examples are tried with, in all combinations: the first that the operator takes is shown."""

USUAL: dict[str, tuple[Any, ...]] = {
    "float": (0.5,),
    "int": (3, 1, 0),
    "Dim": (2,),
    "Shape": ((2, 2),),
    "tuple[int, ...]": ((1,), (1, 0)),
}
"""What attributes without a default and without a sample are tried with, by type."""

WIDTH = 100


def page() -> str:
    """The whole page."""
    groups: dict[str, list[type[Declared]]] = {}
    for cls in sorted(_declared(), key=lambda c: (c.__module__, c.name)):
        groups.setdefault(cls.__module__, []).append(cls)
    count = sum(map(len, groups.values()))
    parts = [
        "# Operators",
        INTRODUCTION.format(count=count),
        "\n".join(
            f"- [{_group(m)}](#{_group(m)}): {', '.join(f'`{c.name}`' for c in own)}" for m, own in groups.items()
        ),
        TERMS,
    ]
    for module, own in groups.items():
        parts += [f"## {_group(module)}", _sentence(sys.modules[module].__doc__)]
        for cls in own:
            parts.append(entry(cls))
    parts += list(_other_forms())
    return "\n\n".join(parts) + "\n"


def _declared() -> Iterator[type[Declared]]:
    """The operators of this project; a file of the user's may have declared others."""
    return filter(is_shipped, CATALOGUE.values())


def _group(module: str) -> str:
    return module.rpartition(".")[2]


def entry(cls: type[Declared]) -> str:
    """What the page says of an operator."""
    return "\n\n".join(_entry(cls))


def _entry(cls: type[Declared]) -> Iterator[str]:
    yield f"### {cls.name}"
    yield _sentence(cls.__doc__)
    yield "\n".join(f"- {line}" for line in _facts(cls))
    if cls.fields:
        rows = ["| attribute | type | default | least | ONNX |", "| --- | --- | --- | --- | --- |"]
        yield "\n".join([*rows, *(_attribute(cls, f) for f in cls.fields)])
    if cls.laws.strip():
        yield f"Laws:\n\n```\n{textwrap.dedent(cls.laws).strip()}\n```"
    for name, meaning in FURTHER_DEFINITIONS.items():
        if meaning.operator == cls.name:
            yield f"A further definition, *{name}*. {_sentence(meaning.term_of.__doc__)}"
    if cls.definition is not Declared.definition or cls.definitions is not Declared.definitions:
        yield _definition(cls)


def _facts(cls: type[Declared]) -> Iterator[str]:
    inputs = _inputs(cls)
    read = sorted(op for (_, op), reader in READERS.items() if getattr(reader, "__self__", None) is cls)
    written = f"`{cls.onnx}`" if cls.onnx else "not an operator of its own"
    written += f" of the domain `{cls.domain}`" if cls.domain else ""
    others = [f"`{op}`" for op in read if op != cls.onnx]
    yield f"ONNX: {written}{', read from ' + ', '.join(others) + ' too' if others else ''}"
    yield f"inputs: {', '.join(f'`{i}`' for i in inputs) or 'none'}"
    yield f"needs: {', '.join(f'`{n}`' for n in sorted(_needs(cls))) or 'sums and products only'}"
    facts = [
        f"linear in {', '.join(f'`{inputs[i]}`' for i in cls.linear)}" * bool(cls.linear),
        "pointwise" * cls.pointwise,
        "commutative" * cls.commutative,
        "keeps zero" * cls.zero,
        "moves elements and changes none" * cls.moves,
    ]
    if any(facts):
        yield f"facts: {', '.join(filter(None, facts))}"
    if cls.named_axes:
        yield f"axes: `{cls.named_axes}`{', with further ones before them' if cls.batched else ''}"


def _attribute(cls: type[Declared], f: Field) -> str:
    default = "" if f.default is MISSING else f"`{_plain(f.default)}`"
    least = str(f.facts.least) if f.facts.size else ""
    onnx = f"`{f.facts.onnx}`" if f.facts.onnx else ""
    return f"| `{f.name}` | `{_type(cls, f)}` | {default} | {least} | {onnx} |"


def _type(cls: type[Declared], f: Field) -> str:
    return str(cls.__dataclass_fields__[f.name].type)  # type: ignore[attr-defined]


def _plain(value: Any) -> str:
    return f"({' '.join(map(str, value))})" if isinstance(value, tuple) else str(value)


def _inputs(cls: type[Declared]) -> list[str]:
    return list(inspect.signature(cls.eval).parameters)[2:]


def _needs(cls: type[Declared]) -> set[str]:
    """What it needs by itself, and what the operators need of which its first definition is made."""
    seen, found = {cls.name}, set[str]()
    for name in (todo := [cls.name]):  # which grows
        _, meanings = _defined(name)
        found |= CATALOGUE[name].needs
        inner = {t.operator.name for t in subterms(*meanings[:1]) if not t.is_variable} - seen
        seen |= inner
        todo += sorted(inner)
    return found


def _definition(cls: type[Declared]) -> str:
    term, meanings = _defined(cls.name)
    if term is None:
        return "It has a definition, which no small example shows."
    given = form("given", *(form(f"?{v.label}", *map(str, v.shape)) for v in term.inputs))
    shown = "\n\nor\n\n".join(f"```\n{_program(meaning)}\n```" for meaning in meanings)
    return f"Definition of `{show(term_sexp(term))}`, `{show(given)}`:\n\n{shown}"


@cache
def _defined(name: str) -> tuple[Term | None, tuple[Term, ...]]:
    """Of an operator, the first example that has a definition, and its definitions."""
    cls = CATALOGUE[name]
    if cls.definition is Declared.definition and cls.definitions is Declared.definitions:
        return None, ()
    for term in _examples(cls):
        assert isinstance(term.operator, Declared)
        meanings = term.operator.definitions(*term.inputs)
        if meanings:
            return term, meanings
    return None, ()


def _examples(cls: type[Declared]) -> Iterator[Term]:
    """The operator over small inputs, wherever it takes them."""
    tried: list[tuple[Any, ...]] = [f.facts.sample or USUAL.get(_type(cls, f), (1,)) for f in cls.fields]
    chosen = [t if f.default is MISSING else (f.default,) for t, f in zip(tried, cls.fields, strict=True)]
    for values in itertools.product(*chosen):
        for shapes in itertools.product(SHAPES, repeat=cls.arity):
            try:
                with assuming() as conditions:
                    term = cls(*values)(*map(variable, _inputs(cls), shapes))
            except (SuperoptError, ArithmeticError, LookupError, TypeError, ValueError):
                continue  # a rule met a rank that it did not foresee
            if not conditions:
                yield term


def _program(root: Term) -> str:
    """A term as text; what is used more than once stands on a line of its own before it."""
    used: dict[Term, int] = {}
    for term in subterms(root):
        for i in term.inputs:
            used[i] = used.get(i, 0) + 1
    names: dict[Term, str] = {}
    lines = []
    for term in subterms(root):
        if used.get(term, 0) > 1 and term.inputs and not term.constant:
            text = _broken(term_sexp(term, names))
            names[term] = f"t{len(names) + 1}"
            lines.append(f"?{names[term]} = {_hanging(text, len(names[term]) + 4)}")
    return "\n".join([*lines, _broken(term_sexp(root, names))])


def _broken(sexp: Sexp, indent: int = 0) -> str:
    """The text of an expression; where that is long, a line for each form in it."""
    text = show(sexp)
    if indent + len(text) <= WIDTH or not isinstance(sexp, Form):
        return text
    lines = [f"({show(sexp.items[0])}"]
    for item in sexp.items[1:]:
        plain = not isinstance(item, Form) or not item.items or show(item.items[0]).lstrip("-").isdigit()
        if plain and len(lines) == 1:
            lines[0] += f" {show(item)}"
        else:
            lines.append(f"{' ' * (indent + 2)}{_broken(item, indent + 2)}")
    return "\n".join(lines) + ")"


def _hanging(text: str, by: int) -> str:
    return text.replace("\n", "\n" + " " * by)


def _other_forms() -> Iterator[str]:
    """ONNX operators that are read as terms of operators with other names."""
    rows = []
    for (_, op_type), reader in sorted(READERS.items()):
        module = getattr(reader, "__module__", "")
        if not isinstance(getattr(reader, "__self__", None), type) and module.startswith(f"{PACKAGE}."):
            rows.append(f"| `{op_type}` | {_sentence(reader.__doc__)} | {_group(module)} |")
    if rows:
        yield "## Other forms"
        yield "ONNX operators that are another form of declared ones."
        yield "\n".join(["| ONNX | read as | in |", "| --- | --- | --- |", *rows])


def _sentence(doc: str | None) -> str:
    """The first sentence of a docstring, on one line."""
    text = " ".join((doc or "").split())
    found = re.match(r"(?:`[^`]*`|.)*?\.(?=\s|$)", text)
    return found.group() if found else text


def main() -> None:
    """Write the page; given files that declare operators, print what it would say of those."""
    files = sys.argv[1:]
    if files:
        print("\n\n".join(entry(cls) for cls in declare_files(map(Path, files))))
    else:
        PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
