"""S-expressions: a reader that knows where it is, and a printer that is its exact inverse.

An expression is an atom (a `Word`, an `int`, a `float` or a quoted `Quoted` string) or a `Form`, a list of expressions.
Comments run from `;` to the end of the line. Every expression knows its line and column, so that whoever gives it a
meaning can say where it fails.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TypeAlias

from superopt.errors import ParseError

# None of these is to be changed; with all of them frozen reading would take 1.7 times as long.


@dataclass(slots=True, unsafe_hash=True)
class Place:
    """Where a piece of text stands: source name, line and column, both from 1."""

    source: str = "<text>"
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}"


NOWHERE = Place()


@dataclass(slots=True, unsafe_hash=True)
class Atom:
    """A word, a number, or a string in double quotes."""

    value: str | int | float
    quoted: bool = False
    place: Place = field(default=NOWHERE, compare=False)


@dataclass(slots=True, unsafe_hash=True)
class Form:
    """A parenthesized list."""

    items: tuple[Sexp, ...]
    place: Place = field(default=NOWHERE, compare=False)

    @property
    def head(self) -> str:
        """The word a form begins with. Raises `ParseError` where it begins with anything else."""
        if self.items and isinstance(self.items[0], Atom) and isinstance(self.items[0].value, str):
            return self.items[0].value
        raise ParseError(f"{self.place}: expected a form that begins with a word, found {show(self)}")


Sexp: TypeAlias = "Atom | Form"

_TOKEN = re.compile(r"""[ \t\r]*(?:;[^\n]*)?(?:(\n)|(\()|(\))|([^\s()";]+)|("(?:[^"\\\n]|\\.)*")|(\Z)|(.|\s))""")
_NEWLINE, _OPENED, _CLOSED, _WORD, _STRING, _END = range(1, 7)
"""The groups of a token; what is none of these is no token."""
_DIGITS = 300
_INTEGER = re.compile(r"[+-]?\d+")
_OF_NUMBERS = frozenset("+-.0123456789in")
"""What the text of a number may begin with."""
_REAL = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?|[+-]?inf|nan")


def read(text: str, source: str = "<text>") -> list[Sexp]:
    """All expressions of a text. Raises `ParseError` with source, line, column and what was expected."""
    opened: list[tuple[Place, list[Sexp]]] = []
    items: list[Sexp] = []
    line, before = 1, -1
    for match in _TOKEN.finditer(text):
        kind = match.lastindex
        if kind == _NEWLINE:
            line, before = line + 1, match.end() - 1
        elif kind == _CLOSED and opened:
            inner, (start, items) = items, opened.pop()
            items.append(Form(tuple(inner), start))
        elif kind == _END:
            break
        else:
            assert kind is not None
            place = Place(source, line, match.start(kind) - before)
            if kind == _WORD:
                items.append(_word(match[_WORD], place))
            elif kind == _OPENED:
                opened.append((place, items))
                items = []
            elif kind == _STRING:
                items.append(_string(match[_STRING], place))
            elif kind == _CLOSED:
                raise ParseError(f"{place}: ')' without '(' before it")
            else:
                raise ParseError(f"{place}: a string in double quotes is not closed on its line")
    if opened:
        raise ParseError(f"{opened[-1][0]}: '(' is never closed")
    return items


def show(expression: Sexp) -> str:
    """The text of an expression, on one line; `read` gives the expression back."""
    if isinstance(expression, Form):
        return f"({' '.join(map(show, expression.items))})"
    if expression.quoted:
        return json.dumps(expression.value)
    return repr(expression.value) if isinstance(expression.value, float) else str(expression.value)


def word(value: str | int | float) -> Atom:
    """An atom without a place."""
    return Atom(value)


def is_word(text: str) -> bool:
    """Whether a text is read as one word: not as a number, a string, or several expressions."""
    try:
        return read(text) == [Atom(text)]
    except ParseError:
        return False


def form(*items: Sexp | str | int | float) -> Form:
    """A form of expressions and plain values, without a place."""
    return Form(tuple(item if isinstance(item, Atom | Form) else Atom(item) for item in items))


def _string(token: str, place: Place) -> Atom:
    try:
        return Atom(json.loads(token), True, place)
    except json.JSONDecodeError as error:
        raise ParseError(f"{place}: not a string: {token} ({error.msg})") from None


def _word(token: str, place: Place) -> Atom:
    """A word, or a number where it is written as one."""
    if token[0] not in _OF_NUMBERS:
        return Atom(token, False, place)
    if _INTEGER.fullmatch(token):
        if len(token) > _DIGITS:
            raise ParseError(f"{place}: an integer of {len(token)} digits; {_DIGITS} at most are expected")
        return Atom(int(token), False, place)
    return Atom(float(token) if _REAL.fullmatch(token) else token, False, place)
