"""The operators of TASO's rules as terms.

SAME pads (k − 1) / 2 on each side. A convolution has as many groups as the channels of x over the second size of its
kernel. A split cuts where the concat below it was joined. An average pool counts its padding, as TASO's axiom has it by
which it is a convolution with the pooling kernel. A number times ones is the number broadcast, which has no operator of
its own there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from superopt.dim import Condition, Dim, Expr, Floor, equal, floor_div, symbol
from superopt.errors import RuleError
from superopt.operators.constant import Band, filled
from superopt.operators.conv import Conv
from superopt.operators.functions import Sigmoid, Tanh
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.padding import Pad
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Mul, Pointwise, Relu
from superopt.operators.reduce import AvgPool, MaxPool
from superopt.operators.reductions import Mean
from superopt.rules.exchange.taso_messages import Node, Place
from superopt.rules.exchange.taso_windows import window_of
from superopt.term import Term, make, variables

ACTIVATIONS = {1: Sigmoid, 2: Relu, 3: Tanh}
SAME = 0
MOST_AREA = 1024
"""How many elements a pooling kernel may have: it is made of the identity of as many rows."""

_POINTWISE: dict[str, type[Pointwise]] = {"add": Add, "mul": Mul, "relu": Relu, "sigmoid": Sigmoid, "tanh": Tanh}


def fresh(label: str, rank: int) -> list[Expr]:
    """Sizes of a tensor that nothing tells yet."""
    return [symbol(f"{label}_{i}") for i in range(rank)]


class Side:
    """The terms of one side's tensors, and what it asks of sizes beyond the operators' shape rules."""

    def __init__(
        self, side: str, nodes: Sequence[Node], given: dict[Place, Term], ranks: dict[tuple[str, Place], int]
    ) -> None:
        self.side, self.asked, self._ranks = side, list[Condition](), ranks
        self._terms = dict(given)
        for i, node in enumerate(nodes):
            outputs = self._read(i, node)
            self._terms |= {(i, output): term for output, term in enumerate(outputs)}

    def outputs(self, places: Sequence[Place]) -> tuple[Term, ...]:
        """The terms of places. Raises `RuleError` for one that is not there."""
        for place in places:
            if place not in self._terms:
                raise RuleError(f"the {self.side} has no output {place[1]} of operator {place[0]}")
        return tuple(self._terms[p] for p in places)

    def _read(self, index: int, node: Node) -> list[Term]:
        inputs = self.outputs(node.inputs)
        match node.name:
            case "split":
                return list(self._split(index, node, inputs[0]))
            case "conv2d" | "max pool" | "average pool":
                return [self._activated(node, self._windowed(index, node, inputs))]
            case "matmul":
                return [self._activated(node, make(MatMul(), inputs))]
            case "concat":
                return [_joined(Concat(node.parameter("axis")), inputs)]
            case "multiply by a scalar":
                return [_scaled(*inputs)]
            case "transpose":
                return [make(Transpose(_permutation(node.parameter("permutation"), inputs[0].type.rank)), inputs)]
            case "enlarge":
                return [_enlarged(inputs[0], window_of(node))]
            case "identity matrix" | "identity convolution" | "ones" | "pooling kernel":
                return [self._constant(index, node)]
            case "add" | "mul" | "relu" | "sigmoid" | "tanh":
                return [make(_POINTWISE[node.name](), inputs)]
        raise RuleError(f"{node.name} cannot be said here: its parameters do not tell what it computes")

    def _activated(self, node: Node, term: Term) -> Term:
        kind = node.parameter("activation", 0)
        if kind and kind not in ACTIVATIONS:
            raise RuleError(f"{node.name} has an activation {kind}; 0 to 3 are known")
        return make(ACTIVATIONS[kind](), (term,)) if kind else term

    def _windowed(self, index: int, node: Node, inputs: Sequence[Term]) -> Term:
        x = inputs[0]
        kernel: tuple[Dim, ...] = (
            inputs[1].shape[2:] if node.name == "conv2d" and 4 not in node.parameters else window_of(node)
        )
        strides = (node.parameter("stride height"), node.parameter("stride width"))
        pads = tuple(floor_div(k - 1, 2) for k in kernel) if node.parameter("padding") == SAME else (0, 0)
        if node.name == "max pool":
            return make(MaxPool(kernel, strides, pads * 2), (x,))
        if node.name == "average pool":
            return make(AvgPool(kernel, strides, pads * 2, whole=int(pads != (0, 0))), (x,))
        k = inputs[1]
        truths = [equal(a, b) for a, b in zip(k.shape[2:], kernel, strict=True)]
        if False in truths:
            raise RuleError(f"{node.name} states a kernel of {kernel}, and is given {k.shape}")
        constant = all(v.type.rank == 0 for v in variables(k))
        if constant:  # it has as many channels as what it is used on
            truths.append(equal(k.shape[0], x.shape[1]))
        self.asked += [t for t in truths if isinstance(t, Condition)]
        group = floor_div(x.shape[1], k.shape[1])
        if _has_floor(group) and constant:
            group = 1  # the sizes of a constant are what makes it fit
        elif _has_floor(group) and self.side == "source":
            group = symbol(f"group{index}")
        return make(Conv(strides, pads * 2, group=group), (x, k))

    def _split(self, index: int, node: Node, x: Term) -> Iterator[Term]:
        axis = node.parameter("axis")
        if axis >= x.type.rank:
            raise RuleError(f"split along axis {axis} of {x.type.rank}")
        if node.parameter("outputs", 2) != 2:
            raise RuleError(f"split into {node.parameter('outputs')} outputs; two are known")
        cut = cut_of(x, axis)
        if cut is None and self.side == "target":
            raise RuleError(f"split along {axis}: no concat below it tells where to cut")
        at = symbol(f"cut{index}") if cut is None else cut
        yield make(Slice(axis, 0, at), (x,))
        yield make(Slice(axis, at, x.shape[axis]), (x,))

    def _constant(self, index: int, node: Node) -> Term:
        rank = self._ranks[self.side, (index, 0)]
        sizes = fresh(f"_{index}", rank)
        if node.name == "identity matrix":
            return make(Band(sizes[0]))
        if node.name == "ones":
            return filled(1.0, tuple(sizes))
        window, c = window_of(node), sizes[0]
        if node.name == "pooling kernel":
            area = window[0] * window[1]
            if area > MOST_AREA:
                raise RuleError(f"a pooling kernel of {area} elements; {MOST_AREA} are the most")
            # The mean of a one and zeros is the inverse of how many they are, exactly and in every carrier.
            return make(
                Expand((2, 3), (c, 1, *window)), (make(Reshape(window), (make(Mean((0,)), (make(Band(area)),)),)),)
            )
        return _enlarged(make(Reshape((c, c, 1, 1)), (make(Band(c)),)), window)


@lru_cache(maxsize=10_000)
def cut_of(term: Term, axis: int) -> Dim | None:
    """Where along an axis the concat below a term was joined; None where there is none."""
    op = term.operator
    if isinstance(op, Concat) and op.axis == axis:
        return term.inputs[0].shape[axis]
    if isinstance(op, Transpose):
        return cut_of(term.inputs[0], op.perm[axis])
    if isinstance(op, MatMul) and axis >= term.type.rank - 2:
        return cut_of(term.inputs[axis - term.type.rank + 2], axis)
    if isinstance(op, Conv) and axis < 2:
        return cut_of(term.inputs[axis], 0)
    if isinstance(op, Pointwise | Concat | MatMul) or (isinstance(op, MaxPool | AvgPool) and axis < 2):
        return next((c for i in term.inputs if (c := cut_of(i, axis)) is not None), None)
    return None


def _joined(concat: Concat, inputs: Sequence[Term]) -> Term:
    whole = inputs[0]
    for t in inputs[1:]:
        whole = make(concat, (whole, t))
    return whole


def _scaled(x: Term, factor: Term) -> Term:
    number = make(Expand((), x.shape), (factor,))
    return number if x is filled(1.0, x.shape) else make(Mul(), (x, number))


def _enlarged(kernel: Term, to: tuple[int, int]) -> Term:
    """A kernel in the middle of zeros."""
    more = [b - a for a, b in zip(kernel.shape[2:], to, strict=True)]
    before = [floor_div(m, 2) for m in more]
    after = [m - b for m, b in zip(more, before, strict=True)]
    return make(Pad((0, 0, *before, 0, 0, *after)), (kernel,))


def _permutation(number: int, rank: int) -> tuple[int, ...]:
    """TASO writes a permutation as the number that its entries are the digits of, in base rank."""
    digits = []
    for _ in range(rank):
        digits.append(number % rank)
        number //= rank
    if number or sorted(digits) != list(range(rank)):
        raise RuleError(f"transpose: its parameter is no permutation of {rank} axes")
    return tuple(reversed(digits))


def _has_floor(dim: Dim) -> bool:
    return isinstance(dim, Expr) and any(isinstance(a, Floor) for m, _ in dim.terms for a in m)
