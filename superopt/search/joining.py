"""Sizes of inputs that a model joins with what it computes of others: of states over the frames of a film, or of what
another network has added.

Their names and places do not say them, as they hang on how often an image was halved. But what an input is added to, or
stands beside, has its sizes, and these are seen where what it is made of is known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from superopt.dim import symbol_name
from superopt.onnx_io import Program
from superopt.onnx_io.program import Step
from superopt.onnx_io.said import concat_axis, is_a
from superopt.search.settings import Setting, sized
from superopt.substitution import symbols

JOINS = frozenset({"Add", "Sub", "Mul", "Div", "Concat"})
"""Operators whose inputs are of the same sizes, but for the axis along which some stand beside each other."""

MOST_SHOWN = 16
"""So many values are looked at, at most: for each the model is read and run."""

Show = Callable[[str, Setting], Sequence[int] | None]
"""The shape of an inner value at some sizes, where it can be seen."""


def with_joined(program: Program, known: Mapping[str, int], show: Show) -> dict[str, int]:
    """The sizes that are known, and those of inputs that are joined with what is made of these, one after the other."""
    found, shown = dict(known), dict[str, Sequence[int]]()
    tried = set[tuple[str, str]]()
    while place := next((p for p in _places(program, found) if p[:2] not in tried), None):
        symbol, value, axis = place
        tried.add((symbol, value))
        if value not in shown and len(shown) < MOST_SHOWN:
            shown[value] = show(value, sized(program, found)) or ()
        size = shown.get(value, ())[axis : axis + 1]
        if size and size[0] > 1:  # one place may stand for many, and says nothing
            found[symbol] = size[0]
    return found


def _places(program: Program, known: Collection[str]) -> Iterator[tuple[str, str, int]]:
    """Symbols that are not known, each with an inner value that is made of what is, and its axis of that size."""
    shapes = {name: program.values[name].shape for name in program.inputs if name in program.values}
    left = {n for n, shape in shapes.items() if any(symbols(d).difference(known) for d in shape)}
    made = {name: step for step in program.steps for name in step.outputs}
    for step in program.steps:
        for name in left.intersection(step.inputs) if _joins(step) else ():
            beside = _axis_beside(step, len(shapes[name]))
            alike = [v for v in step.inputs if v in made and v in program.values]
            told = [v for v in alike if program.values[v].type.rank == len(shapes[name]) and not _needs(v, made, left)]
            for axis, dim in enumerate(shapes[name]):
                symbol = symbol_name(dim)
                if symbol is not None and symbol not in known and axis != beside:
                    yield from ((symbol, value, axis) for value in told)


def _joins(step: Step) -> bool:
    """Whether a step is one of ONNX's own that join: of another domain's nothing is known but the name."""
    return is_a(step.node, *JOINS)


def _axis_beside(step: Step, rank: int) -> int | None:
    """The axis along which inputs stand beside each other."""
    return concat_axis(step.node) % rank if step.node.op_type == "Concat" else None


def _needs(value: str, made: Mapping[str, Step], inputs: Collection[str]) -> bool:
    """Whether a value is made of one of some inputs."""
    seen, stack = set[str](), [value]
    while stack:
        name = stack.pop()
        if name in inputs:
            return True
        if name in made and name not in seen:
            seen.add(name)
            stack += made[name].inputs
    return False
