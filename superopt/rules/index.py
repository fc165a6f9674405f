"""Which patterns may match a term, found by one walk down it for all of them: a discrimination tree (McCune 1992).

Patterns are spelled from the root down, left to right, operator by operator; those that begin alike share a path. What
a pattern names twice must be the same term. What the walk passes over is whether sizes fit: that is for matching.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from operator import attrgetter
from typing import Generic, TypeAlias, TypeVar

from superopt.operators.declared import Declared
from superopt.rules.rule import of_any_rank
from superopt.term import Term

Letter: TypeAlias = "tuple[object, ...]"
"""An operator with its attributes but for sizes, or a variable (of an empty name); and a rank, or None for any."""

Pending: TypeAlias = "tuple[Term, Pending] | None"
"""Terms that are still to be walked down, the next one first."""

T = TypeVar("T")


class Index(Generic[T]):
    """Patterns by how they are spelled, each with a value; of terms that are a `leaf` they see no more than that."""

    def __init__(self, leaf: Callable[[Term], bool] = attrgetter("is_variable")) -> None:
        self._leaf = leaf
        self._root: _Node[T] = _Node()
        self._size = 0
        self._numbers: dict[Letter, int] = {}
        self._letters: dict[Term, tuple[list[int], list[int]]] = {}

    def __len__(self) -> int:
        return self._size

    def insert(self, pattern: Term, value: T) -> None:
        """Add a pattern; where operators commute it is found either way round."""
        letters = len(self._numbers)
        for word in dict.fromkeys(map(_lettered, _spelled(pattern))):
            node = self._root
            node.last = self._size
            for letter in word:
                if isinstance(letter, int):
                    node = node.again.setdefault(letter, _Node())
                else:
                    node = node.children.setdefault(self._numbers.setdefault(letter, len(self._numbers)), _Node())
                node.last = self._size
            node.values.append((self._size, value))
        self._size += 1
        if len(self._numbers) > letters:
            self.forget_terms()

    def fitting(self, term: Term, since: int = 0) -> list[T]:
        """The values of all patterns that may match a term, in the order of insertion, but for the first `since`."""
        found: dict[int, T] = {}
        walks: list[tuple[_Node[T], Pending, tuple[Term, ...]]] = [(self._root, (term, None), ())]
        while walks:
            node, pending, named = walks.pop()
            if node.last < since:
                continue
            if pending is None:
                found.update(node.values)
                continue
            term, rest = pending
            wild, heads = self._letters.get(term) or self._read(term)
            walks += [(node.children[letter], rest, (*named, term)) for letter in wild if letter in node.children]
            walks += [(further, rest, named) for place, further in node.again.items() if named[place] is term]
            for letter in heads:
                if letter in node.children:
                    below = rest
                    for i in reversed(term.inputs):
                        below = i, below
                    walks.append((node.children[letter], below, named))
        return [found[number] for number in sorted(found) if number >= since]

    def forget_terms(self) -> None:
        """Forget what was remembered of terms."""
        self._letters.clear()

    def _read(self, term: Term) -> tuple[list[int], list[int]]:
        """The numbers of the letters as which a term may be read, of variables and of its operator; those in use."""
        wild, *heads = _letters(term, self._leaf(term))
        numbers = tuple([self._numbers[x] for x in letters if x in self._numbers] for letters in ((wild, _ANY), heads))
        self._letters[term] = read = numbers[0], numbers[1]
        return read


class _Node(Generic[T]):
    def __init__(self) -> None:
        self.children: dict[int, _Node[T]] = {}
        self.again: dict[int, _Node[T]] = {}
        """What follows a variable that was named before, by its place among those that were."""
        self.values: list[tuple[int, T]] = []
        self.last = -1
        """The number of the last pattern that passes here."""


_ANY: Letter = ("", None)


def _letters(term: Term, is_leaf: bool) -> tuple[Letter, ...]:
    """As what a term may be read: as something of its rank, and as its operator, at its rank or at any."""
    wild, op = ("", term.type.rank), term.operator
    if is_leaf or not isinstance(op, Declared):
        return (wild,)
    head = (op.name, op.structure(), len(term.inputs))
    return wild, (*head, term.type.rank), (*head, None)


def _spelled(pattern: Term) -> Iterator[tuple[Letter | Term, ...]]:
    """The words for a pattern, in which variables stand for themselves."""
    op = pattern.operator
    if not isinstance(op, Declared):
        yield (pattern,)
        return
    head = (op.name, op.structure(), len(pattern.inputs), None if of_any_rank(pattern) else pattern.type.rank)
    orders = (pattern.inputs, pattern.inputs[::-1]) if op.commutative else (pattern.inputs,)
    for inputs in orders:
        for words in product(*map(list, map(_spelled, inputs))):
            yield (head, *(letter for word in words for letter in word))


def _lettered(word: tuple[Letter | Term, ...]) -> tuple[Letter | int, ...]:
    """A word with letters for variables; one that was named before is its place among those that were."""
    named: list[Term] = []
    letters: list[Letter | int] = []
    for letter in word:
        if not isinstance(letter, Term):
            letters.append(letter)
        elif letter in named:
            letters.append(named.index(letter))
        else:
            named.append(letter)
            letters.append(("", None if of_any_rank(letter) else letter.type.rank))
    return tuple(letters)
