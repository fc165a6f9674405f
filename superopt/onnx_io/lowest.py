"""Masks that hold the lowest number of their type: what onnxruntime's Attention takes for minus infinity.

A row of scores that are all masked by the lowest number there is has shares alike, by ONNX and where it is written out
as sum and softmax; onnxruntime (1.32, on the CPU) makes it 0, as a row masked by minus infinity. On a GPU (1.31) it
does so with all masks of -1e30 and below. So what is below a tenth of that is drawn together above it: all of it stays
in order. transformers masks by the lowest, Flax by 0.7 of it, and batches that are padded on the left have such rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np
import onnx_ir as ir

from superopt.demands import assuming
from superopt.onnx_io.program import Program
from superopt.operators.attention.dot_product import MaskedAttention
from superopt.operators.attention.flat_heads import MaskedAttentionOfFlatRows
from superopt.operators.attention.grouped import MaskedGroupedAttention
from superopt.operators.attention.heads import MaskedAttentionOfRows
from superopt.operators.comparisons import Less
from superopt.operators.constant import Scalar, filled
from superopt.operators.extrema import Max
from superopt.operators.layout import Expand
from superopt.operators.logic import Where
from superopt.operators.pointwise import Add, Mul
from superopt.term import REAL, TRUTH, Term, made_over, subterms, variables

EDGE, KNEE = -1e29, -1e31
"""The lowest mask of 32 bits that stays as it is; of other types it is half of their lowest. Down to the next what is
below is drawn together to a fiftieth, so that sums of a few masks of -1e30 still differ; and all below that to a bit.
"""

HUGE = -0.1 * EDGE
"""Finite numbers of this magnitude may come to masks beyond the edge, as 1 - 0 times them does."""

MOST_MADE_OF = 256
"""A mask that is made of more values is not looked into: it is no table of what is attended to."""

MASKED = (MaskedAttention, MaskedGroupedAttention, MaskedAttentionOfRows, MaskedAttentionOfFlatRows)
MASK = 3
"""The operators that are written as Attention with a mask, and which input of theirs that is."""


def without_lowest(program: Program, new: Mapping[str, Term]) -> dict[str, Term]:
    """The terms of values to be computed, whose attention is masked by no number as low as the lowest.

    All stays as it is where a mask is seen not to hold the lowest number, and where the model has attention itself.
    Pieces are timed as they are: what they read is raised once, in the model.
    """
    if any((n.op_type, n.domain) == ("Attention", "") for n in program.model.graph.all_nodes()):
        return dict(new)
    seen = _Origins(program)
    done: dict[Term, Term] = {}
    with assuming():  # the terms are well formed where the model is
        for term in subterms(*new.values()):
            inputs = tuple(done[i] for i in term.inputs)
            if _is_masked(term) and seen.may_be_lowest(term.inputs[MASK]):
                inputs = (*inputs[:MASK], _raised(inputs[MASK]), *inputs[MASK + 1 :])
            done[term] = term if inputs == term.inputs else made_over(term, inputs)
    return {name: done[term] for name, term in new.items()}


def _is_masked(term: Term) -> bool:
    """Whether a term is attention with a mask that is added, in one of its forms."""
    return isinstance(term.operator, MASKED) and term.inputs[MASK].type.dtype != TRUTH


def _raised(mask: Term) -> Term:
    """A mask whose lowest numbers are drawn together; what only repeats it stays on top."""
    if isinstance(mask.operator, Expand) and mask.inputs[0].type.rank:
        return made_over(mask, (_raised(mask.inputs[0]),))
    dtype = np.dtype("float32" if mask.type.dtype == REAL else mask.type.dtype)
    lowest = float(np.finfo(dtype).min)
    edge, lines = lowest / 2, [(0.25, 0.75 * lowest / 2)]
    if dtype == np.float32:
        edge, steep, flat = EDGE, 0.02, 1.5 * EDGE / lowest
        at_knee = EDGE + steep * (KNEE - EDGE)
        lines = [(steep, (1 - steep) * EDGE), (flat, at_knee - flat * KNEE)]
    is_low = Less()(mask, filled(edge, mask.shape))
    drawn = [Add()(Mul()(mask, filled(a, mask.shape)), filled(b, mask.shape)) for a, b in lines]
    return Where()(is_low, reduce(Max(), drawn), mask)  # minus infinity stays what it is


class _Origins:
    """What the values of a model are made of."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._producers = {v.name: node for node in program.model.graph for v in node.outputs if v.name}

    def may_be_lowest(self, mask: Term) -> bool:
        """Whether a number as low may be among what a term is made of: a constant, or one that the caller gives."""
        scalars = (t.operator.value for t in subterms(mask) if isinstance(t.operator, Scalar))
        return any(map(_is_huge, scalars)) or self._made_of_huge([v.label for v in variables(mask)])

    def _made_of_huge(self, names: list[str]) -> bool:
        seen, given = set[str](), {v.name: v for v in self._program.model.graph.inputs}
        while names:
            name = names.pop()
            if not name or name in seen:
                continue
            seen.add(name)
            if len(seen) > MOST_MADE_OF:
                return True
            if name in self._program.constants:
                if _is_huge(self._program.data(name)):
                    return True
            elif name in self._producers:
                node = self._producers[name]
                if any(map(_holds_huge, node.attributes.values())):
                    return True
                names += [v.name or "" for v in node.inputs if v is not None]
            elif name not in given or _may_be_float(given[name]):
                return True
        return False


def _may_be_float(value: ir.Value) -> bool:
    return value.dtype is None or value.dtype.is_floating_point()


def _holds_huge(attribute: ir.Attr) -> bool:
    """Whether an attribute holds such a number, or what may hold one."""
    if attribute.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) or attribute.is_ref():
        return True
    if attribute.type == ir.AttributeType.TENSOR:
        return _is_huge(attribute.as_tensor().numpy())
    if attribute.type in (ir.AttributeType.FLOAT, ir.AttributeType.FLOATS):
        return _is_huge(attribute.value)
    return False


def _is_huge(value: object) -> bool:
    """Whether finite numbers of great magnitude are among these."""
    numbers = np.asarray(value)
    if numbers.dtype.kind != "f" or not numbers.size:
        return False
    finite = numbers[np.isfinite(numbers)]
    bound = HUGE if numbers.dtype.itemsize > 2 else 0.5 * float(np.finfo(np.float16).max)
    return bool(finite.size and max(finite.max(), -finite.min()) > bound)
