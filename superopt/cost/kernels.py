"""Cuts a graph into kernels: what the runtime executes as one, after its own fusions (`cost/fusions.py`).

What is computed from constants only is done before the model runs, so it is a constant like any other.

A kernel is a graph of its own, over variables named v0, v1, … by first use. Its text with the types of its variables is
its *signature*: equal kernels have equal signatures wherever they stand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from superopt.cost import fusions
from superopt.cost.blocks import How, how_taken
from superopt.cost.fusions import fused
from superopt.cost.steps import gates, step
from superopt.operators import Declared
from superopt.operators.activations import HardSigmoid, HardSwish
from superopt.operators.constant import number_of
from superopt.operators.conv import Conv
from superopt.operators.functions import Pow
from superopt.operators.layout import Expand, Reshape
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Mul
from superopt.operators.reader import dim_sexp, term_sexp
from superopt.operators.rows import Rows
from superopt.term import REAL, Graph, Term, make, variable
from superopt.text import Sexp, form, show


@dataclass(frozen=True)
class Kernel:
    """What the runtime executes as one: the term that it computes, the terms that it `reads`, and the same over
    canonical variables. Constants that are made of several are not among what it reads. `taken` says how it takes
    each of what it reads (`cost/blocks.py`).
    """

    root: Term
    graph: Graph
    reads: tuple[Term, ...]
    taken: tuple[How, ...]

    @cached_property
    def is_view(self) -> bool:
        """Whether it only gives memory another shape. Within a model the runtime then moves nothing."""
        (root,) = self.graph.outputs
        return isinstance(root.operator, Reshape | Rows) and root.inputs[0].is_variable

    @cached_property
    def convolves(self) -> bool:
        """Whether a convolution is part of it."""
        return any(isinstance(t.operator, Conv) for t in self.graph.runs)

    @cached_property
    def timed(self) -> Graph:
        """Its graph as it is timed: onnxruntime fuses a hard swish only where it is read, so one row of it is."""
        (root,) = self.graph.outputs
        gated = isinstance(root.operator, Mul) and any(map(gates, root.inputs, root.inputs[::-1]))
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


def cut(graph: Graph) -> list[Kernel]:
    """The kernels that run when a graph is evaluated, inputs before users. All sizes are integers."""
    return [_kernel(term, inner) for term, inner in fused(graph)]


@lru_cache(maxsize=1 << 14)  # a search asks again for all kernels that a rewrite left as they were
def _kernel(root: Term, inner: tuple[Term, ...]) -> Kernel:
    within = {root, *inner}
    word, leaves = _spelled(root, within)
    if word not in _forms:
        body, given, names = _canonical(root, inner)
        read = [t for t in names if t not in within and not t.constant]
        how = how_taken(body)
        places, taken = tuple(map(leaves.index, read)), tuple(how.get(names[t], "as the result") for t in read)
        _forms[word] = Graph(given, (body,)), places, taken
    graph, places, taken = _forms[word]
    return Kernel(root, graph, tuple([leaves[i] for i in places]), taken)


_forms: dict[tuple[int, ...], tuple[Graph, tuple[int, ...], tuple[How, ...]]] = {}
"""Kernels over canonical variables by how they are spelled, which of the leaves are read, and how: a rewrite renews all
terms above it, but most of them are computed by the same kernels as before."""

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


def _canonical(root: Term, inner: tuple[Term, ...]) -> tuple[Term, tuple[Term, ...], dict[Term, Term]]:
    """A kernel over canonical variables; these, and which of them stands for what."""
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

    return rebuilt(root), tuple(names.values()), names


def forget_terms() -> None:
    """Forget the graphs that were cut, and with them their terms."""
    fusions.forget_terms()
    for known in (_kernel, _head, _leaf):
        known.cache_clear()
    _forms.clear()
    _numbers.clear()


def _has_exponent(term: Term) -> bool:
    """Whether a term is a power by a number: that decides how long it takes, so it is part of the kernel."""
    return isinstance(term.operator, Pow) and number_of(term.inputs[1]) is not None


def _below_channels(term: Term, within: set[Term]) -> Term:
    """The convolution whose channels a term only scales and shifts, itself where there is none.

    The runtime puts all of that into the weights and one bias, so to it these are one kernel.
    """
    base = term
    while base in within:
        producers = [i for i in base.inputs if i in within and step(base, i) in ("channels", "scalar")]
        if not producers:
            break
        base = producers[-1]
    return base if isinstance(base.operator, Conv) and base.inputs[1].constant else term


def _variable_sexp(v: Term) -> Sexp:
    return form(v.label, v.type.dtype, form(*map(dim_sexp, v.shape)), *(["constant"] if v.constant else []))
