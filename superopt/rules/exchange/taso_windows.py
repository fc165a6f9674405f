"""The sizes of the kernels in one of TASO's rules: a rule in which one is enlarged does not say from what."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import TypeAlias

from superopt.errors import RuleError
from superopt.rules.exchange.taso_messages import KEYS, Node, Place, Published

Windows: TypeAlias = dict[Place, tuple[int, int]]
"""Height and width of kernels that are variables."""

MOST_SIZES = 64
"""At how many sizes a rule is stated, at most."""


def windows_of(published: Published) -> list[Windows]:
    """The sizes at which kernels are stated that are enlarged: what a convolution says, or all odd ones below, if any.

    Raises `RuleError` where these are more than `MOST_SIZES`.
    """
    nodes = (*published.source, *published.target)
    said = {n.inputs[1]: [window_of(n)] for n in nodes if n.name == "conv2d" and KEYS["kernel height"] in n.parameters}
    enlarged = {n.inputs[0]: window_of(n) for n in nodes if n.name == "enlarge" and n.inputs[0][0] < 0}
    sizes = [said.get(kernel) or list(_smaller(*to)) or [to] for kernel, to in enlarged.items()]
    if (count := math.prod(map(len, sizes))) > MOST_SIZES:
        raise RuleError(f"it enlarges kernels from any of {count} sizes; {MOST_SIZES} are the most")
    return [dict(zip(enlarged, some, strict=True)) for some in itertools.product(*sizes)]


def window_of(node: Node) -> tuple[int, int]:
    """Height and width of an operator's window. Raises `RuleError` where it says none."""
    return node.parameter("kernel height"), node.parameter("kernel width")


def _smaller(height: int, width: int) -> Iterator[tuple[int, int]]:
    odd = itertools.product(range(1, height + 1, 2), range(1, width + 1, 2))
    return (size for size in odd if size != (height, width))
