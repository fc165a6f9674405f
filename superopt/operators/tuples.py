"""GatherND by tuples of one index each, as torch writes `x[i]`: the gather that it is; by known ones of several, as of
the pairs of an upper triangle, a take of these axes as one. It declares no operator.
"""

from __future__ import annotations

import math

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.operators.declare import reads
from superopt.operators.layout import reshaped
from superopt.operators.nodes import NotUnderstood, Source, concrete, present
from superopt.operators.picks import taken
from superopt.operators.rearrange import Gather
from superopt.relations import is_one
from superopt.term import Term, make


@reads("GatherND")
def gather_nd(node: Source) -> Term:
    """Indices (.., 1) into x (n, ..) give (.., ..): along the first axis; constant ones of any number are a take."""
    x, given = present(node.inputs, 2)
    if node.attributes.get("batch_dims", 0):
        raise NotUnderstood("GatherND of each of a batch by itself")
    indices = node.constant(1)
    if indices is not None and indices.ndim and indices.shape[-1] > 1 and indices.size:
        return _by_several(x, indices)
    if not given.type.rank or not is_one(given.shape[-1]):
        raise NotUnderstood("GatherND by more than one index, or by a number of them that is not known")
    if indices is None:
        return make(Gather(0), (x, reshaped(given, given.shape[:-1])))
    flat = [int(i) for i in indices.ravel()]
    if any(i < 0 for i in flat):
        (size,) = concrete(x.shape[:1], "GatherND by negative indices")
        flat = [i + size if i < 0 else i for i in flat]
    return reshaped(taken(x, 0, flat), (*given.shape[:-1], *x.shape[1:]))


def _by_several(x: Term, indices: Array) -> Term:
    """What known tuples pick of the first axes, taken of these as one."""
    count = indices.shape[-1]
    sizes, rest = concrete(x.shape[:count], "GatherND by several indices"), x.shape[count:]
    columns = [np.where(i < 0, i + d, i).ravel() for i, d in zip(np.moveaxis(indices, -1, 0), sizes, strict=True)]
    if any((i < 0).any() or (i >= d).any() for i, d in zip(columns, sizes, strict=True)):
        raise NotUnderstood(f"GatherND past the end of {sizes}")
    flat = [int(i) for i in np.ravel_multi_index(columns, sizes)]
    picked = taken(reshaped(x, (math.prod(sizes), *rest)), 0, flat)
    return reshaped(picked, (*indices.shape[:-1], *rest))
