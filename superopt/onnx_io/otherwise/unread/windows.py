"""Of which places of an image a convolution makes some of its results, and the convolution of these alone.

A result reads the places of its window, a dilation apart, and the next one those a stride behind. Where results are
read some steps apart, all that is read may be some steps apart as well: of an image with these places alone the
convolution has smaller strides and dilations. Places before and behind the image are its padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import NamedTuple

import onnx_ir as ir

from superopt.dim import Shape
from superopt.onnx_io.otherwise.unread.evenly import Places, evenly
from superopt.onnx_io.said import text


class Windows(NamedTuple):
    """How a convolution moves its windows along one of its axes."""

    size: int
    stride: int
    before: int
    dilation: int


class Axes(NamedTuple):
    """What a convolution says of its window axes."""

    kernel: list[int]
    strides: list[int]
    pads: list[int]
    dilations: list[int]

    def along(self, at: int) -> Windows:
        """What it says of one of them."""
        return Windows(self.kernel[at], self.strides[at], self.pads[at], self.dilations[at])


def axes_of(node: ir.Node, kernel: Shape) -> Axes | None:
    """What a convolution by a kernel of this shape says; None where that is not told by numbers."""
    sizes = [d for d in kernel[2:] if isinstance(d, int)]
    count = len(kernel) - 2
    if len(sizes) != count or text(node, "auto_pad", "NOTSET") != "NOTSET":
        return None
    told = Axes(
        sizes, _said(node, "strides", [1] * count), _said(node, "pads", [0] * 2 * count),
        _said(node, "dilations", [1] * count),
    )  # fmt: skip
    return told if min(told.pads, default=-1) >= 0 else None


def _said(node: ir.Node, name: str, default: list[int]) -> list[int]:
    return list(node.attributes[name].as_ints()) if name in node.attributes else default


def read_by(windows: Windows, results: Places) -> Places:
    """The places that results are made of, of which some may lie before or behind the image."""
    first = results.first * windows.stride - windows.before
    last = results.last * windows.stride - windows.before + (windows.size - 1) * windows.dilation
    return evenly(first, last, max(gcd(*_steps(windows, results)), 1))


def _steps(windows: Windows, results: Places) -> tuple[int, int]:
    """How far the next result's window is, and the next place in a window; zero where there is no next."""
    between = results.step * windows.stride if results.many > 1 else 0
    return between, windows.dilation if windows.size > 1 else 0


def attributes(axes: Axes, at: int, results: Places, size: int) -> list[ir.Attr]:
    """What a convolution says that makes some results of the places that they read within an image of a size."""
    windows = axes.along(at)
    read = read_by(windows, results)
    inside = read.within(size)
    assert inside is not None
    between, apart = _steps(windows, results)
    pads = (inside.first - read.first) // read.step, (read.last - inside.last) // read.step
    count = len(axes.kernel)
    return [
        ir.AttrInt64s("kernel_shape", axes.kernel),
        ir.AttrInt64s("strides", _with(axes.strides, at, max(between // read.step, 1))),
        ir.AttrInt64s("pads", _with(_with(axes.pads, at, pads[0]), count + at, pads[1])),
        ir.AttrInt64s("dilations", _with(axes.dilations, at, max(apart // read.step, 1))),
    ]


def _with(numbers: Sequence[int], at: int, number: int) -> list[int]:
    return [number if i == at else n for i, n in enumerate(numbers)]
