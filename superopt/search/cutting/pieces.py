"""Cutting a model into pieces that are searched one by one, and equal pieces only once.

A piece is a run of neighbouring understood nodes in topological order, so nothing outside of it stands between two of
its nodes. Cuts are made where few values cross. Terms are interned, so a rewrite renews every term above it: within a
piece that is a few dozen terms, however large the model is. What a rewrite would span that lies on both sides of a cut
is in a joined piece: some that follow each other, as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from superopt.cost.domains import is_measurable
from superopt.cost.layouts import Place, between
from superopt.cost.whole import fingerprint
from superopt.demands import assuming
from superopt.onnx_io.program import Program
from superopt.search.cutting.cuts import WAIST, Readers, crossings, cut_apart, readers_of
from superopt.search.cutting.layouts import Layouts, layouts_of
from superopt.search.cutting.numbers import with_numbers, without_zeros
from superopt.search.cutting.repeated_channels import RepeatedChannels
from superopt.search.cutting.tables import Tables
from superopt.term import Graph, Term, replace_all, variable, variables

LARGEST_JOINED = 48
"""How many nodes a joined piece has at most: a whole step of NasRNN, which is cut in four, has 46."""


@dataclass(frozen=True)
class Piece:
    """Some steps of a program as one graph over its values; `names` are the values that its outputs are.

    `steps` are their numbers in the program. `joined` are the inputs that come in blocks of channels, `followed` says
    of each output whether it is read so. `shown` are the inputs that the graph has as what they are equal to.
    """

    graph: Graph
    names: tuple[str, ...]
    origins: dict[Term, str]
    """The value that each term within the piece is in the original."""
    joined: frozenset[Term]
    followed: tuple[bool, ...]
    steps: range
    shown: Mapping[Term, Term]

    @cached_property
    def canonical(self) -> Graph:
        """The same graph with its variables renamed by first use: equal pieces have equal ones."""
        return Graph(tuple(self.renaming.values()), renamed(self.graph.outputs, self.renaming))

    @property
    def plain(self) -> Graph:
        """The canonical graph with nothing shown: what the model has."""
        shown = renamed(tuple(self.shown.values()), self.renaming)
        back = dict(zip(shown, (self.renaming[v] for v in self.shown), strict=True))
        return Graph(self.canonical.inputs, renamed(self.canonical.outputs, back)) if back else self.canonical

    @cached_property
    def renaming(self) -> dict[Term, Term]:
        """From the program's variables to the canonical ones."""
        used = variables(*self.graph.outputs)
        return {v: variable(f"v{i}", v.shape, v.type.dtype, v.constant) for i, v in enumerate(used)}

    @property
    def place(self) -> Place:
        """What stands around it, by the names of the canonical variables."""
        return Place(frozenset(new.label for old, new in self.renaming.items() if old in self.joined), self.followed)

    @property
    def fingerprint(self) -> str:
        """What tells it, and what stands around it, from others."""
        return fingerprint(between(self.canonical, self.place))

    def placed(self, outputs: Sequence[Term]) -> tuple[Term, ...]:
        """Terms over the canonical variables, back over the program's, with its values in place of what is shown."""
        return self.hidden(renamed(tuple(outputs), {new: old for old, new in self.renaming.items()}))

    def hidden(self, terms: tuple[Term, ...]) -> tuple[Term, ...]:
        """Terms over the program's variables, these in place of what they are shown as."""
        return renamed(terms, {whole: v for v, whole in self.shown.items()}) if self.shown else terms


class Known(NamedTuple):
    """What of a program's values pieces are shown as something that they are equal to."""

    tables: Tables
    channels: RepeatedChannels

    @classmethod
    def of(cls, program: Program) -> Known:
        """Nothing is looked at until a piece asks."""
        return cls(Tables(program), RepeatedChannels(program))

    def shown(self, outputs: Sequence[Term]) -> dict[Term, Term]:
        """What is read below some terms, and what it is equal to."""
        return self.tables.shown(outputs) | self.channels.shown(outputs)


class Around:
    """What is told of a program as a whole, wherever it is cut; remembers what it found."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.layouts: Layouts = layouts_of(program)
        self.readers: Readers = readers_of(program)
        self.known = Known.of(program)
        self._terms: dict[int, tuple[Term, ...]] = {}

    def terms(self, number: int) -> tuple[Term, ...]:
        """The terms of a step, by its number, as pieces have them."""
        if number not in self._terms:
            terms = without_zeros(self.program, self.program.steps[number].terms)
            self._terms[number] = with_numbers(self.program, terms)
        return self._terms[number]


def cut_into_pieces(program: Program, around: Around | None = None) -> list[Piece]:
    """The pieces of a program, in topological order; nodes that are opaque or cannot be measured are in none. What is
    `around` them is told anew where it is not known.
    """
    around = around or Around(program)
    pieces: list[Piece] = []
    start = 0
    for end, step in enumerate([*program.steps, None]):
        if step is not None and step.terms and all(map(is_measurable, step.terms)):
            continue
        parts = cut_apart(program, range(start, end), around.readers)
        pieces += [_piece(around, part) for part in parts]
        start = end + 1
    return [p for p in pieces if any(not o.is_variable for o in p.graph.outputs)]


def joined_pieces(program: Program, pieces: Sequence[Piece], around: Around | None = None) -> list[Piece]:
    """Pieces that follow each other as one: each cut is within one of these, if that is not too large."""
    around = around or Around(program)
    spans = [span for run in _runs(pieces) for span in _spans(program, pieces, run, around.readers)]
    return [_piece(around, _steps(pieces, span)) for span in spans]


def distinct(pieces: Sequence[Piece]) -> dict[tuple[Term, ...], list[Piece]]:
    """The pieces, equal ones among equal layouts together, by the outputs of their canonical graph so surrounded."""
    groups: dict[tuple[Term, ...], list[Piece]] = {}
    for piece in pieces:
        groups.setdefault(between(piece.canonical, piece.place).outputs, []).append(piece)
    return groups


def _runs(pieces: Sequence[Piece]) -> list[range]:
    """The longest runs of pieces, by number, between which nothing stands."""
    apart = [i for i, (a, b) in enumerate(pairwise(pieces), start=1) if a.steps.stop != b.steps.start]
    return [range(*ends) for ends in pairwise([0, *apart, len(pieces)])]


def _spans(program: Program, pieces: Sequence[Piece], run: range, readers: Readers) -> list[range]:
    """The pieces of a run that are joined: all, if they are few enough; else those from waist to waist, and two where
    that is too much, or a waist lies between them.
    """
    if len(run) < 2:
        return []
    crossing = crossings(program, _steps(pieces, run), readers)
    waists = [i for i in run[1:] if crossing[pieces[i].steps.start] <= WAIST]
    wholes = [run] if _is_small(pieces, run) else [range(*ends) for ends in pairwise([run.start, *waists, run.stop])]
    wholes = [span for span in wholes if len(span) > 1 and _is_small(pieces, span)]
    pairs = [range(i - 1, i + 1) for i in run[1:] if not any(i - 1 in w and i in w for w in wholes)]
    return sorted((*wholes, *(p for p in pairs if _is_small(pieces, p))), key=lambda span: span.start)


def _steps(pieces: Sequence[Piece], span: range) -> range:
    return range(pieces[span.start].steps.start, pieces[span.stop - 1].steps.stop)


def _is_small(pieces: Sequence[Piece], span: range) -> bool:
    return len(_steps(pieces, span)) <= LARGEST_JOINED


def _piece(around: Around, part: range) -> Piece:
    program = around.program
    composed: dict[Term, Term] = {}
    origins: dict[Term, str] = {}
    names: list[str] = []
    for number in part:
        # Variables of the step's term that the piece itself computes are replaced by their terms.
        step, terms = program.steps[number], around.terms(number)
        terms = renamed(terms, {v: composed[v] for v in variables(*terms) if v in composed})
        for name, term in zip(step.outputs, terms, strict=False):
            if name in program.values:
                composed[program.values[name]] = term
                origins.setdefault(term, name)
                if any(reader not in part for reader in around.readers.get(name, ())):
                    names.append(name)
    outputs = tuple(composed[program.values[n]] for n in names)
    shown = around.known.shown(outputs)
    outputs = renamed(outputs, shown) if shown else outputs
    graph, layouts = Graph(tuple(variables(*outputs)), outputs), around.layouts
    followed = tuple(any(n not in part for n in layouts.read.get(program.values[name], ())) for name in names)
    return Piece(graph, tuple(names), origins, layouts.made.intersection(graph.inputs), followed, part, shown)


def renamed(outputs: tuple[Term, ...], new: Mapping[Term, Term]) -> tuple[Term, ...]:
    """Terms over other terms of the same types: what was assumed of symbolic sizes when they were read still is."""
    with assuming():
        return replace_all(outputs, new)
