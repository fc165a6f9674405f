"""Inner values that labels are made of keep their names in a candidate, so that they can be compared.

A classifier's label is the largest of its logits, and its scores are their softmax. The label may be the same for all
samples and say nothing, and the scores do not say what the logits are. Where these are no output of the model they are
a term within what replaces both, of which nobody would know the value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from superopt.onnx_io import Program
from superopt.operators.element_types import ONNX_TYPES
from superopt.search.replay import Placement
from superopt.term import Term, variables

DEEPEST = 32
"""So many operators are gone through, one above the other, from an output to a value with its name."""


def with_named(program: Program, placed: Placement) -> Placement:
    """A placement in which values that stand where the original has an inner one, which nothing reads any more, have
    that one's name, where outputs that are no floating-point numbers are made of them by the original's own operators.
    Nothing else is computed by that.

    That they are equal is `supposed`: other values might give the same labels.
    """
    made = program.made
    labels = [n for n in program.outputs if n in placed.new and n in made and not _is_number(placed.new[n])]
    found = {n: t for label in labels for n, t in _standing(placed.new[label], made[label], made, DEEPEST)}
    taken = _read(program, placed.new).union(placed.new) if found else ()
    new = {n: t for n, t in found.items() if n not in taken and t not in placed.origins}
    return Placement(placed.new | new, placed.origins, frozenset(new))


def _is_number(term: Term) -> bool:
    return term.type.dtype in ONNX_TYPES


def _standing(new: Term, old: Term, made: Mapping[str, Term], depth: int) -> Iterator[tuple[str, Term]]:
    """The values of the original that terms stand for, the first numbers on each way down from two terms."""
    if old.is_variable:
        if old.label not in made or new.is_variable or new.type != old.type:
            return
        if _is_number(new):
            yield old.label, new
            return
        old = made[old.label]
    if depth and new.operator == old.operator and len(new.inputs) == len(old.inputs):
        for ours, theirs in zip(new.inputs, old.inputs, strict=True):
            yield from _standing(ours, theirs, made, depth - 1)


def _read(program: Program, new: Mapping[str, Term]) -> set[str]:
    """The names of all values that a candidate's outputs are made of."""
    inputs = {name: step.inputs for step in program.steps for name in step.outputs}
    seen, stack = set[str](), list(program.outputs)
    while stack:
        name = stack.pop()
        if name not in seen:
            seen.add(name)
            stack += [v.label for v in variables(new[name])] if name in new else inputs.get(name, ())
    return seen
