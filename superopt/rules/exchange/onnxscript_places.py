"""Where the terms of a rule stand when ONNX broadcasts by itself, and at what a rule gains.

An `expand` is no node in a model: a point-wise operator broadcasts its inputs. So what stands below an `expand` is a
tensor whose axes are aligned with some of those around it, and point-wise operators below it compute in that alignment.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from superopt.errors import RuleError
from superopt.operators.declared import Declared
from superopt.operators.layout import Expand
from superopt.rules.rule import Rule
from superopt.term import Term, variables


class NotInOnnxscript(RuleError):
    """A rule that cannot be written as a rewrite of ONNX nodes; names the reason."""


@dataclass(frozen=True)
class Frame:
    """Axis k of a tensor is axis `axes[k]` of a value of that rank, and it is broadcast along the others."""

    axes: tuple[int, ...]
    rank: int

    @property
    def from_the_right(self) -> tuple[int, ...]:
        """The axes as ONNX aligns them."""
        return tuple(self.rank - a for a in self.axes)


@dataclass(frozen=True)
class Placed:
    """A term, and the frame in which it stands; none for one that has its own shape."""

    term: Term
    frame: Frame | None = None

    @property
    def realigned(self) -> bool:
        """Whether this is an operator that knows nothing of frames: its result is brought into this one."""
        op = self.term.operator
        return self.frame is not None and isinstance(op, Declared) and not op.pointwise

    @property
    def inputs(self) -> list[Placed]:
        """What it is computed from. Raises `NotInOnnxscript` for an `expand` that no node carries out."""
        op = self.term.operator
        if self.term.is_variable:
            return []
        assert isinstance(op, Declared)
        if self.realigned:
            return [Placed(self.term)]
        expands = [i for i, t in enumerate(self.term.inputs) if isinstance(t.operator, Expand)]
        carried = range(op.arity) if op.broadcasts is None else op.broadcasts
        if not op.pointwise and expands:
            raise NotInOnnxscript(f"{op.name} does not broadcast by itself, and its input is an expand")
        if self.frame is None and expands and len(expands) == op.arity:
            raise NotInOnnxscript(f"all inputs of {op.name} are broadcast, none has the shape of the result")
        if not set(expands) <= set(carried):
            raise NotInOnnxscript(f"{op.name} does not broadcast its input {expands[0]} by itself")
        return [_below_expands(t, self.frame) for t in self.term.inputs]

    def fits(self, other: Placed) -> bool:
        """Whether this tensor can be read where the other placement of it is expected, as it is."""
        if self.frame is None and other.frame is None:
            return True
        if other.frame is None:
            return False
        rank = self.term.type.rank
        own = self.frame or Frame(tuple(range(rank)), rank)
        return own.from_the_right == other.frame.from_the_right and own.rank <= other.frame.rank


def _below_expands(term: Term, frame: Frame | None) -> Placed:
    while isinstance(term.operator, Expand):
        axes, rank = term.operator.axes, term.type.rank
        frame = Frame(axes, rank) if frame is None else Frame(tuple(frame.axes[a] for a in axes), frame.rank)
        term = term.inputs[0]
    return Placed(term, frame)


def placed(roots: Sequence[Term]) -> list[Placed]:
    """Everything below the roots once for each place, inputs first. Raises `NotInOnnxscript`."""
    if any(isinstance(root.operator, Expand) for root in roots):
        raise NotInOnnxscript("an output is an expand, and no node carries it out")
    found: dict[Placed, None] = {}
    stack = [(Placed(root), False) for root in reversed(roots)]
    while stack:
        place, expanded = stack.pop()
        if expanded:
            found[place] = None
        elif place not in found:
            stack.append((place, True))
            stack.extend((i, False) for i in reversed(place.inputs))
    return list(found)


def left_of(rule: Rule) -> list[Placed]:
    """The placed terms of the left. Raises `NotInOnnxscript` for what is not one node of a model there."""
    left = placed(rule.source)
    for place in left:
        if place.realigned:
            raise NotInOnnxscript(f"{place.term.operator.name} is computed before it is broadcast")
    return left


def reshapes(place: Placed, left: Sequence[Placed]) -> bool:
    """Whether a tensor on the right is one of the left under another shape, for which a Reshape is written."""
    if not place.term.is_variable:
        return place.realigned
    return not any(known.fits(place) for known in left if known.term is place.term)


def gains(rule: Rule, left: Sequence[Placed], right: Sequence[Placed]) -> list[frozenset[Term]]:
    """The sets of variables such that, where exactly these are known before the model runs, fewer operators are left.

    First those that compute count, then all. So no sequence of rewrites that gain goes on for ever.
    """
    subsets = (frozenset(s) for n in range(len(rule.given)) for s in itertools.combinations(rule.given, n))
    identities = sum(t.is_variable for t in rule.target)
    return [s for s in subsets if _cost(right, left, s, identities) < _cost(left, left, s, 0)]


def _cost(side: Sequence[Placed], left: Sequence[Placed], known: frozenset[Term], more: int) -> tuple[int, int]:
    running = [p for p in side if not set(variables(p.term)) <= known]
    moving = [p for p in running if reshapes(p, left) or (isinstance(op := p.term.operator, Declared) and op.moves)]
    computing = [p for p in running if p not in moving and not p.term.is_variable]
    return len(computing), len(computing) + len(moving) + more


def merged(left: Sequence[Placed]) -> list[tuple[tuple[Term, Term], ...]]:
    """Pairs of variables which, if all are one, make two operators of the left the same: so they must not be."""
    operators = [p.term for p in left if not p.term.is_variable]
    found = (_identified(a, b) for a, b in itertools.combinations(operators, 2))
    return list(dict.fromkeys(tuple(dict.fromkeys(pairs)) for pairs in found if pairs))


def _identified(a: Term, b: Term) -> list[tuple[Term, Term]] | None:
    """The variables that differ in two terms, pair by pair; None where something else does."""
    if a is b:
        return []
    if a.is_variable or b.is_variable:
        return [(a, b)] if a.is_variable and b.is_variable and a.type.rank == b.type.rank else None
    if type(a.operator) is not type(b.operator) or str(a.operator) != str(b.operator):
        return None
    parts = [_identified(x, y) for x, y in zip(a.inputs, b.inputs, strict=True)]
    return None if any(p is None for p in parts) else list(_joined(parts))


def _joined(parts: Sequence[list[tuple[Term, Term]] | None]) -> Iterator[tuple[Term, Term]]:
    return (pair for part in parts if part is not None for pair in part)
