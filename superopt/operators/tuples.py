"""GatherND by tuples of one index each, as torch writes `x[i]`: the gather that it is. It declares no operator."""

from __future__ import annotations

from superopt.dim import is_one
from superopt.operators.declare import NotUnderstood, Source, concrete, present, reads
from superopt.operators.layout import reshaped
from superopt.operators.picks import taken
from superopt.operators.rearrange import Gather
from superopt.term import Term, make


@reads("GatherND")
def gather_nd(node: Source) -> Term:
    """Indices (.., 1) into x (n, ..) give (.., ..): along the first axis, a take by constant ones."""
    x, given = present(node.inputs, 2)
    if node.attributes.get("batch_dims", 0):
        raise NotUnderstood("GatherND of each of a batch by itself")
    if not given.type.rank or not is_one(given.shape[-1]):
        raise NotUnderstood("GatherND by more than one index, or by a number of them that is not known")
    indices = node.constant(1)
    if indices is None:
        return make(Gather(0), (x, reshaped(given, given.shape[:-1])))
    flat = [int(i) for i in indices.ravel()]
    if any(i < 0 for i in flat):
        (size,) = concrete(x.shape[:1], "GatherND by negative indices")
        flat = [i + size if i < 0 else i for i in flat]
    return reshaped(taken(x, 0, flat), (*given.shape[:-1], *x.shape[1:]))
