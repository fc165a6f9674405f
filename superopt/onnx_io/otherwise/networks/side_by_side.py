"""Layers of networks of one make side by side in one matrix: their numbers are columns of it.

What all read is multiplied by their weights one beside the other, what each has made by these in blocks, of which the
others are zeros, and what is added up in the end by one below the other: experts that gates weigh (Shazeer et al. 2017)
are two layers so, ensembles have one last layer. Unlike in stacks (`heads.py`) a runtime prepares such weights, so this
is faster for more rows, too: 8 experts of 128 behind 32 rows of 64 take onnxruntime 1.32 99 µs, and 82 so.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import chain

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.otherwise.networks.alike import Twins
from superopt.onnx_io.otherwise.networks.columns import FLOATS
from superopt.onnx_io.otherwise.networks.ends import Ends, ends_at, given_of, outputs_of, replace_ends
from superopt.onnx_io.otherwise.networks.heads import twins_of
from superopt.onnx_io.otherwise.networks.stacked_ends import stacked_ends
from superopt.onnx_io.otherwise.networks.wide_layers import WideLayers
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put

FEWEST, FEWEST_NODES = 3, 10
"""So many networks, and so many nodes in all of them, are worth it."""


def side_by_side(program: Program) -> dict[int, Put]:
    """How to compute such networks, by the places of what joins or adds them up."""
    outputs, puts = outputs_of(program.model.graph), dict[int, Put]()
    for i, node in enumerate(program.model.graph):
        if any(_found(program, ends) is not None for ends in _ends(program, node, outputs)):
            puts[i] = partial(_put, program)
    return puts


def _ends(program: Program, node: ir.Node, outputs: Mapping[ir.Node, Ends]) -> list[Ends]:
    return [*ends_at(program, node, outputs), *stacked_ends(program, node)]


def _found(program: Program, ends: Ends) -> Twins | None:
    """What is computed alike of what all read, where there are enough such networks."""
    if len(ends.values) < FEWEST:
        return None
    found = twins_of(program, ends)
    if found is None or not found.nodes or found.nodes[-1][0] is not ends.values[0].producer() or not found.apart:
        return None
    if len(found.freed(ends.nodes, ends.values)) < len(found.nodes) or not found.weights:
        return None
    if not all(map(_is_plain, chain.from_iterable(found.weights.values()))) or found.is_mixed:
        return None
    if len(ends.values) * len(found.nodes) < FEWEST_NODES or len(found.read) > (ends.axis is None):
        return None
    shape = program.values[ends.values[0].name or ""].shape if ends.values[0].name in program.values else ()
    is_last = ends.axis is None or (len(shape) > 0 and ends.axis % len(shape) == len(shape) - 1)
    can = len(shape) > 1 and is_last and WideLayers(program, None, found, ends).take() is not None
    return found if can else None


def _is_plain(weights: Array) -> bool:
    """Whether weights are numbers: what is infinite in one network would be none in all, by zeros beside blocks."""
    return weights.dtype.name in FLOATS and bool(np.isfinite(weights).all())


def _put(program: Program, draft: Draft, end: ir.Node) -> bool:
    """Let what is joined or added up be computed by one layer after the other."""
    known = ((e, _found(program, e)) for e in _ends(program, end, outputs_of(draft.model.graph)))
    ends, found = next(((ends, found) for ends, found in known if found is not None), (None, None))
    if ends is None or found is None:  # what another one changed
        return False
    made = draft.nodes("beside")
    if (whole := WideLayers(program, made, found, ends).take()) is None:
        return False
    shape = program.values[ends.values[0].name or ""].shape
    results = [whole] if ends.axis is None else given_of(made, whole, ends, shape)
    draft.model.graph.insert_before(end, made.nodes)
    replace_ends(draft.model, end, ends, results)
    return True
