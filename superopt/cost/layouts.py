"""Blocks of channels, in which runtimes keep images from one convolution to the next.

Where an operator comes that cannot take them so, all is laid out anew (onnxruntime's NCHWc, oneDNN's blocked formats;
Liu et al. 2019, NeoCPU). A convolution that is timed alone is laid out on both sides, and so is a piece of a model at
its borders. So sums of kernels are too high where convolutions follow each other, and what leaves the layout would
cost nothing more there than what stays in it, and does in the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from superopt.cost.kernels import Kernel
from superopt.cost.sizes import bytes_of
from superopt.dim import assuming
from superopt.operators import Declared
from superopt.operators.layout import Concat, Expand, Transpose
from superopt.operators.linear import Conv
from superopt.operators.normalize import BatchNorm
from superopt.operators.pictures import CHANNELS_LAST
from superopt.operators.reduce import GlobalAvgPool, Pool
from superopt.term import Graph, Term, replace_all, variable, variables

BLOCK = 16
"""Channels come in blocks of 8 or 16, by the processor; what is a multiple of this does on all."""


@dataclass(frozen=True)
class Place:
    """What stands around a graph in its model: the names of the variables that come in blocks, and for each output
    whether it is read so.
    """

    joined: frozenset[str] = frozenset()
    followed: tuple[bool, ...] = ()

    def is_read(self, graph: Graph) -> dict[Term, bool]:
        """Of each output of a graph, whether it is read in blocks wherever it is given."""
        followed = self.followed or (False,) * len(graph.outputs)
        return {o: all(f for t, f in zip(graph.outputs, followed, strict=True) if t is o) for o in graph.outputs}


ALONE = Place()


def has_blocks(image: Term) -> bool:
    """Whether the channels of an image fall into blocks."""
    return image.type.rank == 4 and isinstance(image.shape[1], int) and image.shape[1] % BLOCK == 0


def in_blocks(term: Term, known: dict[Term, bool]) -> bool:
    """Whether a term's value is made in blocks. What is known, of variables at least, is added to."""
    if term not in known:
        known[term] = not term.is_variable and _made_in_blocks(term, known)
    return known[term]


def _made_in_blocks(term: Term, known: dict[Term, bool]) -> bool:
    op = term.operator
    if isinstance(op, Conv):
        return has_blocks(term)
    if isinstance(op, Pool | GlobalAvgPool | BatchNorm):
        return in_blocks(term.inputs[0], known)
    if (isinstance(op, Concat) and op.axis == 1) or (isinstance(op, Declared) and op.pointwise):
        spread = [i for i in term.inputs if not i.constant and not isinstance(i.operator, Expand)]
        return bool(spread) and all(in_blocks(i, known) for i in spread)
    return False


def kept_bytes(graph: Graph, kernels: Sequence[Kernel], place: Place, known: dict[Term, bool] | None = None) -> int:
    """How many bytes are laid out anew where each of a graph's kernels runs alone, and are not where it stands.

    `known` remembers which terms stand in blocks in this place.
    """
    known = {} if known is None else known
    known.update({v: v.label in place.joined and has_blocks(v) for v in graph.inputs if v not in known})
    total, read = 0, place.is_read(graph)
    for kernel in kernels:
        takes = in_blocks(_computed(kernel), known)
        for term, turned in zip(kernel.reads, kernel.turned, strict=True):
            blocked = takes and not turned and in_blocks(term, known)
            read[term] = blocked and read.get(term, True)
            total += bytes_of(term) if blocked and kernel.convolves else 0
    given = (k.root for k in kernels if k.convolves and in_blocks(k.root, known))
    return total + sum(bytes_of(root) for root in given if read.get(root, False))


def _computed(kernel: Kernel) -> Term:
    """What a kernel computes, of a convolution before its channels are brought to the end."""
    root, op = kernel.root, kernel.root.operator
    return root.inputs[0] if kernel.convolves and isinstance(op, Transpose) and op.perm == CHANNELS_LAST else root


def between(graph: Graph, place: Place) -> Graph:
    """A graph as it is timed in its place: with convolutions of single channels where it is joined or followed."""
    new = {v: touched(v, f"before {v.label}") for v in graph.inputs if v.label in place.joined and has_blocks(v)}
    with assuming():
        outputs = replace_all(graph.outputs, new)
    followed = place.followed or (False,) * len(outputs)
    ends = [
        touched(o, f"after {i}") if follows and has_blocks(o) else o
        for i, (o, follows) in enumerate(zip(outputs, followed, strict=True))
    ]
    return Graph(tuple(variables(*ends)), tuple(ends))


def touched(image: Term, name: str) -> Term:
    """An image after a convolution that only scales its channels."""
    channels = image.shape[1]
    kernel = variable(name, (channels, 1, 1, 1), image.type.dtype, constant=True)
    with assuming():  # that an image of symbolic sizes has room for a window of one place
        return Conv(group=channels)(image, kernel)
