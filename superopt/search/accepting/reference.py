"""The original evaluated in 64-bit floats, by what the declarations mean: tells a wrong program from rounding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from superopt.arithmetic import FLOAT, Array
from superopt.cost.runtime import Feeds
from superopt.cost.sizes import concretize
from superopt.evaluate import evaluate_all
from superopt.memory import trim
from superopt.onnx_io import Program
from superopt.onnx_io.program import Step
from superopt.search.accepting.same import Reference
from superopt.term import Graph, Term, variables
from superopt.verify.check import UNCOMPUTABLE


def reference_of(program: Program, names: Sequence[str] = ()) -> Reference | None:
    """A 64-bit evaluation of the original: of its outputs, or of values of these names. None where a node is opaque."""
    shown = tuple(names) or program.outputs
    if any(not s.terms for s in program.steps):
        return None
    last = {name: i for i, step in enumerate(program.steps) for name in step.inputs}

    def evaluated(feeds: Feeds, stopped: Callable[[], bool] = lambda: False) -> Sequence[Array | None]:
        given = {**_defaults(program, feeds), **feeds}
        values: dict[str, Array] = {name: _widened(array) for name, array in given.items()}
        sizes = _sizes(program, feeds)
        try:
            for i, step in enumerate(program.steps):
                if stopped():
                    return [None] * len(shown)
                with np.errstate(all="ignore"):  # what is infinite or no number is told by the comparison
                    values |= _results(program, step, values, sizes)
                for name in step.inputs:
                    if last[name] == i and name not in shown:
                        values.pop(name, None)
                        program.release(name)
        except UNCOMPUTABLE:  # sizes for which the declarations say nothing, or for which memory is lacking
            return [None] * len(shown)
        program.release_weights()  # sessions that follow need the memory
        trim()
        return [values.get(name) for name in shown]

    return evaluated


def _defaults(program: Program, feeds: Feeds) -> Feeds:
    """The weights that callers may replace, those that are not given: they are inputs, and no constants."""
    free = [v for v in program.model.graph.inputs if v.const_value is not None and v.name not in feeds]
    return {v.name or "": v.const_value.numpy() for v in free if v.const_value is not None}


def _widened(array: Array) -> Array:
    """In 64 bits; integers, which are only moved, as they are."""
    return array if array.dtype.kind in "iu" else np.asarray(array, np.float64)


def _results(program: Program, step: Step, values: dict[str, Array], sizes: dict[str, int]) -> dict[str, Array]:
    """The outputs of one step by name."""
    leaves = tuple(variables(*step.terms))
    graph = concretize(Graph(leaves, step.terms), sizes)
    given: dict[Term, Array] = {}
    for leaf, sized in zip(leaves, graph.inputs, strict=True):
        if leaf.label in program.sizes:
            given[sized] = program.sizes.data(leaf.label, sizes)
        else:
            given[sized] = program.data(leaf.label) if leaf.constant else values[leaf.label]
    return dict(zip(step.outputs, evaluate_all(graph.outputs, FLOAT, given), strict=False))


def _sizes(program: Program, feeds: Feeds) -> dict[str, int]:
    """What the symbols in the shapes of inputs stand for."""
    found: dict[str, int] = {}
    for name, array in feeds.items():
        for dim, size in zip(program.values[name].shape, array.shape, strict=True) if name in program.values else ():
            if not isinstance(dim, int):
                found[str(dim)] = size
    return found
