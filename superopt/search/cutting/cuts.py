"""Where a run of steps is cut: at the narrowest places that keep the parts within bounds, and not through attention."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Container
from itertools import accumulate
from typing import TypeAlias

from superopt.cost.steps import swaps_last_two
from superopt.onnx_io.program import Program, Step
from superopt.operators.conv import Conv
from superopt.operators.declared import Declared
from superopt.operators.differences import Sub
from superopt.operators.layout import Expand, Reshape
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Gemm, Softmax
from superopt.operators.norms import LayerNorm
from superopt.operators.pointwise import Add
from superopt.operators.rearrange import Gather
from superopt.operators.reductions import Mean
from superopt.search.cutting.moments import moments
from superopt.search.cutting.short_rows import short_rows
from superopt.search.cutting.stacks import stacks
from superopt.term import Operator, Term, subterms

NORM_STEPS = 8
"""Within how many steps a norm that is written out reads what it is of."""

Readers: TypeAlias = "dict[str, set[int]]"
"""By the name of a value the numbers of the steps that read it; one more than the last is whoever runs the model."""

SMALLEST, LARGEST = 6, 20
"""How many nodes a piece has, at least (where nothing forces a cut) and at most. Reshapes move nothing, and do not
count to the latter where a piece ends at a narrower place so; what is computed in short rows counts half.
"""

WAIST = 1
"""Where no more values cross, a model is cut although the piece would not be too large."""


def cut_apart(program: Program, run: range, readers: Readers) -> list[range]:
    """A run of steps, by number, cut at the narrowest places that keep the parts within bounds."""
    parts, steps = list[range](), program.steps
    met, scores = moments(program, run), _scores(program, run)
    crossing, (_, normal) = crossings(program, run, readers, met), met
    short = short_rows(program, run)
    first, moving = run.start, [0, *accumulate(0 if _is_view(steps[i]) else 2 - (i in short) for i in run)]
    while len(run) > SMALLEST:
        begin = run.start - first
        most = bisect_right(moving, moving[begin] + 2 * LARGEST) - 1 - begin
        window = run[SMALLEST : min(LARGEST, len(run) - SMALLEST) + 1]
        if len(run) <= LARGEST and not any(crossing[i] <= WAIST for i in window):
            break
        # Of equally narrow places the first before what others are fused with, or else that is not within a norm.
        order = {i: (crossing[i], not _begins(steps[i], scores), _scales(steps[i], normal), i) for i in window}
        end = min(window, key=order.__getitem__, default=run.stop)
        beyond = run[len(window) + SMALLEST : min(most, len(run) - SMALLEST) + 1]
        if narrower := [i for i in beyond if crossing[i] < crossing.get(end, 0)]:
            end = min(narrower, key=lambda i: (crossing[i], i))
        elif len(run) <= most and any(i in short or any(map(_looks_up, steps[i].terms)) for i in run):
            break  # tables, and short rows, stay together where what little follows is too few steps for a piece
        if end - 1 in short and end + SMALLEST < run.stop and _is_view(steps[end]):
            end += 1  # what shows them in another way is where they are turned
        parts.append(range(run.start, end))
        run = range(end, run.stop)
    return [*parts, run] if run else parts


def _is_pointwise(op: Operator) -> bool:
    return isinstance(op, Declared) and op.pointwise


def _is_view(step: Step) -> bool:
    """Whether a step only gives what it reads another shape, or moves indices, or looks rows of a table up by them:
    many tables are looked up at once.
    """
    return all(isinstance(t.operator, Reshape) or "int" in t.type.dtype or _looks_up(t) for t in step.terms)


def _looks_up(term: Term) -> bool:
    return isinstance(term.operator, Gather) and term.inputs[0].constant


def _begins(step: Step, scores: Container[str]) -> bool:
    """Whether what follows a step is fused with it: convolutions and matrix products, but for the end of attention."""
    operators = [t.operator for term in step.terms for t in subterms(term)]
    contracts = any(isinstance(op, Conv | MatMul | Gemm) for op in operators)
    return contracts and not any(name in scores for name in step.inputs)


def _scales(step: Step, normal: Container[str]) -> bool:
    """Whether a step goes on element by element with what was normalized."""
    operators = [t.operator for term in step.terms for t in subterms(term) if not t.is_variable]
    pointwise = all(isinstance(op, Expand) or _is_pointwise(op) for op in operators)
    return pointwise and any(name in normal for name in step.inputs)


def crossings(
    program: Program, run: range, readers: Readers, met: tuple[set[str], set[str]] | None = None
) -> dict[int, int]:
    """For each place before a step of a run, how many values made before it within the run are read after it.

    A matrix that is transposed counts twice, since a product takes it in, and so do scores on their way through a
    softmax: attention takes in both. So does what is joined to be parted otherwise and transposed, as channels are to
    be shuffled, and what is reduced on its way to what it was reduced of: a norm takes in both. And a sum that is taken
    by a norm alone: runtimes fuse these. What is stacked to be reduced counts as what it is made of. `met` are the
    run's moments, where they are known.
    """
    (taken, normal), begin = met or moments(program, run), Counter[int]()
    stacked = stacks(program, run)
    together = _scores(program, run) | taken | _within_norms(program, run, readers, normal)
    for number in run:
        step = program.steps[number]
        for name in step.outputs:
            count = 2 if name in together or any(map(swaps_last_two, step.terms)) else stacked.get(name, 1)
            last = max((min(r, run.stop) for r in readers.get(name, ())), default=number)
            if last > number:
                begin[number + 1] += count
                begin[last + 1] -= count
    return dict(zip(run, accumulate(begin[place] for place in run), strict=True))


def _within_norms(program: Program, run: range, readers: Readers, normal: Container[str]) -> set[str]:
    """The sums of a run that nothing but a norm takes; and what is centred, as far as the norm goes on with it."""
    found: set[str] = set()
    for number in run:
        step = program.steps[number]
        near = {r for name in step.outputs for r in readers.get(name, ())}
        if not near or max(near) > min(number + NORM_STEPS, run.stop - 1):
            continue
        terms = subterms(*(t for r in near for t in program.steps[r].terms))
        operators = [t.operator for t in terms if not (t.is_variable or t.constant)]
        computing = [op for op in operators if not isinstance(op, Expand | Reshape)]
        if any(isinstance(t.operator, Add) for t in step.terms):
            in_norm = bool(computing) and all(isinstance(op, LayerNorm | Mean | Sub) for op in computing)
        else:
            centred = len(near) > 1 and all(name in normal for name in step.outputs)
            in_norm = centred and all(isinstance(op, Mean) or _is_pointwise(op) for op in computing)
        found.update(step.outputs if in_norm else ())
    return found


def _scores(program: Program, run: range) -> set[str]:
    """The values of a run from which softmaxes are computed element by element, and the softmaxes."""
    found: set[str] = set()
    for number in reversed(run):
        step = program.steps[number]
        operators = [t.operator for t in step.terms]
        softmax = any(isinstance(op, Softmax) for op in operators)
        pointwise = all(map(_is_pointwise, operators))
        if softmax or (pointwise and found.intersection(step.outputs)):
            found.update(step.inputs, step.outputs if softmax else ())
    return found


def readers_of(program: Program) -> Readers:
    """Where each value is read."""
    read: dict[str, set[int]] = {name: {len(program.steps)} for name in program.outputs}
    for number, step in enumerate(program.steps):
        for name in step.inputs:
            read.setdefault(name, set()).add(number)
    # A value is also needed by whoever reads what was computed from its shape.
    needed: Readers = {name: set(numbers) for name, numbers in read.items()}
    for name, numbers in read.items():
        for measured in program.sizes.measured.get(name, ()):
            needed.setdefault(measured, set()).update(numbers)
    return needed
