"""Everything that the search may do to a graph, behind one interface: proved rules, and definitions unfolded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

from superopt.cost.domains import foreign
from superopt.demands import assuming
from superopt.errors import ShapeError, Undecided
from superopt.operators.declared import Declared
from superopt.operators.meanings import FURTHER_DEFINITIONS, SEEN, Meaning, defined
from superopt.rules.idle import is_idle
from superopt.rules.match import build, matches
from superopt.rules.rule import Rule
from superopt.search.rewriting.finders import FINDERS
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.term import Term

Known = Literal["proved", "definition"]


class Rewrite(Protocol):
    """One way of replacing terms by equal ones."""

    @property
    def name(self) -> str:
        """What the report calls it."""

    @property
    def known(self) -> Known:
        """How it is known that both sides are equal."""

    @property
    def by(self) -> tuple[str, ...]:
        """The laws that prove it, if any."""

    @property
    def heads(self) -> tuple[str, ...]:
        """The operators of the terms that it replaces together; they do not depend on each other."""

    @property
    def depth(self) -> int:
        """How many operators below each other it looks at, at most."""

    @property
    def patterns(self) -> tuple[Term, ...]:
        """What the terms must look like, one for each; empty where only trying tells."""

    def at(self, roots: tuple[Term, ...]) -> Iterator[tuple[Term, ...]]:
        """What terms of these operators may be replaced by, one for each."""


@dataclass(frozen=True)
class ByRule:
    """A proved rule, where its sources match."""

    rule: Rule
    known: Known = "proved"

    @property
    def name(self) -> str:
        """The rule's name."""
        return self.rule.name

    @property
    def by(self) -> tuple[str, ...]:
        """The laws that prove the rule."""
        return self.rule.by

    @property
    def heads(self) -> tuple[str, ...]:
        """The operators of its sources."""
        return tuple(s.operator.name for s in self.rule.source)

    @cached_property
    def depth(self) -> int:
        """That of its sources."""
        return max(map(_depth, self.rule.source))

    @property
    def patterns(self) -> tuple[Term, ...]:
        """Its sources."""
        return self.rule.source

    def at(self, roots: tuple[Term, ...]) -> Iterator[tuple[Term, ...]]:
        """The targets, for every match of all sources together."""
        for bindings in matches(self.rule, roots):
            with assuming():  # the proof says that the target is well formed wherever the source is
                built = build(self.rule, bindings)
            if built is not None:
                yield built


@dataclass(frozen=True)
class Unfold:
    """An operator by a term that defines it: its own, or one of `FURTHER_DEFINITIONS` by that name."""

    definition: str
    known: Known = "definition"
    by: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What the report calls it."""
        return f"definition of {self.definition}"

    @property
    def heads(self) -> tuple[str, ...]:
        """The operator."""
        return (self.definition if self._further is None else self._further.operator,)

    @property
    def depth(self) -> int:
        """How deep the definition looks."""
        return SEEN if self._further is None else self._further.depth

    @property
    def _further(self) -> Meaning | None:
        return FURTHER_DEFINITIONS.get(self.definition)

    def _meanings(self, operator: Declared, inputs: tuple[Term, ...]) -> tuple[Term, ...]:
        if self._further is None:
            return operator.definitions(*inputs)
        meaning = self._further.term_of(operator, *inputs)
        return () if meaning is None else (meaning,)

    @property
    def patterns(self) -> tuple[Term, ...]:
        """None, unless the definition says what a term must look like before it looks itself."""
        pattern = None if self._further is None else self._further.pattern
        return () if pattern is None else (pattern,)

    def at(self, roots: tuple[Term, ...]) -> Iterator[tuple[Term, ...]]:
        """The terms that it stands for."""
        (term,) = roots
        assert isinstance(term.operator, Declared)
        with assuming() as conditions:
            try:
                meanings = self._meanings(term.operator, term.inputs)
            except (ShapeError, Undecided):  # no term of these inputs, or it asks what symbolic sizes leave open
                return
        # That no tensor is empty may be assumed of symbolic sizes, as when a model is read.
        if all(c.relation == "<=" for c in conditions):
            yield from ((meaning,) for meaning in meanings)


class _FoundElsewhere:
    """Base of definitions for which a search looks by itself: they match no pattern."""

    known: Known = "definition"
    by: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    depth: int = 0
    patterns: tuple[Term, ...] = ()

    def at(self, roots: tuple[Term, ...]) -> Iterator[tuple[Term, ...]]:
        """None by itself: what is below decides, however deep."""
        return iter(())


@dataclass(frozen=True)
class Fold(_FoundElsewhere):
    """What an operator is defined by, replaced by the operator. Where that is, `fold.py` finds."""

    definition: str

    @property
    def name(self) -> str:
        """What the report calls it."""
        return f"definition of {self.definition}, read backwards"


@dataclass(frozen=True)
class Abreast(_FoundElsewhere):
    """Terms that are computed alike, computed as one. Where that is, `abreast.py` finds."""

    name: str = "computed side by side"


@dataclass(frozen=True)
class Less(_FoundElsewhere):
    """What a finder makes of single terms, so that less is computed."""

    finder: type[Fewer]

    @property
    def name(self) -> str:
        """What the report calls it."""
        return self.finder.name


def _depth(term: Term) -> int:
    return 0 if term.is_variable else 1 + max(map(_depth, term.inputs), default=0)


def rewrites_of(rules: Sequence[Rule], definitions: Sequence[str], spellings: Iterable[str] = ()) -> list[Rewrite]:
    """Definitions first (they are few, and change most), unfolded and read backwards, as spellings are; then rules.

    A rule that brings in an operator of another domain is left out: that has no kernel whose time would speak for it.
    So are those that are idle.
    """
    useful = [r for r in rules if foreign(r.target) <= foreign(r.source) and not is_idle(r)]
    found: list[Rewrite] = []
    found.extend(map(Unfold, definitions))
    found.extend(Fold(d) for d in (*definitions, *spellings) if _is_standard(d))
    found.extend([Abreast(), *map(Less, FINDERS)] if definitions else [])
    found.extend(map(ByRule, useful))
    return found


def _is_standard(definition: str) -> bool:
    """Whether what it defines is one of ONNX's own operators, so that any model may have it."""
    cls = defined(definition)
    return cls.onnx is not None and not cls.domain
