"""Windows that move over images: how many fit, what stands in them, and the pads that nodes ask for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.demands import require
from superopt.dim import Dim, Shape, at_most, equal
from superopt.operators.nodes import NotUnderstood, Source, concrete


def window_sizes(what: str, x: Shape, kernel: Shape, strides: Shape, pads: Shape, dilations: Shape) -> tuple[Dim, ...]:
    """How often a window fits along each axis after the first two. Raises `ShapeError` where it does not fit once."""
    axes = len(x) - 2
    lengths = (len(kernel), len(strides), len(dilations), len(pads) // 2)
    require(lengths == (axes,) * 4, f"{what}: {kernel}, {strides}, {pads}, {dilations} are not for {axes} window axes")
    sizes = []
    for axis in range(axes):
        reach = dilations[axis] * (kernel[axis] - 1) + 1
        room = x[axis + 2] + pads[axis] + pads[axis + axes]
        require(at_most(reach, room), f"{what}: a window {kernel} (dilated {dilations}) does not fit {x}, pads {pads}")
        sizes.append((room - reach) // strides[axis] + 1)
    return tuple(sizes)


def windows(
    x: Array, kernel: Shape, strides: Shape, pads: Shape, dilations: Shape, fill: Array
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """For each place in the window, what stands there for all results: an array `n c p q …`."""
    widths, axes = concrete(pads, "window"), x.ndim - 2
    around = [(0, 0), (0, 0), *zip(widths[:axes], widths[axes:], strict=True)]
    padded = np.pad(x, around, constant_values=fill) if any(widths) else x
    counts = concrete(window_sizes("window", x.shape, kernel, strides, pads, dilations), "window")
    steps, gaps = concrete(strides, "window"), concrete(dilations, "window")
    for place in itertools.product(*map(range, concrete(kernel, "window"))):
        starts = [i * d for i, d in zip(place, gaps, strict=True)]
        cuts = [slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, counts, steps, strict=True)]
        yield place, padded[(slice(None), slice(None), *cuts)]


def demand_kernel(node: Source, shape: Shape) -> None:
    """Raise `NotUnderstood` for a `kernel_shape` that is not that of the kernel."""
    given = node.attributes.get("kernel_shape")
    if given is not None and any(equal(a, b) is False for a, b in zip(given, shape, strict=True)):
        raise NotUnderstood(f"the kernel is {shape}, kernel_shape {given}")


def explicit_pads(node: Source, x: Shape, kernel: Shape, strides: Shape, dilations: Shape) -> Shape:
    """The pads of a node, with ONNX's `auto_pad` worked out: SAME gives ⌈h / s⌉ results, the last for what remains of
    an axis in steps of s. Raises `NotUnderstood` where they depend on how much that is, and nobody knows.
    """
    mode = node.attributes.get("auto_pad", "NOTSET")
    none = (0,) * (2 * len(kernel))
    if mode == "NOTSET":
        return tuple(node.attributes.get("pads", none))
    if mode == "VALID":
        return none
    before, after = [], []
    for h, k, s, d in zip(x[2:], kernel, strides, dilations, strict=True):
        window, step, gap = concrete((k, s, d), f"auto_pad {mode}")
        last = range(1, step + 1) if not isinstance(h, int) else ((h - 1) % step + 1,)
        totals = {gap * (window - 1) + 1 - elements for elements in last}
        if min(totals) < -1:
            raise NotUnderstood(f"auto_pad {mode} of windows that leave {-min(totals)} elements out: runtimes differ")
        total, *others = {max(total, 0) for total in totals}
        if others:
            raise NotUnderstood(f"auto_pad {mode} in steps of {step} along an axis of {h}")
        small = total // 2
        before.append(small if mode == "SAME_UPPER" else total - small)
        after.append(total - before[-1])
    return (*before, *after)
