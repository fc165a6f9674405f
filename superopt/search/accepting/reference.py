"""The original evaluated in 64-bit floats, by what the declarations mean: tells a wrong program from rounding."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.arithmetic.floats import FLOAT
from superopt.cost.inputs import Feeds
from superopt.cost.sizes import concretize
from superopt.evaluate import evaluate_all
from superopt.memory import trim
from superopt.onnx_io import Program
from superopt.onnx_io.constants import RANDOM, run_node
from superopt.onnx_io.program import Step
from superopt.onnx_io.skeleton import subgraphs
from superopt.operators.nodes import concrete
from superopt.operators.reduce import Pool
from superopt.search.accepting.laid import Value
from superopt.search.accepting.same import Reference
from superopt.term import REAL, TRUTH, Graph, Term, variables
from superopt.verify.check import UNCOMPUTABLE

MOVING = frozenset(
    [
        "Cast",
        "Concat",
        "Expand",
        "Flatten",
        "Gather",
        "GatherElements",
        "GatherND",
        "Identity",
        "Pad",
        "Reshape",
        "ScatterElements",
        "ScatterND",
        "Slice",
        "Split",
        "Squeeze",
        "Tile",
        "TopK",
        "Transpose",
        "Unsqueeze",
        "Where",
    ]
)
"""Operators that move numbers and compute none: opaque ones, of sizes that are not decided, are run in 64 bits."""

LAID_OUT = 2**20
"""How many elements of windows are laid out at a time: 8 MB."""


def reference_of(program: Program, names: Sequence[str] = ()) -> Reference | None:
    """A 64-bit evaluation of the original: of its outputs, or of values of these names. None where an opaque node
    computes floating-point numbers.
    """
    shown = tuple(names) or program.outputs
    if not all(step.terms or _is_exact(program, step) for step in program.steps):
        return None
    last = {name: i for i, step in enumerate(program.steps) for name in step.inputs}

    def evaluated(
        feeds: Feeds, stopped: Callable[[], bool] = lambda: False, keep: Callable[[Array], Value] = _itself
    ) -> Sequence[Value | None]:
        kept: dict[str, Value] = {}
        given = {**_defaults(program, feeds), **feeds}
        values: dict[str, Array] = {name: _widened(array) for name, array in given.items()}
        sizes = _sizes(program, feeds)
        try:
            for i, step in enumerate(program.steps):
                if stopped():
                    return [None] * len(shown)
                with np.errstate(all="ignore"):  # what is infinite or no number is told by the comparison
                    values |= _results(program, step, values, sizes)
                for name in (*step.inputs, *step.outputs):
                    if last.get(name, i) > i:
                        continue
                    if name in shown and name in values:
                        kept[name] = keep(values[name])  # others that are shown are large too
                    values.pop(name, None)
                    program.release(name)
        except UNCOMPUTABLE:  # sizes for which the declarations say nothing, or for which memory is lacking
            return [None] * len(shown)
        program.release_weights()  # sessions that follow need the memory
        trim()
        return [kept.get(name, values.get(name)) for name in shown]

    return evaluated


def _itself(array: Array) -> Value:
    return array


def _is_exact(program: Program, step: Step) -> bool:
    """Whether an opaque node rounds nothing: it moves numbers, or has to do with none but integers and truth values."""
    types = [program.values[n].type.dtype if n in program.values else "" for n in (*step.inputs, *step.outputs)]
    if not all(types) or step.node.domain or step.node.op_type in RANDOM or any(subgraphs(step.node)):
        return False
    return step.node.op_type in MOVING or not any(t == REAL or "float" in t for t in types)


def _run(program: Program, step: Step, values: Mapping[str, Array], sizes: Mapping[str, int]) -> dict[str, Array]:
    """The outputs of an opaque node by name. Raises `InvalidModel`."""
    given = {}
    for name in step.inputs:
        array, dtype = _value(program, program.values[name], values, sizes), program.values[name].type.dtype
        given[name] = array.astype(bool) if dtype == TRUTH else _widened(array)
    return {name: _widened(array) for name, array in run_node(step.node, given, program.model).items()}


def _value(program: Program, leaf: Term, values: Mapping[str, Array], sizes: Mapping[str, int]) -> Array:
    """What the value that a variable stands for is."""
    if leaf.label in program.sizes:
        return program.sizes.data(leaf.label, sizes)
    return program.data(leaf.label) if leaf.constant else values[leaf.label]


def _defaults(program: Program, feeds: Feeds) -> Feeds:
    """The weights that callers may replace, those that are not given: they are inputs, and no constants."""
    free = [v for v in program.model.graph.inputs if v.const_value is not None and v.name not in feeds]
    return {v.name or "": v.const_value.numpy() for v in free if v.const_value is not None}


def _widened(array: Array) -> Array:
    """In 64 bits; integers, which are only moved, as they are."""
    return array if array.dtype.kind in "iu" else np.asarray(array, np.float64)


def _results(program: Program, step: Step, values: dict[str, Array], sizes: dict[str, int]) -> dict[str, Array]:
    """The outputs of one step by name; the sizes that only these have are entered. Raises what is `UNCOMPUTABLE`."""
    if not step.terms:
        found = _run(program, step, values, sizes)
        sizes |= _sizes(program, found)
        return found
    leaves = tuple(variables(*step.terms))
    graph = concretize(Graph(leaves, step.terms), sizes)
    given: dict[Term, Array] = {}
    for leaf, sized in zip(leaves, graph.inputs, strict=True):
        given[sized] = _value(program, leaf, values, sizes)
    return dict(zip(step.outputs, _evaluated(graph.outputs, given), strict=False))


def _evaluated(roots: tuple[Term, ...], given: Mapping[Term, Array]) -> tuple[Array, ...]:
    """The values of terms. Those of pools of large maps some channels after the others: what stands at each place of
    their windows is laid out side by side.
    """
    (pool, *more) = roots
    if more or not isinstance(pool.operator, Pool):
        return evaluate_all(roots, FLOAT, given)
    (x,) = evaluate_all(pool.inputs, FLOAT, given)
    size = x.size * math.prod(concrete(pool.operator.kernel, "window"))
    step = max(LAID_OUT * x.shape[1] // max(size, 1), 1)
    blocks = [{pool.inputs[0]: x[:, i : i + step]} for i in range(0, x.shape[1], step)]
    return (np.concatenate([evaluate_all(roots, FLOAT, block)[0] for block in blocks], axis=1),)


def _sizes(program: Program, feeds: Feeds) -> dict[str, int]:
    """What the symbols in the shapes of inputs stand for."""
    found: dict[str, int] = {}
    for name, array in feeds.items():
        for dim, size in zip(program.values[name].shape, array.shape, strict=True) if name in program.values else ():
            if not isinstance(dim, int):
                found[str(dim)] = size
    return found
