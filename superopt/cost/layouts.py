"""Blocks of channels, in which runtimes keep images from one convolution to the next.

Where an operator comes that cannot take them so, all is laid out anew (onnxruntime's NCHWc, oneDNN's blocked formats;
Liu et al. 2019, NeoCPU). A convolution that is timed alone is laid out on both sides, and so is a piece of a model at
its borders. So sums of kernels are too high where convolutions follow each other, and what leaves the layout would
cost nothing more there than what stays in it, and does in the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from superopt.cost.blocks import in_blocks
from superopt.cost.kernels import Kernel
from superopt.cost.sizes import bytes_of
from superopt.demands import assuming
from superopt.operators.conv import Conv
from superopt.operators.definitions.blocks import is_of_whole_blocks
from superopt.operators.definitions.pictures import brings_channels_last
from superopt.term import Graph, Term, replace_all, variable, variables


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


def can_be_touched(image: Term) -> bool:
    """Whether a convolution of single channels would take an image in blocks, and give it so."""
    return image.type.rank == 4 and is_of_whole_blocks(image.shape[1])


def kept_bytes(graph: Graph, kernels: Sequence[Kernel], place: Place, known: dict[Term, bool] | None = None) -> int:
    """How many bytes are laid out anew where each of a graph's kernels runs alone, and are not where it stands.

    `known` remembers which terms stand in blocks in this place.
    """
    known = {} if known is None else known
    known.update({v: v.label in place.joined and can_be_touched(v) for v in graph.inputs if v not in known})
    total, read = 0, place.is_read(graph)
    for kernel in kernels:
        takes = in_blocks(_computed(kernel), known)
        for term, how in zip(kernel.reads, kernel.taken, strict=True):
            blocked = (how == "in blocks" or (how == "as the result" and takes)) and in_blocks(term, known)
            read[term] = blocked and read.get(term, True)
            total += bytes_of(term) if blocked and kernel.convolves else 0
    given = (k.root for k in kernels if k.convolves and in_blocks(k.root, known))
    return total + sum(bytes_of(root) for root in given if read.get(root, False))


def _computed(kernel: Kernel) -> Term:
    """What a kernel computes, of a convolution before its channels are brought to the end."""
    root = kernel.root
    return root.inputs[0] if kernel.convolves and brings_channels_last(root) else root


def between(graph: Graph, place: Place) -> Graph:
    """A graph as it is timed in its place: with convolutions of single channels where it is joined or followed."""
    new = {v: touched(v, f"before {v.label}") for v in graph.inputs if v.label in place.joined and can_be_touched(v)}
    with assuming():
        outputs = replace_all(graph.outputs, new)
    followed = place.followed or (False,) * len(outputs)
    ends = [
        touched(o, f"after {i}") if follows and can_be_touched(o) else o
        for i, (o, follows) in enumerate(zip(outputs, followed, strict=True))
    ]
    return Graph(tuple(variables(*ends)), tuple(ends))


def touched(image: Term, name: str) -> Term:
    """An image after a convolution that only scales its channels."""
    channels = image.shape[1]
    kernel = variable(name, (channels, 1, 1, 1), image.type.dtype, constant=True)
    with assuming():  # that an image of symbolic sizes has room for a window of one place
        return Conv(group=channels)(image, kernel)
