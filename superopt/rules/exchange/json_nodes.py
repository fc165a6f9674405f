"""JSON values that know where they stand in their document, so that whoever reads them can say where it fails."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from superopt.errors import ParseError
from superopt.text import Atom, Place, is_word


def load_node(text: str, source: str) -> Node:
    """The value of a JSON text. Raises `ParseError` with source, line and column."""
    try:
        value = json.loads(text, object_pairs_hook=_Object, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ParseError(f"{source}:{error.lineno}:{error.colno}: expected JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:  # NaN, a number of thousands of digits, endless brackets
        raise ParseError(f"{source}: expected JSON: {error}") from None
    return Node(value, JsonPath(source))


@dataclass(slots=True, unsafe_hash=True)
class JsonPath(Place):
    """A place in a JSON document."""

    path: str = ""

    def __str__(self) -> str:
        return f"{self.source}: {self.path}" if self.path else self.source

    def at(self, key: str | int) -> JsonPath:
        step = f"[{key}]" if isinstance(key, int) else f".{key}" if key.isidentifier() else f"[{json.dumps(key)}]"
        return replace(self, path=(self.path + step).removeprefix("."))


class _Object(dict[str, Any]):
    """An object as it was read, and which key of it stands twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]


@dataclass(frozen=True)
class Node:
    """A value of a JSON document and where it stands."""

    value: Any
    place: JsonPath

    def refuse(self, expected: str) -> NoReturn:
        raise ParseError(f"{self.place}: expected {expected}, found {json.dumps(self.value)[:60]}")

    def fields(self) -> dict[str, Node]:
        if not isinstance(self.value, _Object):
            self.refuse("an object")
        for key in self.value.twice:
            raise ParseError(f"{self.place.at(key)}: expected this key once in its object")
        return {key: Node(value, self.place.at(key)) for key, value in self.value.items()}

    def record(self, *needed: str, optional: tuple[str, ...] = ()) -> dict[str, Node]:
        fields = self.fields()
        for key in needed:
            if key not in fields:
                self.refuse(f"an object with {key}")
        for key, node in fields.items():
            if key not in needed + optional:
                raise ParseError(f"{node.place}: unknown key; expected {', '.join(needed + optional)}")
        return fields

    def items(self) -> list[Node]:
        if not isinstance(self.value, list):
            self.refuse("a list")
        return [Node(value, self.place.at(i)) for i, value in enumerate(self.value)]

    def string(self) -> Atom:
        if not isinstance(self.value, str):
            self.refuse("a string")
        return Atom(self.value, quoted=True, place=self.place)

    def word(self, sign: str = "") -> Atom:
        """A string that stands in the text form as a word, after a sign such as `?`."""
        if not isinstance(self.value, str) or not self.value or not is_word(sign + self.value):
            self.refuse("a word without spaces, brackets, quotes or semicolons that is no number")
        return Atom(sign + self.value, place=self.place)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f'{name} is none; infinities and NaN are the strings "inf", "-inf" and "nan"')
