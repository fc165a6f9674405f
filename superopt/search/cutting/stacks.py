"""What is joined on its way to what goes through it place by place: a cut between would leave a copy of all."""

from __future__ import annotations

from collections.abc import Container, Iterator

from superopt.onnx_io.program import Program, Step
from superopt.operators.chains import joined
from superopt.operators.declared import Declared
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.picks import Take
from superopt.operators.products import multiplied
from superopt.operators.reductions import Reduction
from superopt.relations import is_one
from superopt.term import Term, subterms


def stacks(program: Program, run: range) -> dict[str, int]:
    """The values of a run that are joined and then reshaped to be transposed, and what they are reshaped to, which
    count twice; and those that are stacked and then reduced along that axis, and what is computed of them between,
    which count as the values that they are made of: no place behind a stack is narrower than those before it. So do
    windows that are laid out and then reduced: they count twice.
    """
    twice = _to_be_moved(program, run) | _laid_out_to_be_reduced(program, run)
    return dict.fromkeys(twice, 2) | _to_be_reduced(program, run)


def _to_be_moved(program: Program, run: range) -> set[str]:
    transposed, viewed, found = set[str](), set[str](), set[str]()
    for number in reversed(run):
        step = program.steps[number]
        for op in (t.operator for t in step.terms):
            if isinstance(op, Transpose):
                transposed.update(step.inputs)
            elif isinstance(op, Reshape) and transposed.intersection(step.outputs):
                viewed.update((*step.inputs, *step.outputs))
            elif isinstance(op, Concat) and viewed.intersection(step.outputs):
                found.update(step.outputs)
    readers = (s for s in (program.steps[n] for n in run) if found.intersection(s.inputs))
    return found.union(*(s.outputs for s in readers if viewed.intersection(s.outputs)))


def _laid_out_to_be_reduced(program: Program, run: range) -> set[str]:
    reduced, laid_out = set[str](), set[str]()
    for step in (program.steps[n] for n in reversed(run)):
        reduces = any(isinstance(t.operator, Reduction) for t in step.terms)
        if reduces or (reduced.intersection(step.outputs) and _lays_out(step)):
            reduced.update(step.inputs)
    for step in (program.steps[n] for n in run):
        takes = [t.operator for t in subterms(*step.terms) if isinstance(t.operator, Take)]
        repeats = any(len(set(op.indices)) < len(op.indices) for op in takes)
        if repeats or (laid_out.intersection(step.inputs) and _lays_out(step)):
            laid_out.update(step.outputs)
    return reduced & laid_out


def _lays_out(step: Step) -> bool:
    """Whether it moves, or computes element by element."""
    moves = [t for t in subterms(*step.terms) if isinstance(t.operator, Take | Transpose)]
    return bool(moves) or _is_pointwise(step)


def _to_be_reduced(program: Program, run: range) -> dict[str, int]:
    reduced: dict[str, set[int]] = {}
    for step in (program.steps[n] for n in reversed(run)):
        axes = set(_axes_of(step)).union(*(reduced.get(name, ()) for name in step.outputs if _is_pointwise(step)))
        for name in step.inputs if axes else ():
            reduced.setdefault(name, set()).update(axes)
    found: dict[str, int] = {}
    for step in (program.steps[n] for n in run):
        before = [found[name] for name in step.inputs if name in found and _is_pointwise(step)]
        for name, term in zip(step.outputs, step.terms, strict=False):
            stacked = _stacked(term, reduced.get(name, ()))
            if name in reduced and (stacked or before):
                found[name] = stacked or sum(before)
    return found


def _axes_of(step: Step) -> Iterator[int]:
    """Along which axes it reduces, or multiplies all places."""
    for t in subterms(*step.terms):
        if isinstance(t.operator, Reduction):
            yield from t.operator.axes
        elif (product := multiplied(t)) is not None:
            yield product[1]


def _is_pointwise(step: Step) -> bool:
    operators = [t.operator for t in subterms(*step.terms) if not t.is_variable]
    return all(isinstance(op, Expand | Reshape) or (isinstance(op, Declared) and op.pointwise) for op in operators)


def _stacked(term: Term, axes: Container[int]) -> int:
    """How many single places a term joins along one of some axes; none where it joins longer parts."""
    joint = term.operator
    if not isinstance(joint, Concat) or joint.axis not in axes:
        return 0
    parts = joined(term)
    return len(parts) if all(is_one(part.shape[joint.axis]) for part in parts) else 0
