"""What a runtime executes as one, after its own fusions.

A convolution takes in the scaling and shift of its channels (as one bias), a factor, a residual addition and an
activation, or its product with its own hard sigmoid, and the transposes of channels from last to first before it, and
back after it, as it lays them out anyway; a matrix product takes in transposed factors, a bias and an activation; a
layer norm takes in a sum of what is as large, where it has three axes, and a gelu a bias; a product of something and
its own sigmoid is one, so is a chain of concats, so are slices along different axes, and a repetition within an image.
Everything else runs alone. An `expand` whose consumer broadcasts by itself is not executed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from operator import attrgetter

from superopt.cost.steps import gates, is_biased, is_multiple, is_normal_of_sum, step, swaps_last_two
from superopt.operators.activations import Gelu
from superopt.operators.conv import Conv
from superopt.operators.definitions.pictures import brings_channels_first
from superopt.operators.functions import Sigmoid
from superopt.operators.layout import Concat, Expand, Reshape
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Gemm
from superopt.operators.norms import LayerNorm
from superopt.operators.padding import Pad
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Mul
from superopt.operators.repeats import unwritten
from superopt.operators.shuffles import shuffle_of
from superopt.term import Graph, Operator, Term

_FUSED: Mapping[tuple[str, str], str] = {
    # What a kernel has computed so far, and what is applied to that: what it has computed then.
    ("conv", "channels"): "conv",
    ("conv", "scalar"): "conv",
    ("conv", "residual"): "sum",
    ("conv", "activation"): "active",
    ("sum", "activation"): "active",
    ("conv", "leaky relu"): "active",
    ("conv", "hard swish"): "active",
    ("conv", "channels last"): "done",
    ("sum", "channels last"): "done",
    ("active", "channels last"): "done",
    ("product", "scalar"): "product",
    ("product", "bias"): "biased",
    ("biased", "activation"): "done",
    ("biased", "leaky relu"): "done",
}
_BEGUN: Mapping[type[Operator], str] = {Conv: "conv", MatMul: "product", Gemm: "biased"}
"""What a kernel has computed that begins with an operator."""
_inputs = attrgetter("inputs")


def fused(graph: Graph) -> list[tuple[Term, tuple[Term, ...]]]:
    """What runs when a graph is evaluated, inputs before users: each term that is executed with all that is computed
    within it. All sizes are integers.
    """
    uses = Counter(chain(graph.outputs, *map(set, map(_inputs, graph.runs))))
    vanishing = _vanishing(graph)
    parts: dict[Term, _Part] = {}
    alone: dict[Term, _Part] = {}
    taken: set[Term] = set()
    for term in graph.runs:
        if term not in vanishing:
            of_several = _OF_SEVERAL.get(type(term.operator))
            part = None if of_several is None else of_several(term, parts, uses)
            if part is None:
                part = _part(term, tuple(map(alone.get, term.inputs)))
            parts[term] = part
            taken.update(part.taken)
            if uses[term] == 1:
                alone[term] = part
    return [(term, part.inner) for term, part in parts.items() if term not in taken]


@dataclass(frozen=True, eq=False)
class _Part:
    """What a term is in its kernel: what that has computed then, the inputs taken in, and all that is below in it."""

    stage: str
    taken: tuple[Term, ...]
    inner: tuple[Term, ...]


@lru_cache(maxsize=1 << 16)  # a rewrite leaves most terms as they were, and what they take in
def _part(term: Term, below: tuple[_Part | None, ...]) -> _Part:
    """The part of a term; `below` are those of the inputs that nothing else uses."""
    alone = {i: part for i, part in zip(term.inputs, below, strict=True) if part is not None}
    after, stage = _taken_after(term, alone) if alone else ([], _BEGUN.get(type(term.operator), ""))
    taken = (*(_taken_before(term, alone) if alone else ()), *after)
    return _Part(stage, taken, (*taken, *unwritten(term), *[t for i in taken for t in alone[i].inner]))


def _gated(term: Term, parts: Mapping[Term, _Part], uses: Mapping[Term, int]) -> _Part | None:
    """The part of a product of something and a function of it."""
    return _hard_swish(term, parts, uses) or _swish(term, uses)


def _hard_swish(term: Term, parts: Mapping[Term, _Part], uses: Mapping[Term, int]) -> _Part | None:
    """The part of a convolution times its own hard sigmoid, which are its only users."""
    if len(set(term.inputs)) < 2:
        return None
    for gate, image in (term.inputs, term.inputs[::-1]):
        below = parts.get(image)  # of what is given, none
        if below is None or below.stage != "conv" or not gates(gate, image):
            continue
        if uses[gate] == 1 and uses[image] == 2:
            return _Part("active", (gate, image), (gate, image, *below.inner))
    return None


def _swish(term: Term, uses: Mapping[Term, int]) -> _Part | None:
    """The part of a product of something and its own sigmoid, or that of a multiple of it, which nothing else reads."""
    for gate, x in (term.inputs, term.inputs[::-1]):
        below = gate.inputs[0] if isinstance(gate.operator, Sigmoid) else None
        within = [gate] if below is x else [gate, below] if below is not None and is_multiple(below, x) else []
        if within and all(uses[t] == 1 for t in within):
            return _Part("", tuple(within), (*within, *[u for t in within for u in unwritten(t)]))
    return None


def _shuffle(term: Term, parts: Mapping[Term, _Part], uses: Mapping[Term, int]) -> _Part | None:
    """The part of places that move between channels and image, where nothing else reads what is in between."""
    found = shuffle_of(term)
    if found is None or any(uses[t] > 1 for t in found.within):
        return None
    return _Part("", found.within, found.within)


_OF_SEVERAL = {Mul: _gated, Reshape: _shuffle}
"""What tells, by its operator, whether a term is executed as one with more than is right below it."""


def _vanishing(graph: Graph) -> set[Term]:
    """The expands that nobody needs written out."""
    expands = {t for t in graph.runs if isinstance(t.operator, Expand)}
    if not expands:
        return expands
    return expands.difference(graph.outputs, *(set(t.inputs).difference(unwritten(t)) for t in graph.runs))


def _taken_before(term: Term, alone: Mapping[Term, _Part]) -> list[Term]:
    """What an operator takes in of what is done to its inputs."""
    op = term.operator
    if isinstance(op, Conv):
        before = [i for i in term.inputs[:1] if i in alone]
        return [i for i in before if isinstance(i.operator, Pad) or brings_channels_first(i)]
    if isinstance(op, MatMul):
        return [i for i in term.inputs if i in alone and swaps_last_two(i)]
    if isinstance(op, LayerNorm):
        return [i for i in term.inputs[:1] if i in alone and not alone[i].stage and is_normal_of_sum(term)]
    if isinstance(op, Gelu):
        return [i for i in term.inputs if i in alone and not alone[i].stage and is_biased(i)]
    if isinstance(op, Reshape):
        return [i for i in term.inputs if i in alone and isinstance(i.operator, Expand)]
    if isinstance(op, Concat):
        return [i for i in term.inputs if i in alone and i.operator == op]
    if isinstance(op, Slice):
        cut = [i for i in term.inputs if i in alone and isinstance(i.operator, Slice)]
        return [i for i in cut if op.axis not in _axes_cut((i, *alone[i].inner))]
    return []


def _axes_cut(terms: Iterable[Term]) -> set[int]:
    """The axes along which slices cut."""
    return {t.operator.axis for t in terms if isinstance(t.operator, Slice)}


def _taken_after(term: Term, alone: Mapping[Term, _Part]) -> tuple[list[Term], str]:
    """The kernel to which an operator is one more step, if any, and what has been computed then."""
    op = term.operator
    # The later of two candidates: the other is computed by then.
    for producer in [i for i in reversed(term.inputs) if i in alone]:
        then = _FUSED.get((alone[producer].stage, step(term, producer)))
        if then is not None:
            return [producer], then
    return [], _BEGUN.get(type(op), "")


def forget_terms() -> None:
    """Forget the terms that were parts of kernels."""
    _part.cache_clear()
