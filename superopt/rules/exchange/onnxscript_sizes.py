"""The sizes of a rule as local variables of a generated check: where each is read, and what is compared with it."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from superopt.dim import Dim, Floor, Symbol, symbol_name
from superopt.rules.exchange.onnxscript_nodes import LISTS, Value, reading
from superopt.rules.exchange.onnxscript_places import NotInOnnxscript, Placed

Target: TypeAlias = "str | tuple[str, ...]"

WIDTH = 116
"""A longer statement has a line for each argument."""


class Names:
    """Names of the generated source, each once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)

    def fresh(self, wanted: str) -> str:
        """A name that stands for nothing else yet."""
        plain = re.sub(r"\W", "_", wanted, flags=re.ASCII) or "_"
        plain = f"_{plain}" if plain[0].isdigit() or plain == "_" or keyword.iskeyword(plain) else plain
        name, count = plain, 1
        while name in self.taken:
            count += 1
            name = f"{plain}_{count}"
        self.taken.add(name)
        return name


class _Unbound(Exception):
    """A size that nothing read so far gives."""


class Sizes:
    """What a check reads of the matched tensors and nodes. Raises `NotInOnnxscript` for a size that nothing gives."""

    def __init__(self, left: Sequence[Placed], called: Callable[[Placed], str], names: Names) -> None:
        self.names = names
        self.bound: dict[str, str] = {}
        self.compared: list[tuple[str, Value]] = []
        self._used: set[str] = set()
        self._read: list[tuple[list[Target], str]] = []
        nodes = [p for p in left if not p.term.is_variable]
        waiting = [p for p in nodes if not isinstance(p.term.operator, LISTS)]
        waiting += [p for p in left if p.term.is_variable]
        waiting += [p for p in nodes if isinstance(p.term.operator, LISTS)]
        try:
            while waiting:
                waiting = self._read_some(waiting, called)
            for _, value in self.compared:
                self.literal(value)
        except _Unbound as size:
            raise NotInOnnxscript(f"the size {size} stands nowhere by itself, only within a formula") from None

    def lines(self) -> list[str]:
        """The statements that read sizes, and those that compare the ones that are given already."""
        kept = {name: name if name in self._used else "_" for name in self.bound.values()}
        read = []
        for targets, call in self._read:
            shown = [_shown(t, kept) for t in targets]
            read.append(f"{as_targets(shown)} = {call}" if any(s != "_" for s in shown) else call)
        return [*read, *(f"same({name}, {self.literal(value)})" for name, value in self.compared)]

    def text(self, dim: Dim) -> str:
        """A size as Python source."""
        if isinstance(dim, int):
            return str(dim)
        parts = []
        for monomial, coefficient in dim.terms:
            factors = [str(coefficient)] if coefficient != 1 or not monomial else []
            factors += [self._atom(atom) for atom in monomial]
            parts.append(" * ".join(factors))
        return " + ".join(parts).replace("+ -1 * ", "- ").replace("+ -", "- ")

    def literal(self, value: Value) -> str:
        """A value that an attribute must have, as Python source."""
        if isinstance(value, tuple):
            return as_tuple(map(self.text, value))
        return (
            quoted(value) if isinstance(value, str) else repr(value) if isinstance(value, float) else self.text(value)
        )

    def _atom(self, atom: Symbol | Floor) -> str:
        if isinstance(atom, Floor):
            return f"quotient({self.text(atom.numerator)}, {self.text(atom.denominator)})"
        if atom.name not in self.bound:
            raise _Unbound(atom.name)
        self._used.add(self.bound[atom.name])
        return self.bound[atom.name]

    def _read_some(self, waiting: Sequence[Placed], called: Callable[[Placed], str]) -> list[Placed]:
        """Read what can be read with the sizes bound so far; what is left. Raises `_Unbound` where that is all."""
        left: list[Placed] = []
        for place in waiting:
            try:
                self._read_one(place, called(place))
            except _Unbound:
                left.append(place)
                if len(left) == len(waiting):
                    raise
        return left

    def _read_one(self, place: Placed, name: str) -> None:
        values: Sequence[Value] = place.term.shape
        if not place.term.is_variable:
            read = reading(place.term, name, self.text)
            values, call = read.gives, read.call
        elif place.frame is None:
            call = f"shape({name}, {len(values)})"
        else:
            call = f"aligned({name}, {place.frame.axes}, {place.frame.rank})"
        self._read.append(([self._target(v, f"{name}_{i}") for i, v in enumerate(values)], call))

    def _target(self, value: Value, name: str) -> Target:
        """What takes a value that is read: the size that it gives, or a name to compare."""
        if isinstance(value, tuple) and any(symbol_name(v) not in (None, *self.bound) for v in value):
            parts = [self._target(v, f"{name}_{i}") for i, v in enumerate(value)]
            return tuple(p for p in parts if isinstance(p, str))
        symbol = None if isinstance(value, tuple | str | float) else symbol_name(value)
        if symbol is not None and symbol not in self.bound:
            self.bound[symbol] = self.names.fresh(symbol)
            return self.bound[symbol]
        compared = self.names.fresh(name)
        self.compared.append((compared, value))
        return compared


def _shown(target: Target, kept: dict[str, str]) -> str:
    if isinstance(target, str):
        return kept.get(target, target)
    parts = [kept.get(name, name) for name in target]
    return as_tuple(parts) if any(p != "_" for p in parts) else "_"


def quoted(text: str) -> str:
    """A string in Python source."""
    return json.dumps(text)


def as_tuple(parts: Iterable[str]) -> str:
    """A tuple in Python source."""
    listed = list(parts)
    return f"({', '.join(listed)}{',' if len(listed) == 1 else ''})"


def as_targets(parts: Sequence[str]) -> str:
    """What stands before an assignment of a sequence."""
    return f"({parts[0]},)" if len(parts) == 1 else ", ".join(parts)


def wrapped(line: str) -> list[str]:
    """A statement that ends in a call, with an argument a line where it is too long for one."""
    opening = _last_call(line)
    if len(line) <= WIDTH or opening is None:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    arguments, depth, start = [], 0, opening + 1
    for at in range(opening + 1, len(line) - 1):
        depth += (line[at] in "([{") - (line[at] in ")]}")
        if line[at] == "," and depth == 0:
            arguments.append(line[start:at].strip())
            start = at + 1
    arguments += [rest] if (rest := line[start:-1].strip()) else []
    return [line[: opening + 1], *(f"{indent}    {a}," for a in arguments), f"{indent})"]


def _last_call(line: str) -> int | None:
    """Where the parenthesis that the line ends with was opened."""
    depth = 0
    for at in range(len(line) - 1, -1, -1):
        depth += (line[at] == ")") - (line[at] == "(")
        if depth == 0:
            return at if line.endswith(")") else None
    return None
