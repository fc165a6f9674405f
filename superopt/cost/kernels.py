"""Cuts a graph into kernels: what the runtime executes as one, after its own fusions.

A convolution takes in the scaling and shift of its channels (as one bias), a residual addition and an activation, or
its product with its own hard sigmoid, and the transposes of channels from last to first before it, and back after it,
as it lays them out anyway; a matrix product takes in transposed factors, a bias and an activation; a chain
of concats is one, so are slices along different axes, and a repetition within an image. Everything else runs alone.
What is computed from constants only is done before the model runs, so it is a constant like any other. An `expand`
whose consumer broadcasts by itself is no kernel.

A kernel is a graph of its own, over variables named v0, v1, … by first use. Its text with the types of its variables is
its *signature*: equal kernels have equal signatures wherever they stand.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from operator import attrgetter

from superopt.operators import Declared
from superopt.operators.activations import HardSigmoid, HardSwish
from superopt.operators.constant import Scalar
from superopt.operators.functions import Pow
from superopt.operators.layout import Concat, Expand, Reshape, Slice, Transpose
from superopt.operators.linear import Conv, MatMul
from superopt.operators.normalize import BatchNorm, Gemm
from superopt.operators.padding import Pad
from superopt.operators.pictures import CHANNELS_FIRST, CHANNELS_LAST
from superopt.operators.pointwise import Add, Mul
from superopt.operators.reader import dim_sexp, term_sexp
from superopt.operators.repeats import unwritten
from superopt.operators.shuffles import shuffle_of
from superopt.term import REAL, Graph, Operator, Term, make, variable
from superopt.text import Sexp, form, show


@dataclass(frozen=True)
class Kernel:
    """What the runtime executes as one: the term that it computes, the terms that it `reads`, and the same over
    canonical variables. Constants that are made of several are not among what it reads. Of what it reads, `turned`
    says whether it is an image whose channels it brings to the front.
    """

    root: Term
    graph: Graph
    reads: tuple[Term, ...]
    turned: tuple[bool, ...]

    @cached_property
    def is_view(self) -> bool:
        """Whether it only gives memory another shape. Within a model the runtime then moves nothing."""
        (root,) = self.graph.outputs
        return isinstance(root.operator, Reshape) and root.inputs[0].is_variable

    @cached_property
    def convolves(self) -> bool:
        """Whether a convolution is part of it."""
        return any(isinstance(t.operator, Conv) for t in self.graph.runs)

    @cached_property
    def timed(self) -> Graph:
        """Its graph as it is timed: onnxruntime fuses a hard swish only where it is read, so one row of it is."""
        (root,) = self.graph.outputs
        gated = isinstance(root.operator, Mul) and any(map(_gates, root.inputs, root.inputs[::-1]))
        if not (self.convolves and (gated or isinstance(root.operator, HardSwish))):
            return self.graph
        return Graph(self.graph.inputs, (Slice(2, 0, 1)(root),))

    @cached_property
    def signature(self) -> str:
        """The text of the kernel, by which a table knows it."""
        return show(
            form(
                "view" if self.is_view else "kernel",
                *map(term_sexp, self.graph.outputs),
                *map(_variable_sexp, self.graph.inputs),
            )
        )


_FUSED: Mapping[tuple[str, str], str] = {
    # What a kernel has computed so far, and what is applied to that: what it has computed then.
    ("conv", "channels"): "conv",
    ("conv", "residual"): "sum",
    ("conv", "activation"): "active",
    ("sum", "activation"): "active",
    ("conv", "hard swish"): "active",
    ("conv", "channels last"): "done",
    ("sum", "channels last"): "done",
    ("active", "channels last"): "done",
    ("product", "scalar"): "product",
    ("product", "bias"): "biased",
    ("biased", "activation"): "done",
}
_BEGUN: Mapping[type[Operator], str] = {Conv: "conv", MatMul: "product", Gemm: "biased"}
"""What a kernel has computed that begins with an operator."""
_inputs = attrgetter("inputs")
_ACTIVATIONS = frozenset({"relu", "sigmoid", "tanh", "clip", "leaky_relu", "hard_sigmoid"})


def cut(graph: Graph) -> list[Kernel]:
    """The kernels that run when a graph is evaluated, inputs before users. All sizes are integers."""
    uses = Counter(chain(graph.outputs, *map(set, map(_inputs, graph.runs))))
    vanishing = _vanishing(graph)
    parts: dict[Term, _Part] = {}
    alone: dict[Term, _Part] = {}
    taken: set[Term] = set()
    for term in graph.runs:
        if term not in vanishing:
            part = (
                _hard_swish(term, parts, uses)
                or _shuffle(term, uses)
                or _part(term, tuple(map(alone.get, term.inputs)))
            )
            parts[term] = part
            taken.update(part.taken)
            if uses[term] == 1:
                alone[term] = part
    return [_kernel(term, part.inner) for term, part in parts.items() if term not in taken]


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


def _hard_swish(term: Term, parts: Mapping[Term, _Part], uses: Mapping[Term, int]) -> _Part | None:
    """The part of a convolution times its own hard sigmoid, which are its only users."""
    if not isinstance(term.operator, Mul) or len(set(term.inputs)) < 2:
        return None
    for gate, image in (term.inputs, term.inputs[::-1]):
        below = parts.get(image)  # of what is given, none
        if below is None or below.stage != "conv" or not _gates(gate, image):
            continue
        if uses[gate] == 1 and uses[image] == 2:
            return _Part("active", (gate, image), (gate, image, *below.inner))
    return None


def _shuffle(term: Term, uses: Mapping[Term, int]) -> _Part | None:
    """The part of places that move between channels and image, where nothing else reads what is in between."""
    found = shuffle_of(term)
    if found is None or any(uses[t] > 1 for t in found.within):
        return None
    return _Part("", found.within, found.within)


def _gates(gate: Term, image: Term) -> bool:
    """Whether a term is the hard sigmoid of another of which hard swish is made."""
    op = gate.operator
    if not isinstance(op, HardSigmoid) or gate.inputs[0] is not image:
        return False
    return math.isclose(op.alpha, 1 / 6, rel_tol=1e-6) and op.beta == 0.5


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
        return [i for i in before if isinstance(i.operator, Pad) or _transposes_by(i, CHANNELS_FIRST)]
    if isinstance(op, MatMul):
        return [i for i in term.inputs if i in alone and swaps_last_two(i)]
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


def swaps_last_two(term: Term) -> bool:
    """Whether a term transposes matrices, which a product of them takes in."""
    rank = term.type.rank
    return isinstance(term.operator, Transpose) and term.operator.perm == (*range(rank - 2), rank - 1, rank - 2)


def _transposes_by(term: Term, perm: tuple[int, ...]) -> bool:
    """Whether a term is the transpose of that order."""
    return isinstance(term.operator, Transpose) and term.operator.perm == perm


def _taken_after(term: Term, alone: Mapping[Term, _Part]) -> tuple[list[Term], str]:
    """The kernel to which an operator is one more step, if any, and what has been computed then."""
    op = term.operator
    # The later of two candidates: the other is computed by then.
    for producer in [i for i in reversed(term.inputs) if i in alone]:
        then = _FUSED.get((alone[producer].stage, _step(term, producer)))
        if then is not None:
            return [producer], then
    return [], _BEGUN.get(type(op), "")


def _step(term: Term, producer: Term) -> str:
    """What a term does to one of its inputs, in the words of the table."""
    op = term.operator
    if op.name in _ACTIVATIONS:
        return "activation"
    if _transposes_by(term, CHANNELS_LAST):
        return "channels last"
    if isinstance(op, HardSwish):
        return "hard swish"
    if isinstance(op, BatchNorm):
        return "channels" if term.inputs[0] is producer and all(i.constant for i in term.inputs[1:]) else ""
    if not isinstance(op, Add | Mul):
        return ""
    other = next((i for i in term.inputs if i is not producer), producer)
    if other is producer:
        return ""
    if isinstance(other.operator, Expand) and other.constant:
        axes = other.operator.axes
        if axes == ():
            return "scalar"
        if producer.type.rank > 2 and axes == (1,):
            return "channels"
        return "bias" if isinstance(op, Add) and axes == (term.type.rank - 1,) else ""
    return "residual" if isinstance(op, Add) and not isinstance(other.operator, Expand) else ""


@lru_cache(maxsize=1 << 14)  # a search asks again for all kernels that a rewrite left as they were
def _kernel(root: Term, inner: tuple[Term, ...]) -> Kernel:
    within = {root, *inner}
    word, leaves = _spelled(root, within)
    if word not in _forms:
        body, given, names = _canonical(root, inner)
        read = [t for t in names if t not in within and not t.constant]
        turned = {t.inputs[0] for t in inner if _transposes_by(t, CHANNELS_FIRST)}
        places, turns = tuple(map(leaves.index, read)), tuple(t in turned for t in read)
        _forms[word] = Graph(given, (body,)), places, turns
    graph, places, turns = _forms[word]
    return Kernel(root, graph, tuple([leaves[i] for i in places]), turns)


_forms: dict[tuple[int, ...], tuple[Graph, tuple[int, ...], tuple[bool, ...]]] = {}
"""Kernels over canonical variables by how they are spelled, which of the leaves are read, and which of these are
turned: a rewrite renews all terms above it, but most of them are computed by the same kernels as before."""

_numbers: dict[object, int] = {}
_SEEN_BEFORE = -1


def _spelled(root: Term, within: set[Term]) -> tuple[tuple[int, ...], list[Term]]:
    """What tells kernels apart, operator by operator from the root down; and the leaves in the order of first sight."""
    word: list[int] = []
    places: dict[Term, int] = {}
    leaves: list[Term] = []
    stack = [root]
    while stack:
        term = stack.pop()
        if term in places:
            word += (_SEEN_BEFORE, places[term])
            continue
        places[term] = len(places)
        if term in within:
            word.append(_head(term))
            if _has_exponent(term):
                word.append(_numbers.setdefault(term.inputs[1], len(_numbers)))
                stack.append(term.inputs[0])
            else:
                stack.extend(term.inputs)
        else:
            word.append(_leaf(term))
            leaves.append(term)
    return tuple(word), leaves


@lru_cache(maxsize=1 << 16)
def _head(term: Term) -> int:
    return _numbers.setdefault((term.operator, term.type), len(_numbers))


@lru_cache(maxsize=1 << 16)
def _leaf(term: Term) -> int:
    return _numbers.setdefault((term.type, term.constant), len(_numbers))


def _canonical(root: Term, inner: tuple[Term, ...]) -> tuple[Term, tuple[Term, ...], list[Term]]:
    """A kernel over canonical variables; these, and what they stand for."""
    within, names, done = {root, *inner}, dict[Term, Term](), dict[Term, Term]()
    dtypes = [t.type.dtype for w in (root, *inner) for t in (w, *w.inputs)]
    own = next((d for d in dtypes if d.startswith("float")), REAL)

    def rebuilt(term: Term) -> Term:
        if term not in within:
            if term not in names:
                # Numbers are of whatever type stands around them.
                dtype = own if term.type.dtype == REAL else term.type.dtype
                names[term] = variable(f"v{len(names)}", term.shape, dtype, term.constant)
            return names[term]
        if term not in done:  # the image of a hard swish is there twice
            done[term] = remade(term)
        return done[term]

    def remade(term: Term) -> Term:
        base = _below_channels(term, within)
        if base is not term:
            made = rebuilt(base)
            names[term] = variable(f"v{len(names)}", term.shape[1:2], term.type.dtype, constant=True)
            return Add()(made, Expand((1,), made.shape)(names[term]))
        inputs = term.inputs
        if _has_exponent(term):
            return make(term.operator, [rebuilt(inputs[0]), inputs[1]])
        if isinstance(term.operator, Declared) and term.operator.commutative:
            inputs = tuple(sorted(inputs, key=order))
        return make(term.operator, [rebuilt(i) for i in inputs])

    def order(term: Term) -> tuple[bool, bool, bool]:
        # Both orders are one kernel: what is fused stands first, what gates it behind, what is broadcast last.
        return isinstance(term.operator, Expand), term not in within, isinstance(term.operator, HardSigmoid)

    return rebuilt(root), tuple(names.values()), list(names)


def forget_terms() -> None:
    """Forget the graphs that were cut, and with them their terms."""
    for known in (_part, _kernel, _head, _leaf):
        known.cache_clear()
    _forms.clear()
    _numbers.clear()


def _has_exponent(term: Term) -> bool:
    """Whether a term is a power by a number: that decides how long it takes, so it is part of the kernel."""
    if not isinstance(term.operator, Pow):
        return False
    by = term.inputs[1]
    return isinstance((by.inputs[0] if isinstance(by.operator, Expand) else by).operator, Scalar)


def _below_channels(term: Term, within: set[Term]) -> Term:
    """The convolution whose channels a term only scales and shifts, itself where there is none.

    The runtime puts all of that into the weights and one bias, so to it these are one kernel.
    """
    base = term
    while base in within:
        producers = [i for i in base.inputs if i in within and _step(base, i) == "channels"]
        if not producers:
            break
        base = producers[-1]
    return base if isinstance(base.operator, Conv) and base.inputs[1].constant else term


def _variable_sexp(v: Term) -> Sexp:
    return form(v.label, v.type.dtype, form(*map(dim_sexp, v.shape)), *(["constant"] if v.constant else []))
